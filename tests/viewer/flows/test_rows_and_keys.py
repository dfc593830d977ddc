"""Rows of tables, the way back, tabs and a narrow window, as a person meets them."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.viewer.flows.screen import expect_at, in_graph, open_page, tab_to

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 1, "estimator": "graphgpo"}


def _click_cell(page: Page, row: int, x: int = 260) -> None:
    frame = page.get_by_test_id("stDataFrame").first
    expect(frame.get_by_test_id(f"glide-cell-1-{row}")).to_be_attached()
    frame.locator(".dvn-scroller").click(position={"x": x, "y": 36 + 35 * row + 17})


def test_a_click_anywhere_on_a_row_opens_it_and_one_step_back_is_one_page(page: Page):
    open_page(page, "tasks", **_HERE)
    _click_cell(page, 0)
    expect_at(page, "graph", task="t0")
    in_graph(page, "cy => cy.nodes().length")
    expect(page).to_have_title(re.compile(r"^t0 · Graph · "))
    page.get_by_role("button").filter(has_text="→").first.click()
    expect(page).to_have_url(re.compile(r"[?&]at=e"))
    page.get_by_text("What matters").click()
    expect(page).to_have_url(re.compile(r"[?&]view=matters"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/tasks\?"))
    expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    expect(page).to_have_title(re.compile(r"Tasks · "))


@pytest.mark.slow
def test_a_row_opens_by_enter_and_a_table_is_left_by_one_tab(page: Page):
    open_page(page, "tasks", **_HERE)
    tab_to(page, "canvas")
    first = page.get_by_test_id("stDataFrame").first.locator("canvas:focus")
    expect(first).to_have_count(1)
    page.keyboard.press("Tab")
    expect(first).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect_at(page, "graph")


@pytest.mark.slow
def test_in_a_narrow_window_the_graph_comes_first_and_choices_unfold(page: Page):
    page.set_viewport_size({"width": 400, "height": 800})
    open_page(page, "graph", **_HERE, task="t0")
    in_graph(page, "cy => cy.nodes().length")
    estimator = page.get_by_role("combobox", name="Estimator")
    expect(estimator).not_to_be_visible()
    expect(page.locator(".graph")).to_be_in_viewport(ratio=0.6)
    page.get_by_text("Choose what is shown").click()
    expect(estimator).to_be_visible()
    page.get_by_text("Choose what is shown").click()
    expect(estimator).not_to_be_visible()
    page.set_viewport_size({"width": 1600, "height": 1000})
    # A wide window has nothing to unfold them with.
    expect(estimator).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(estimator).not_to_be_visible()
