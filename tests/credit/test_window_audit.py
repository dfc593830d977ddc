"""The audit of credit whose distances go back to earlier iterations."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit.check import AuditSeverity
from graphcredit.credit.audit.checks import copies, grouping, outcomes
from graphcredit.credit.audit.run import AuditReport, audit
from graphcredit.credit.estimators.table import ESTIMATORS, configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from tests.credit.audit_worlds import Row, making_only, rollout, sound_group, win
from tests.worlds import write_store

ALL = [row.name for row in ESTIMATORS if row.name not in ("sapo", "reach")]
"""SAPO needs entities, and no group is dead to reach."""
NEVER_LOOK_AT_GRAPHS = ("grpo", "rloo", "gigpo", "hgpo", "spo3")
ABOUT_GROUPS = {check.name for module in (grouping, copies, outcomes) for check in module.CHECKS}


def _two_iterations(root: Path, second: list[Row], window: int) -> Store:
    """Write two sound groups, then `second`, and credit all of it."""
    write_store(root, [*sound_group("t0"), *sound_group("t1")], iteration=0)
    store = write_store(root, second, iteration=1)
    assign_credit(store, CreditSettings(estimators=configure(ALL), graph_window=window))
    return store


def _about_groups(report: AuditReport) -> list[dict[str, Any]]:
    found = report.as_json()["findings"]
    return [finding for finding in found if finding["check"] in ABOUT_GROUPS]


def _faulty() -> list[Row]:
    """Return a dead group, a group of one, one of unequal size, and one that came to new states."""
    return [
        *(step for name in "abcd" for step in rollout(name, f"S {name} S wait S")),
        *win("a", task="t1"),
        *win("a", "S left N right M win G", task="t2"),
        *rollout("b", "S left N", task="t2"),
    ]


@pytest.mark.parametrize(
    ("second", "faults"),
    [
        (_faulty(), {"singleton_groups", "degenerate_groups", "unequal_group_sizes"}),
        ([*sound_group("t0"), *sound_group("t1")], set[str]()),
    ],
)
def test_a_window_changes_nothing_that_the_audit_says_of_groups(
    tmp_path: Path, second: list[Row], faults: set[str]
):
    alone = audit(_two_iterations(tmp_path / "alone", second, 0))
    wide = audit(_two_iterations(tmp_path / "wide", second, 1))
    found = _about_groups(wide)
    assert found == _about_groups(alone)
    names = {finding["check"] for finding in found if finding["places"][0]["iteration"] == 1}
    assert names >= faults
    assert wide.skipped == alone.skipped
    assert wide.count(AuditSeverity.ERROR) == alone.count(AuditSeverity.ERROR) == 0


def _credit(store: Store) -> list[dict[str, Any]]:
    (shard,) = store.shards(iteration=1)
    return pq.ParquetFile(shard.credit_path).read().to_pylist()


def test_a_window_reaches_the_estimators_that_look_at_the_graph_and_no_others(tmp_path: Path):
    alone = _credit(_two_iterations(tmp_path / "alone", _faulty(), 0))
    wide = _credit(_two_iterations(tmp_path / "wide", _faulty(), 1))
    changed = {
        name
        for mine, other in zip(alone, wide, strict=True)
        for name in mine
        if name.endswith("_advantage") and mine[name] != other[name]
    }
    assert not {name for name in changed if name.startswith(NEVER_LOOK_AT_GRAPHS)}
    # All four stay at S, but the window knows how many steps a win from S takes.
    assert [row["goal_distance"] for row in alone[:8]] == [None] * 8
    assert [row["goal_distance"] for row in wide[:8]] == [2] * 8


def _dead(root: Path, second: list[Row], window: int, *estimators: str) -> list[str]:
    """Return the tasks of the second iteration that the audit calls dead."""
    write_store(root, sound_group("t0"), iteration=0)
    store = write_store(root, second, iteration=1)
    assign_credit(store, CreditSettings(estimators=configure(estimators), graph_window=window))
    with making_only("degenerate_groups"):
        found = audit(store, iteration=1).findings
    return [str(place.task_id) for finding in found for place in finding.places]


def test_a_group_that_the_window_tells_apart_is_not_dead(tmp_path: Path):
    lost = [*rollout("a", "S wait S"), *rollout("b", "S up M")]
    assert _dead(tmp_path / "alone", lost, 0, "grpo", "graphgpo") == ["t0"]
    assert _dead(tmp_path / "wide", lost, 1, "grpo", "graphgpo") == []
    assert _dead(tmp_path / "returns", lost, 1, "grpo") == ["t0"]


def test_a_group_of_wins_is_not_dead_where_some_steps_lead_nearer_than_others(tmp_path: Path):
    won = [*win("a"), *win("b", "S wait S up M win G")]
    assert _dead(tmp_path / "returns", won, 0, "grpo", "rloo") == ["t0"]
    assert _dead(tmp_path / "graph", won, 0, "grpo", "graphgpo") == []
