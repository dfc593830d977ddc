"""What holds on every page: nothing leaves the machine, text stays text, any window, no mouse."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from graphcredit.viewer.sitemap import PAGES
from tests.viewer.flows.screen import (
    acted,
    click_in_graph,
    download,
    expect_at,
    in_graph,
    is_drawn,
    main,
    marked,
    open_page,
    tab_to,
)
from tests.viewer.flows.watch import Watch

pytestmark = pytest.mark.browser

_SHOWN = {"graph": {"at": "n0"}, "search": {"find": "alert(1)"}}
"""Page to what a link from the menu does not choose."""


def _assert_nothing_was_obeyed(page: Page) -> None:
    for injected in (
        "script:has-text('alert(1)')",
        "[src*='//example.org']",
        "[href*='//example.org']",
    ):
        assert page.locator(injected).count() == 0, injected
    assert page.locator(".katex").count() == 0


@pytest.mark.slow
def test_a_tour_of_all_pages(page: Page, watch: Watch):
    """Pages ask only the viewer, text of a log is only ever text, and a narrow window holds them.

    One tab for all of them: the first page costs seconds, each of the others much less.
    """
    open_page(page, "runs", run="hostile", estimator="gigpo")
    for name, title in PAGES.items():
        page.get_by_role("link", name=title, exact=True).click()
        expect(main(page).get_by_role("heading", name=title, exact=True)).to_be_visible()
        # The first page is the root of the site.
        expect_at(page, name if name != "runs" else "", run="hostile")
        if name in _SHOWN:
            open_page(page, name, run="hostile", **_SHOWN[name])
        if name != "runs":
            text = page.get_by_text("<script>alert(1)</script> ![x](https://example.org/x.png)")
            shown = text.or_(page.locator("input[value^='<script>']"))
            expect(shown.first).to_be_attached()
        _assert_nothing_was_obeyed(page)
        _assert_fits_a_narrow_window(page)
    assert {request.partition(":")[0] for request in watch.requests} >= {"http", "ws"}
    assert len(watch.requests) > 50


def _assert_fits_a_narrow_window(page: Page) -> None:
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 400, "height": 800})
    wide = "e => e.scrollWidth - e.clientWidth"
    for part in (main(page), page.locator("html")):
        page.wait_for_function(f"e => ({wide})(e) === 0", arg=part.element_handle())
    page.set_viewport_size(size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "button"), [("graph", "Export as HTML"), ("trajectory", "As HTML")]
)
def test_an_exported_file_obeys_no_log_and_needs_no_network(
    page: Page, browser: Browser, tmp_path: Path, name: str, button: str
):
    open_page(page, name, run="hostile", estimator="graphgpo")
    file = download(page, button, tmp_path)
    watch = Watch()
    with browser.new_context(offline=True) as context:
        alone = context.new_page()
        watch.over(alone)
        alone.goto(file.as_uri())
        expect(alone.get_by_text("<script>alert(1)</script>").first).to_be_attached()
        if name == "trajectory":
            heights = alone.locator("nav i").evaluate_all("bars => bars.map(b => b.offsetHeight)")
            assert max(heights) > 0
            alone.locator("nav a").last.click()
            expect(alone).to_have_url(re.compile(rf"^{re.escape(file.as_uri())}#step-\d+$"))
        else:
            assert is_drawn(alone)
            click_in_graph(alone, "e0-2")
            expect(alone.locator("pre").last).to_contain_text("graphgpo_advantage")
            assert marked(alone, "chosen") == {"e0-2"}
        _assert_nothing_was_obeyed(alone)
    watch.must_be_calm(file.as_uri())
    assert watch.requests == [file.as_uri()]


@pytest.mark.slow
def test_the_way_to_a_step_needs_no_mouse(page: Page):
    open_page(page, "tasks", run="r0", iteration=1, estimator="graphgpo")
    tab_to(page, "canvas")
    page.keyboard.press("Shift+Space")
    expect_at(page, "graph", task="t0")
    in_graph(page, "cy => cy.nodes().length")
    tab_to(page, ".graph")
    zoom = in_graph(page, "cy => cy.zoom()")
    page.keyboard.press("+")
    assert in_graph(page, "cy => cy.zoom()") == pytest.approx(1.25 * zoom)
    tab_to(page, "button:has-text('→ GOAL')")
    page.keyboard.press("Enter")
    expect_at(page, "graph", at="e2-4")
    tab_to(page, "a:has-text('x, step 3')")
    page.keyboard.press("Enter")
    expect_at(page, "trajectory", trajectory="x", step=3)
    expect(acted(page)).to_have_text("d")
    for key, step, action in (("k", 2, "c"), ("j", 3, "d")):
        page.keyboard.press(key)
        expect_at(page, "trajectory", step=step)
        expect(acted(page)).to_have_text(action)
