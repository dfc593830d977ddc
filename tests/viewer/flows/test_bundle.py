"""A bundle, opened from a file in a browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle
from tests.viewer.flows.screen import click_in_graph, is_drawn


@pytest.mark.browser
def test_from_the_index_to_a_graph_and_a_step_without_a_server(
    page: Page, store: Store, tmp_path: Path
):
    report = write_bundle(store, tmp_path / "b", BundleChoice(run_id="hostile"))
    page.goto(report.index.as_uri())
    page.get_by_role("link").first.click()
    expect(page.locator(".graph[data-ready]")).to_have_attribute("data-ready", "5")
    assert is_drawn(page)
    click_in_graph(page, "n0")
    expect(page.locator("pre")).to_contain_text("<script>alert(1)</script>")
    page.locator("table a").first.click()
    expect(page.locator("section").first).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("link", name="All tasks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Run hostile")
