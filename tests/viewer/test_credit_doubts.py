"""Every page that shows credit says when it is stale or mixed."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from tests.viewer.browser import open_page
from tests.viewer.stores import two_tasks
from tests.worlds import worked_example, write_store

WARNING = "Do not rely on all of this credit:"


def _credit(store: Store, name: str) -> None:
    assign_credit(store, CreditSettings(estimators=configure([name])))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return credit by graphgpo, and by grpo in one shard of two: a run was killed amid renames."""
    root = tmp_path_factory.mktemp("mixed") / "s"
    store = write_store(root, two_tasks(), worked_example("t2"))
    _credit(store, "graphgpo")
    path = store.shards()[1].credit_path
    before = path.read_bytes()
    _credit(store, "grpo")
    path.write_bytes(before)
    return store


def _lines(app: AppTest) -> list[str]:
    """Return what stands below the warnings about credit."""
    assert not app.exception
    warnings = [warning.value for warning in app.warning].count(WARNING)
    lines = [code.value for code in app.code if code.value.startswith("the credit of run")]
    assert len(lines) == warnings
    return lines


@pytest.mark.parametrize("page", ["tasks", "graph", "trajectory"])
def test_a_page_says_that_credit_is_mixed(mixed: Store, page: str):
    (line,) = _lines(open_page(mixed, page, run="r0", iteration="0"))
    assert line.startswith("the credit of run r0, iteration 0 by grpo is mixed: 1 of 2 shards have")


def test_a_page_says_that_credit_is_stale_for_another_iteration(tmp_path: Path):
    write_store(tmp_path / "s", worked_example(), iteration=0)
    store = write_store(tmp_path / "s", worked_example(), iteration=1)
    _credit(store, "spo3")
    app = open_page(store, "tasks", run="r0", iteration="1")
    assert _lines(app) == []
    write_store(store.root, worked_example(), worked_example("t2"), iteration=0)
    (line,) = _lines(app.run())
    assert "of other step shards of earlier iterations than there are" in line
