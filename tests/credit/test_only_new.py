"""`credit --new`: iterations that have the credit already are left alone."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from tests.cli.in_process import completed as graphcredit
from tests.worlds import trajectory, worked_example, write_store


def _credit(store: Store, *estimators: str, **options: Any) -> list[int]:
    """Return the iterations that were credited."""
    settings = CreditSettings(estimators=configure(estimators), **options)
    return [iteration for _, iteration in assign_credit(store, settings, only_new=True)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    for iteration in range(3):
        made = write_store(tmp_path / "s", worked_example(), iteration=iteration)
    return made


def test_only_what_is_missing_or_of_other_settings_is_credited(store: Store):
    assert _credit(store, "grpo", "graphgpo") == [0, 1, 2]
    assert _credit(store, "grpo", "graphgpo") == []
    assert _credit(store, "graphgpo") == []
    assert _credit(store, "grpo", "rloo") == [0, 1, 2]
    assert _credit(store, "graphgpo", invalid_action_penalty=1.0) == [0, 1, 2]
    assert _credit(store, "graphgpo", invalid_action_penalty=1.0) == []


def test_a_late_shard_makes_its_iteration_new_and_those_that_read_it(store: Store):
    assert _credit(store, "grpo", "spo3") == [0, 1, 2]
    late = trajectory("late", "A a B", task_id="t0", success=True)
    write_store(store.root, worked_example(), late, iteration=1)
    assert _credit(store, "grpo") == [1]
    assert _credit(store, "spo3") == [1, 2]
    assert _credit(store, "grpo", "spo3") == []


def test_credit_that_is_gone_is_made_again_and_nothing_else_is_written(store: Store):
    _credit(store, "grpo")
    before = {shard.credit_path: shard.credit_path.stat().st_mtime_ns for shard in store.shards()}
    gone = store.shards()[1].credit_path
    gone.unlink()
    assert _credit(store, "grpo") == [1]
    after = {shard.credit_path: shard.credit_path.stat().st_mtime_ns for shard in store.shards()}
    assert {path for path in before if before[path] != after[path]} == {gone}


def test_the_command_says_when_there_is_nothing_to_do(store: Store):
    first = graphcredit("credit", store.root, "-e", "grpo", "--new")
    assert "in 3 groups, 3 iterations" in first.stdout
    again = graphcredit("credit", store.root, "-e", "grpo", "--new")
    assert (again.returncode, again.stdout) == (
        0,
        "every iteration has this credit already: nothing to do\n",
    )
