"""A task's state graph under the mouse."""

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from tests.viewer.flows.screen import (
    ask,
    choose,
    click_in_graph,
    expect_at,
    expect_same_after_reload,
    marked,
    open_page,
)

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 1, "task": "t0"}


def test_a_click_on_a_state_shows_its_text_and_ranks_its_actions(page: Page, store: Store):
    open_page(page, "graph", **_HERE, estimator="graphgpo")
    click_in_graph(page, "n2")
    expect_at(page, "graph", at="n2")
    expect(page.locator("pre")).to_have_text("C")
    sql = """
        SELECT action, avg(graphgpo_advantage) AS mean FROM enriched
        WHERE iteration = 1 AND task_id = 't0' AND state_id = 2 GROUP BY ALL ORDER BY mean DESC
    """
    starts = [f"{row['mean']:+.2f} {row['action']} →" for row in ask(store, sql).to_pylist()]
    assert len(starts) == 2
    ranked = page.get_by_role("button").filter(has_text="→")
    expect(ranked).to_contain_text(starts)
    assert marked(page, "chosen") == {"n2"}


@pytest.mark.slow
def test_a_trajectory_is_laid_over_the_graph_and_stays_there(page: Page, store: Store):
    open_page(page, "graph", **_HERE, estimator="graphgpo")
    choose(page, "Rollout laid over it", "succeeded · 4 steps · x")
    expect(page.get_by_text("Its steps, the most credited first")).to_be_visible()
    sql = """
        SELECT unnest(['n' || state_id, 'n' || next_state_id,
            'e' || state_id || '-' || next_state_id]) AS key
        FROM credit WHERE iteration = 1 AND trajectory_id = 'x'
    """
    on_the_way = set(ask(store, sql)["key"].to_pylist())
    assert marked(page, "path") == on_the_way
    page.get_by_role("radio", name="Trajectory", exact=True).click()
    expect_at(page, "graph", trajectory="x", view="trajectory")
    expect(page.get_by_text("4 of 5 states")).to_be_visible()
    click_in_graph(page, "n1")
    expect_at(page, "graph", at="n1")
    expect(page.locator("pre")).to_have_text("B")
    expect_same_after_reload(page)
    assert marked(page, "path") == on_the_way
    assert marked(page, "chosen") == {"n1"}
