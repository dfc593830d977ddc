"""A graph of more states than can be read at once: find, the small map."""

import struct
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from tests.viewer.flows.screen import (
    download,
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


def test_all_is_drawn_apart_and_a_saved_picture_has_room_for_its_title_and_legend(
    page: Page, store: Store, tmp_path: Path
):
    open_page(page, "graph", **_HERE)
    assert sorted(in_graph(page, _KEYS)) == sorted(_states(store))
    sql = "SELECT count(DISTINCT (state_id, next_state_id)) AS n FROM edges WHERE iteration = 0"
    number = run_trusted_query(store, sql, run_id="long").table["n"][0].as_py()
    assert in_graph(page, "cy => cy.edges().length") == number
    assert in_graph(page, _OVERLAPPING) == 0
    content = download(page, "PNG", tmp_path).read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    shape = "cy => { const box = cy.elements().boundingBox(); return box.h / box.w }"
    # Title, two scales and three lines below, at whatever scale the drawing is.
    assert height > in_graph(page, shape) * (width - 48) + 150
    svg = download(page, "Export as SVG", tmp_path).read_text()
    assert svg.startswith("<svg")
    assert "graphgpo advantage" in svg


def test_curves_and_labels_are_where_python_put_them(page: Page):
    open_page(page, "graph", **{**_HERE, "run": "house"})
    off = """cy => Math.max(...cy.edges('[bends]').map(edge => {
        const { x, y } = edge.midpoint(), points = edge.controlPoints(), half = points.length / 2;
        if (half % 1) return 0;
        const [one, two] = [points[half - 1], points[half]];
        return Math.hypot(x - (one.x + two.x) / 2, y - (one.y + two.y) / 2); }))"""
    assert in_graph(page, off) < 1


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
    # It is now in the middle, with its label below it.
    off = """(cy, key) => { const { x1, x2, y1, y2 } = cy.getElementById(key).renderedBoundingBox();
        return Math.hypot((x1 + x2 - cy.width()) / 2, (y1 + y2 - cy.height()) / 2); }"""
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
    open_page(page, "graph", **{**_HERE, "view": "matters"})
    in_graph(page, _KEYS)
    small = page.locator(".graph .minimap")
    # Too long to be read as a whole: the map shows that there is more.
    expect(small).to_be_visible()
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


@pytest.mark.parametrize("view", ["matters", "everything"])
def test_the_first_view_has_credit_and_the_goal_or_its_sign_and_words_that_can_be_read(
    page: Page, view: str
):
    open_page(page, "graph", **{**_HERE, "view": view})
    in_graph(page, _KEYS)
    seen = """cy => { const [view, goal] = [cy.extent(), cy.nodes("[kind='goal']").position()];
        return [view.x1 < goal.x && goal.x < view.x2, 15 * cy.zoom()]; }"""
    is_there, letters = in_graph(page, seen)
    assert letters >= 9
    sign = page.locator(".graph .to-goal")
    expect(sign).to_be_hidden() if is_there else expect(sign).to_be_visible()
    # The frame ends with the window.
    box = page.locator(".graph").bounding_box()
    assert box is not None
    assert page.viewport_size is not None
    assert box["y"] + box["height"] <= max(page.viewport_size["height"], box["y"] + 440)
    for _ in range(40):
        page.locator(".graph").press("ArrowLeft")
    expect(sign).to_have_text("GOAL ▶")
    sign.click()
    expect(sign).to_be_hidden()


def test_in_a_narrow_window_states_have_words_that_can_be_read(page: Page):
    page.set_viewport_size({"width": 400, "height": 800})
    open_page(page, "graph", **{**_HERE, "view": "matters"})
    in_graph(page, _KEYS)
    letters = "cy => cy.nodes('[?box]').map(n => n.numericStyle('font-size') * cy.zoom())"
    assert min(in_graph(page, letters)) >= 9
