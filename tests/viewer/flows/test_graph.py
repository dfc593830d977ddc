"""A task's state graph under the mouse."""

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from graphcredit.viewer.widgets.colours import SignedScale
from tests.viewer.flows.screen import (
    acted,
    ask,
    choose,
    click_in_graph,
    expect_at,
    expect_same_after_reload,
    in_graph,
    marked,
    open_page,
)

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 1, "task": "t0"}


def _colours(store: Store, estimator: str) -> dict[str, str]:
    """Return the colours that the transitions should have."""
    sql = f"""
        SELECT 'e' || state_id || '-' || next_state_id AS key, avg({estimator}_advantage) AS mean
        FROM enriched WHERE iteration = 1 AND task_id = 't0' GROUP BY ALL
    """
    means = {row["key"]: row["mean"] for row in ask(store, sql).to_pylist()}
    scale = SignedScale.of(means.values())
    return {key: scale.colour(mean) for key, mean in means.items()}


def _drawn_colours(page: Page) -> dict[str, str]:
    script = "cy => Object.fromEntries(cy.edges().map(e => [e.id(), e.data('colour')]))"
    return in_graph(page, script)


@pytest.mark.nightly
def test_the_colours_are_the_credit_of_the_chosen_estimator(page: Page, store: Store):
    open_page(page, "graph", **_HERE, estimator="gigpo")
    legend = page.locator(".graph .legend")
    for estimator in ("gigpo", "graphgpo"):
        choose(page, "Estimator", estimator)
        expect(legend).to_contain_text(f"edge: {estimator} advantage")
        assert _drawn_colours(page) == _colours(store, estimator)
    assert _colours(store, "gigpo") != _colours(store, "graphgpo")
    choose(page, "Compare with", "gigpo")
    expect(legend).to_contain_text("yellow: the signs differ")


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


@pytest.mark.nightly
def test_a_click_on_a_transition_shows_its_steps_and_leads_to_them(page: Page, store: Store):
    open_page(page, "graph", **_HERE, estimator="graphgpo")
    click_in_graph(page, "e0-2")
    expect_at(page, "graph", at="e0-2")
    expect(page.get_by_role("link", name="x, step")).to_have_count(1)
    page.get_by_role("link", name="y, step 0").click()
    expect_at(page, "trajectory", task="t0", trajectory="y", step=0)
    expect(acted(page)).to_have_text("c")


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
