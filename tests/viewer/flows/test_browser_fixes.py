"""What holds on every page: nothing leaves the machine, text stays text, any window, no mouse."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from graphcredit.viewer.sitemap import PAGES
from tests.viewer.flows.screen import (
    acted,
    download,
    expect_at,
    in_graph,
    is_drawn,
    main,
    open_page,
    tab_to,
)
from tests.viewer.flows.watch import Watch

pytestmark = pytest.mark.browser

_QUERY = "SELECT task_id, action, state FROM steps WHERE run_id = 'hostile'"


def _assert_nothing_was_obeyed(page: Page) -> None:
    for injected in (
        "script:has-text('alert(1)')",
        "[src*='//example.org']",
        "[href*='//example.org']",
    ):
        assert page.locator(injected).count() == 0, injected
    assert page.locator(".katex").count() == 0


@pytest.mark.slow
def test_a_tour_of_all_pages_asks_only_the_viewer(page: Page, watch: Watch):
    open_page(page, "runs", run="r0", iteration=1)
    for name, title in PAGES.items():
        page.get_by_role("link", name=title, exact=True).click()
        expect(main(page).get_by_role("heading", name=title, exact=True)).to_be_visible()
        # The first page is the root of the site.
        expect_at(page, name if name != "runs" else "", run="r0", iteration=1)
    assert {request.partition(":")[0] for request in watch.requests} >= {"http", "ws"}
    assert len(watch.requests) > 50


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", [name for name in PAGES if name != "over_time"])
def test_text_of_a_log_is_only_ever_text(page: Page, name: str):
    open_page(page, name, run="hostile", estimator="gigpo", other="graphgpo", at="n0", q=_QUERY)
    if name == "runs":
        page.get_by_role("button", name="Audit this iteration").click()
        page.get_by_test_id("stExpander").first.click()
    text = page.get_by_text("<script>alert(1)</script> ![x](https://example.org/x.png)")
    expect(text.or_(page.locator("input[value^='<script>']")).first).to_be_attached()
    _assert_nothing_was_obeyed(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "button"), [("graph", "Export as HTML"), ("trajectory", "As HTML")]
)
def test_an_exported_file_obeys_no_log(
    page: Page, browser: Browser, tmp_path: Path, name: str, button: str
):
    open_page(page, name, run="hostile", estimator="graphgpo")
    file = download(page, button, tmp_path)
    watch = Watch()
    with browser.new_context() as context:
        alone = context.new_page()
        watch.over(alone)
        alone.goto(file.as_uri())
        expect(alone.get_by_text("<script>alert(1)</script>").first).to_be_attached()
        assert name == "trajectory" or is_drawn(alone)
        _assert_nothing_was_obeyed(alone)
    watch.must_be_calm(file.as_uri())
    assert watch.requests == [file.as_uri()]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_narrow_window_holds_every_page(page: Page, name: str):
    page.set_viewport_size({"width": 400, "height": 800})
    open_page(page, name, run="r0", q="FROM steps SELECT * EXCLUDE logged_at")
    wide = "e => e.scrollWidth - e.clientWidth"
    assert main(page).evaluate(wide) == 0
    assert page.locator("html").evaluate(wide) == 0


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
    page.keyboard.press("k")
    expect_at(page, "trajectory", step=2)
