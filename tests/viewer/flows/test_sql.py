"""A question in SQL, and its answer as a file."""

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from tests.viewer.flows.screen import ask, cells, column, expect_at, open_page

pytestmark = pytest.mark.browser

_QUERY = """SELECT trajectory_id, step_index, graphgpo_advantage FROM enriched
WHERE run_id = 'r0' AND iteration = 1 ORDER BY ALL"""


@pytest.mark.nightly
def test_an_answer_is_shown(page: Page, store: Store):
    open_page(page, "sql")
    page.get_by_role("textbox", name="Query").fill(_QUERY)
    page.keyboard.press("Control+Enter")
    answer = ask(store, _QUERY)
    expect(page.get_by_text("12 rows in")).to_be_visible()
    expect(column(page, "trajectory_id")).to_have_text(answer["trajectory_id"].to_pylist())
    shown = [float(cell) for cell in cells(page, "graphgpo_advantage")]
    assert shown == pytest.approx(answer["graphgpo_advantage"].to_pylist())
    expect_at(page, "sql", q=_QUERY)


@pytest.mark.nightly
def test_one_query_after_the_other_is_run(page: Page):
    open_page(page, "sql")
    for query in ("SELECT 1 AS found", "SELECT 2 AS found", "SELECT 3 AS found"):
        page.get_by_role("textbox", name="Query").fill(query)
        page.keyboard.press("Control+Enter")
        expect(column(page, "found")).to_have_text([query.split()[1]])
        expect_at(page, "sql", q=query)


@pytest.mark.nightly
def test_a_ready_query_is_one_choice_and_stays_in_the_address(page: Page):
    open_page(page, "sql")
    page.get_by_role("combobox", name="Ready queries").click()
    page.get_by_role("option", name="Groups that teach nothing").click()
    expect(column(page, "task_id")).to_have_text(["t0", "t1"])
    page.reload()
    expect(column(page, "task_id")).to_have_text(["t0", "t1"])


def test_a_query_that_would_write_is_refused(page: Page, store: Store):
    shard = store.shards("r0", 1)[0].path
    before = shard.read_bytes()
    open_page(page, "sql", q=f"COPY (SELECT 1) TO '{shard}' (FORMAT parquet, USE_TMP_FILE false)")
    expect(page.get_by_text("The query has no result:")).to_be_visible()
    assert shard.read_bytes() == before
    assert page.get_by_test_id("stDataFrame").count() == 0
