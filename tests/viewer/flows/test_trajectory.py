"""A trajectory, step by step."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from graphcredit.store import Store
from tests.viewer.flows.screen import (
    acted,
    ask,
    download,
    expect_at,
    expect_same_after_reload,
    open_page,
)
from tests.viewer.flows.watch import Watch

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 1, "task": "t0", "trajectory": "x"}


@pytest.mark.slow
def test_j_and_k_walk_through_the_steps(page: Page):
    open_page(page, "trajectory", **_HERE)
    did = acted(page)
    expect(did).to_have_text("a")
    for key, step, action in (("j", 1, "b"), ("j", 2, "c"), ("j", 3, "d"), ("k", 2, "c")):
        page.keyboard.press(key)
        expect_at(page, "trajectory", step=step)
        expect(did).to_have_text(action)
    expect_same_after_reload(page)


def test_the_step_with_the_most_credit_is_a_click_away(page: Page, store: Store):
    open_page(page, "trajectory", **_HERE, estimator="graphgpo")
    sql = """
        SELECT arg_max(step_index, graphgpo_advantage) AS step, max(graphgpo_advantage) AS most,
            arg_max(action, graphgpo_advantage) AS action
        FROM enriched WHERE iteration = 1 AND trajectory_id = 'x'
    """
    (best,) = ask(store, sql).to_pylist()
    title = f"Most credit: step {best['step']} ({best['most']:+.2f})"
    page.get_by_role("button", name=title, exact=True).click()
    expect_at(page, "trajectory", step=best["step"])
    expect(acted(page)).to_have_text(best["action"])
    page.get_by_role("link", name="Its state graph").click()
    expect_at(page, "graph", task="t0", trajectory="x", step=best["step"])


@pytest.mark.slow
def test_the_exported_trajectory_needs_no_network(page: Page, browser: Browser, tmp_path: Path):
    open_page(page, "trajectory", **_HERE, estimator="graphgpo")
    file = download(page, "As HTML", tmp_path)
    watch = Watch()
    with browser.new_context(offline=True) as context:
        alone = context.new_page()
        watch.over(alone)
        alone.goto(file.as_uri())
        expect(alone.locator("section h2")).to_have_text(
            ["Step 0: a", "Step 1: b", "Step 2: c", "Step 3: d"]
        )
        heights = alone.locator("nav i").evaluate_all("bars => bars.map(b => b.offsetHeight)")
        assert len(heights) == 4
        assert max(heights) > 0
        alone.locator("nav a").nth(3).click()
        expect(alone).to_have_url(f"{file.as_uri()}#step-3")
    watch.must_be_calm(file.as_uri())
