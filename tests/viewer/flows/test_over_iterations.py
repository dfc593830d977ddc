"""The graphs of a task's iterations on a slider."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from tests.viewer.flows.screen import (
    download,
    expect_at,
    in_graph,
    open_page,
    tab_to,
)
from tests.viewer.flows.watch import Watch

pytestmark = pytest.mark.browser

_HERE = {"run": "long", "iteration": 0, "estimator": "graphgpo", "view": "everything"}


def _drawn(page: Page) -> tuple[int, int]:
    """Return how many states and transitions are not faint; all chains must be open."""
    script = "cy => [cy.nodes(), cy.edges()].map(all => all.not('.absent').length)"
    states, transitions = in_graph(page, script)
    return states, transitions


def _stored(store: Store, iteration: int) -> tuple[int, int]:
    sql = """
        SELECT (SELECT count(*) FROM nodes WHERE iteration = $1) AS states, (SELECT
            count(DISTINCT (state_id, next_state_id)) FROM edges WHERE iteration = $1) AS ways
    """
    (row,) = run_trusted_query(store, sql, [iteration], run_id="long").table.to_pylist()
    return row["states"], row["ways"]


def _places(page: Page) -> dict[str, Any]:
    return in_graph(
        page, "cy => Object.fromEntries(cy.nodes().map(n => [n.id(), {...n.position()}]))"
    )


def _look(page: Page, store: Store) -> None:
    """Move the slider, and compare what is drawn with the store."""
    said = page.locator(".frames .said")
    page.locator(".graph .folds").click()
    expect(said).to_contain_text("iteration 0 · 33% of 3 trajectories succeeded")
    assert _drawn(page) == _stored(store, 0)
    before = _places(page)
    tab_to(page, ".frames .slider")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("iteration 1 · 100% of 2 trajectories succeeded")
    assert _drawn(page) == _stored(store, 1)
    assert _places(page) == before
    page.locator(".graph .folds").click()
    page.locator(".graph .folds").click()
    assert _drawn(page) == _stored(store, 1)
    page.keyboard.press("Shift+Tab")


def test_states_keep_their_places_and_each_iteration_has_its_own(
    page: Page, browser: Browser, store: Store, tmp_path: Path
):
    assert _stored(store, 0) != _stored(store, 1)
    open_page(page, "graph", **_HERE)
    page.get_by_role("switch", name="Over iterations").or_(
        page.get_by_text("Over iterations")
    ).last.click()
    expect_at(page, "graph", over=1)
    expect(page.get_by_text("2 iterations on the slider")).to_be_visible()
    in_graph(page, "cy => cy.nodes().length")
    _look(page, store)
    file = download(page, "Export as HTML", tmp_path)
    watch = Watch()
    with browser.new_context(offline=True) as context:
        alone = context.new_page()
        watch.over(alone)
        alone.goto(file.as_uri())
        in_graph(alone, "cy => cy.nodes().length")
        _look(alone, store)
    watch.must_be_calm(file.as_uri())
    assert watch.requests == [file.as_uri()]


def test_play_goes_through_the_iterations_and_stops(page: Page):
    page.clock.install()
    open_page(page, "graph", **_HERE, over=1)
    in_graph(page, "cy => cy.nodes().length")
    said = page.locator(".frames .said")
    expect(said).to_contain_text("iteration 0")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.clock.run_for(1300)
    expect(said).to_contain_text("iteration 1")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_a_state_of_another_iteration_says_where_it_is(page: Page, store: Store):
    open_page(page, "graph", **(_HERE | {"iteration": 1}), over=1, find="right 3")
    key = in_graph(page, "cy => cy.$('.current').id()")
    open_page(page, "graph", **(_HERE | {"iteration": 1}), over=1, at=key)
    expect(page.get_by_text(f"State {key[1:]} of iteration 0; the lists are those")).to_be_visible()
    expect(page.locator("pre").first).to_have_text("right 3")
