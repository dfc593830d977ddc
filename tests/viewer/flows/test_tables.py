"""From the runs to a task, and from a comparison to a step."""

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from tests.viewer.flows.screen import (
    ask,
    cells,
    choose,
    click_row,
    column,
    expect_at,
    expect_same_after_reload,
    main,
    open_page,
    tab_to,
)

pytestmark = pytest.mark.browser


def test_the_runs_have_the_figures_of_the_store(page: Page, store: Store):
    open_page(page, "runs")
    expect(column(page, "run")).to_have_text(["hostile", "house", "long", "long", "r0", "r0"])
    sql = """
        SELECT
            iteration, avg(success::INTEGER) AS success, avg("return") AS "return",
            avg(num_steps) AS length, count(DISTINCT task_id) AS groups, count(*) AS complete,
            sum(num_steps) AS steps
        FROM trajectories GROUP BY iteration ORDER BY iteration
    """
    for title, expected in ask(store, sql).to_pydict().items():
        shown = cells(page, title)[4:]
        assert [float(cell) for cell in shown] == pytest.approx([float(v) for v in expected]), title


@pytest.mark.slow
def test_tasks_are_found_and_have_the_figures_of_the_store(page: Page, store: Store):
    open_page(page, "runs")
    click_row(page, 5)
    expect_at(page, "tasks", run="r0", iteration=1)
    choose(page, "Estimator", "graphgpo")
    expect_at(page, "tasks", estimator="graphgpo")
    choose(page, "First", "lowest success")
    expect(column(page, "task")).to_have_text(["t1", "t0"])
    choose(page, "Show", "mixed outcomes")
    expect(column(page, "task")).to_have_text(["t0"])
    sql = """
        SELECT
            (SELECT success_rate FROM groups WHERE iteration = 1 AND task_id = 't0') AS success,
            stddev_pop(graphgpo_advantage) AS spread, count(*) AS steps,
            avg((gigpo_advantage * graphgpo_advantage < 0)::INTEGER) AS disagree
        FROM enriched WHERE iteration = 1 AND task_id = 't0'
    """
    for title, expected in ask(store, sql).to_pydict().items():
        assert [float(cell) for cell in cells(page, title)] == pytest.approx(expected), title
    choose(page, "Show", "all")
    page.get_by_role("textbox", name="Find in names").fill("T1")
    page.keyboard.press("Enter")
    expect(column(page, "task")).to_have_text(["t1"])
    expect_at(page, "tasks", find="T1", first="lowest success")
    expect_same_after_reload(page)
    expect(column(page, "task")).to_have_text(["t1"])
    click_row(page, 0)
    expect_at(page, "graph", task="t1", estimator="graphgpo")
    expect(main(page)).to_contain_text("nobody is known to have won")


@pytest.mark.slow
def test_trajectories_are_listed_found_and_opened_by_the_keyboard(page: Page):
    open_page(page, "tasks", run="r0", iteration=1, estimator="graphgpo")
    page.get_by_text("trajectories", exact=True).click()
    expect_at(page, "tasks", list="trajectories")
    choose(page, "Outcome", "not succeeded")
    choose(page, "First", "name")
    page.get_by_role("textbox", name="Find in names").fill("T1")
    page.keyboard.press("Enter")
    expect(column(page, "trajectory")).to_have_text(["p", "q"])
    expect_same_after_reload(page)
    tab_to(page, "canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    expect_at(page, "trajectory", task="t1")
