"""A trajectory, step by step."""

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from tests.viewer.flows.screen import acted, ask, expect_at, expect_same_after_reload, open_page

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 1, "task": "t0", "trajectory": "x", "step": 0}


@pytest.mark.nightly
def test_j_and_k_walk_through_the_steps(page: Page):
    open_page(page, "trajectory", **_HERE)
    did = acted(page)
    expect(did).to_have_text("a")
    for key, step, action in (("j", 1, "b"), ("j", 2, "c"), ("j", 3, "d"), ("k", 2, "c")):
        page.keyboard.press(key)
        expect_at(page, "trajectory", step=step)
        expect(did).to_have_text(action)
    expect_same_after_reload(page)


def test_the_step_with_the_most_credit_is_a_click_away(page: Page, store: Store):
    open_page(page, "trajectory", **_HERE, estimator="graphgpo")
    sql = """
        SELECT arg_max(step_index, graphgpo_advantage) AS step, max(graphgpo_advantage) AS most,
            arg_max(action, graphgpo_advantage) AS action
        FROM enriched WHERE iteration = 1 AND trajectory_id = 'x'
    """
    (best,) = ask(store, sql).to_pylist()
    title = f"Most credit: step {best['step']} ({best['most']:+.2f})"
    page.get_by_role("button", name=title, exact=True).click()
    expect_at(page, "trajectory", step=best["step"])
    expect(acted(page)).to_have_text(best["action"])
    page.get_by_role("link", name="Its state graph").click()
    expect_at(page, "graph", task="t0", trajectory="x", step=best["step"])
