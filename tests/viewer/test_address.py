"""What an address may leave out, and what a browser's tab is called."""

import pytest

from graphcredit.store import Store
from tests.viewer.browser import markdown_of, open_page
from tests.viewer.stores import credited, two_tasks
from tests.worlds import worked_example


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with x in two iterations of r0, and p only in r0/0."""
    root = tmp_path_factory.mktemp("address") / "s"
    credited(root, two_tasks())
    credited(root, worked_example(), iteration=1)
    return credited(root, worked_example("t2"), run_id="r1")


@pytest.mark.parametrize("page", ["trajectory", "graph"])
def test_the_id_of_a_trajectory_is_enough(store: Store, page: str):
    app = open_page(store, page, trajectory="p", step=1)
    assert not [warning for warning in app.warning if "address" in warning.value]
    found = {name: app.query_params[name] for name in ("run", "iteration", "task", "trajectory")}
    assert found == {"run": "r0", "iteration": "0", "task": "t1", "trajectory": "p"}
    assert app.query_params["step"] == "1"


def test_of_several_the_last_one_is_shown_and_said(store: Store):
    app = open_page(store, "trajectory", trajectory="x")
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "1")
    assert "2 rollouts have this id: the last one is shown." in markdown_of(app)
    app = open_page(store, "trajectory", trajectory="x", iteration=0)
    assert app.query_params["iteration"] == "0"
    assert "have this id" not in markdown_of(app)


def test_an_id_that_is_nowhere_is_named(store: Store):
    app = open_page(store, "trajectory", trajectory="nobody")
    assert app.warning[0].value == "The store has no rollout `nobody` there."
