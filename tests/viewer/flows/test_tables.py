"""From the runs to a task, through tables that are drawn."""

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
)

pytestmark = pytest.mark.browser


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
