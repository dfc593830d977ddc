"""A graph of more states than can be read at once: chains, find, the small map."""

import re

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from tests.viewer.flows.screen import (
    click_in_graph,
    expect_at,
    in_graph,
    is_drawn,
    marked,
    open_page,
    tab_to,
)

pytestmark = pytest.mark.browser

_HERE = {"run": "long", "iteration": 0, "estimator": "graphgpo", "view": "everything"}
_KEYS = "cy => cy.nodes().map(node => node.id())"
_OVERLAPPING = """cy => cy.nodes().map(a => cy.nodes().filter(b => a.id() < b.id() &&
    Math.abs(a.position('x') - b.position('x')) < (a.width() + b.width()) / 2 &&
    Math.abs(a.position('y') - b.position('y')) < (a.height() + b.height()) / 2).length)
    .reduce((sum, number) => sum + number)"""


def _states(store: Store, words: str = "") -> list[str]:
    """Return the keys of the states whose text contains some words."""
    sql = """
        SELECT state_id FROM nodes
        WHERE iteration = 0 AND contains(lower(coalesce(state, '')), ?) ORDER BY state_id
    """
    found = run_trusted_query(store, sql, [words], run_id="long").table
    return [f"n{state}" for state in found["state_id"].to_pylist()]


def _chains(page: Page) -> list[str]:
    return [key for key in in_graph(page, _KEYS) if key.startswith("c")]


def test_a_chain_opens_by_a_click_and_all_of_them_by_a_button(page: Page, store: Store):
    open_page(page, "graph", **_HERE)
    states = _states(store)
    expect(page.get_by_text(f"{len(states)} of {len(states)} states, ")).to_be_visible()
    chains = _chains(page)
    assert len(chains) >= 2
    before = in_graph(page, _KEYS)
    click_in_graph(page, chains[0])
    fold = page.get_by_role("button", name="Fold 1 chain")
    expect(fold).to_be_visible()
    assert _chains(page) == [key for key in chains if key != chains[0]]
    assert in_graph(page, "(cy, key) => cy.getElementById(key).length", f"n{chains[0][1:]}") == 1
    fold.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"Open {len(chains)} chains")).to_be_focused()
    assert sorted(in_graph(page, _KEYS)) == sorted(before)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"Fold {len(chains)} chains")).to_be_visible()
    assert sorted(in_graph(page, _KEYS)) == sorted(states)
    sql = "SELECT count(DISTINCT (state_id, next_state_id)) AS n FROM edges WHERE iteration = 0"
    number = run_trusted_query(store, sql, run_id="long").table["n"][0].as_py()
    assert in_graph(page, "cy => cy.edges().length") == number


def test_states_of_a_chain_do_not_overlap_others_when_it_opens(page: Page):
    open_page(page, "graph", **_HERE)
    page.locator(".graph .folds").click()
    assert in_graph(page, _OVERLAPPING) == 0


def test_a_room_opens_by_a_click_and_closes_with_all_that_leads_to_it(page: Page, store: Store):
    open_page(page, "graph", **{**_HERE, "run": "house"})
    before = in_graph(page, _KEYS)
    button = page.locator(".graph .folds")
    expect(button).to_have_text(re.compile(r"^Open (\d chains? and )?\d rooms?$"))
    kinds = "cy => cy.nodes('[kind = \"room\"]').map(node => node.id())"
    rooms = in_graph(page, kinds)
    click_in_graph(page, rooms[0])
    expect(button).to_have_text("Fold 1 room")
    assert in_graph(page, kinds) == rooms[1:]
    within = (
        """(cy, key) => cy.nodes().filter(node => node.data('label').includes('room')).length"""
    )
    assert in_graph(page, within, rooms[0]) >= 9
    assert in_graph(page, _OVERLAPPING) == 0
    button.click()
    assert sorted(in_graph(page, _KEYS)) == sorted(before)
    button.click()
    sql = "SELECT count(DISTINCT (state_id, next_state_id)) AS n FROM edges"
    number = run_trusted_query(store, sql, run_id="house").table["n"][0].as_py()
    assert in_graph(page, "cy => cy.edges().length") == number
    assert in_graph(page, _OVERLAPPING) == 0


def test_find_marks_counts_and_goes_from_one_to_the_next(page: Page, store: Store):
    page.emulate_media(reduced_motion="reduce")
    open_page(page, "graph", **_HERE)
    in_graph(page, _KEYS)
    tab_to(page, ".find input")
    page.keyboard.type("RIGHT 1")
    page.keyboard.press("Enter")
    expect_at(page, "graph", find="RIGHT 1")
    expected = _states(store, "right 1")
    said = page.locator(".find output")
    expect(said).to_have_text(f"{len(expected)} states, at 1")
    current = "cy => cy.$('.current').map(node => node.id())"
    assert in_graph(page, current) == [expected[0]]
    # It was in a folded chain, and is now in the middle.
    off = """(cy, key) => { const {x, y} = cy.getElementById(key).renderedPosition();
        return Math.hypot(x - cy.width() / 2, y - cy.height() / 2); }"""
    assert in_graph(page, off, expected[0]) < 2
    page.keyboard.press("Enter")
    expect(said).to_have_text(f"{len(expected)} states, at 2")
    assert in_graph(page, current) == [expected[1]]
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    expect(said).to_have_text(f"{len(expected)} states, at {len(expected)}")
    page.keyboard.press("Shift+Tab")
    page.locator(".graph").press("Enter")
    expect_at(page, "graph", at=expected[-1])
    expect(page.locator("pre").first).to_contain_text("right 1")
    assert marked(page, "chosen") == {expected[-1]}


def test_a_small_map_shows_where_one_is_and_goes_elsewhere(page: Page):
    open_page(page, "graph", **_HERE)
    in_graph(page, _KEYS)
    small = page.locator(".graph .minimap")
    # Too long to be read as a whole: it begins at the start, and the map shows that there is more.
    expect(small).to_be_visible()
    start = in_graph(page, "cy => cy.getElementById('n0').renderedBoundingBox()")
    assert start["x1"] > 0
    assert in_graph(page, "cy => cy.zoom()") >= 0.4
    page.locator(".graph").press("f")
    expect(small).to_be_hidden()
    for _ in range(8):
        page.locator(".graph").press("+")
    expect(small).to_be_visible()
    box = small.bounding_box()
    assert box is not None
    seen = "cy => (cy.extent().x1 + cy.extent().x2) / 2"
    small.click(position={"x": 12, "y": box["height"] / 2})
    left = in_graph(page, seen)
    small.click(position={"x": box["width"] - 12, "y": box["height"] / 2})
    assert in_graph(page, seen) > left + 500
    assert is_drawn(page)
    page.locator(".graph").press("f")
    expect(small).to_be_hidden()
