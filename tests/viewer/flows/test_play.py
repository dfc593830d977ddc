"""A trajectory that moves over the graph, in the viewer and in an exported file."""

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from tests.viewer.flows.screen import download, in_graph, is_drawn, marked, open_page, tab_to
from tests.viewer.flows.watch import Watch

pytestmark = pytest.mark.browser

_HERE = {"run": "long", "iteration": 0, "estimator": "graphgpo", "trajectory": "across"}


def _moments(store: Store) -> list[tuple[str, str, str]]:
    """Return state, what led there, and the text of what is seen, from the start on."""
    sql = """
        SELECT * FROM enriched WHERE run_id = 'long' AND iteration = 0
        AND trajectory_id = 'across' ORDER BY step_index
    """
    rows = run_trusted_query(store, sql, run_id="long").table.to_pylist()
    steps = [
        (
            f"n{row['next_state_id']}",
            f"Step {row['step_index']}: {row['action']}  {row['graphgpo_advantage']:+.2f}",
            row["next_state"],
        )
        for row in rows
    ]
    return [(f"n{rows[0]['state_id']}", "Start", rows[0]["state"]), *steps]


def _expect_at(page: Page, moment: tuple[str, str, str]) -> None:
    state, head, seen = moment
    expect(page.locator(".graph .told h3")).to_have_text(head)
    expect(page.locator(".graph .told p").last).to_have_text(seen)
    assert marked(page, "here") == {state}
    token = page.locator(".graph .token")
    expect(token).to_be_visible()
    top = """(cy, key) => {
        const node = cy.getElementById(key), {x, y} = node.renderedPosition();
        return [x, y - node.renderedHeight() / 2]; }"""
    places = "token => [token.offsetParent, token].map(each => each.getBoundingClientRect())"
    stage, there = token.evaluate(places)
    x, y = in_graph(page, top, state)
    assert there["x"] + there["width"] / 2 - stage["x"] == pytest.approx(x, abs=1)
    assert there["y"] + there["height"] / 2 - stage["y"] == pytest.approx(y, abs=1)


def test_the_slider_moves_a_trajectory_with_its_texts(page: Page, store: Store):
    page.emulate_media(reduced_motion="reduce")
    moments = _moments(store)
    open_page(page, "graph", **_HERE)
    in_graph(page, "cy => cy.nodes().length")
    expect(page.locator(".graph .told")).to_be_hidden()
    expect(page.locator(".play .said")).to_have_text(f"{len(moments) - 1} steps")
    tab_to(page, ".slider")
    page.keyboard.press("ArrowRight")
    _expect_at(page, moments[1])
    page.keyboard.press("ArrowRight")
    _expect_at(page, moments[2])
    expect(page.locator(".play .said")).to_have_text(f"2 of {len(moments) - 1} steps")
    page.keyboard.press("End")
    _expect_at(page, moments[-1])
    page.keyboard.press("Home")
    _expect_at(page, moments[0])
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.locator(".graph .told")).to_be_hidden()
    assert marked(page, "here") == set()


def test_an_exported_file_plays_without_a_network(
    page: Page, browser: Browser, store: Store, tmp_path: Path
):
    moments = _moments(store)
    open_page(page, "graph", **_HERE)
    in_graph(page, "cy => cy.nodes().length")
    file = download(page, "Export as HTML", tmp_path)
    watch = Watch()
    with browser.new_context(offline=True, reduced_motion="reduce") as context:
        alone = context.new_page()
        watch.over(alone)
        alone.clock.install(time=0)
        alone.goto(file.as_uri())
        states = [int(state[1:]) for state, _, _ in moments]
        transitions = {f"e{one}-{other}" for one, other in pairwise(states)}
        assert marked(alone, "path") == {f"n{state}" for state in states} | transitions
        assert is_drawn(alone)
        # Unless it is paused, a clock runs on, and on a busy machine into the next moment.
        alone.clock.pause_at(3600)
        play = alone.get_by_role("button", name="Play")
        play.focus()
        alone.keyboard.press("Enter")
        _expect_at(alone, moments[0])
        for moment in moments[1:4]:
            alone.clock.run_for(1500)
            _expect_at(alone, moment)
        alone.get_by_role("button", name="Pause").click()
        alone.clock.run_for(6000)
        _expect_at(alone, moments[3])
        play.click()
        alone.clock.run_for(1500 * len(moments))
        _expect_at(alone, moments[-1])
        expect(play).to_be_visible()
        # What was found, too, needs no server.
        alone.get_by_role("searchbox").fill("right 1")
        alone.keyboard.press("Enter")
        right = [seen for _, _, seen in moments if "right 1" in seen]
        expect(alone.locator(".find output")).to_contain_text(f"{len(right)} states, at 1")
    watch.must_be_calm(file.as_uri())
    assert watch.requests == [file.as_uri()]
