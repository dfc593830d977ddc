"""Every check finds its planted fault, and is silent on a store without it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from graphcredit.credit.audit.check import AuditSeverity
from graphcredit.credit.audit.run import CHECKS, audit
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store
from graphcredit.store.errors import InputError, NothingToCreditError, OptionError, SchemaError
from tests.credit.audit_worlds import (
    START,
    Row,
    at,
    change_configuration,
    change_credit,
    credited,
    making_only,
    merged_without_noise,
    renamed,
    rollout,
    sound,
    sound_group,
    win,
)
from tests.credit.other_version import as_made_before
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import write_store

ERROR, WARNING, INFO = AuditSeverity.ERROR, AuditSeverity.WARNING, AuditSeverity.INFO
LONG = "S up M up N up O up P win G"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A store with a fault, and what the audit says of it."""

    check: str
    make: Callable[[Path], Store]
    counted: tuple[int, int]
    """Affected, and total."""
    detail: str
    """Of the worst place."""
    severity: AuditSeverity = WARNING
    task: str | None = "t0"
    thresholds: dict[str, Any] = field(default_factory=dict[str, Any])


def _plain(*shards: list[Row]) -> Callable[[Path], Store]:
    return lambda root: write_store(root, *shards)


def _credited(*shards: list[Row], settings: tuple[str, ...] = ()) -> Callable[[Path], Store]:
    return lambda root: credited(root, *shards, settings=settings)


def _changed(change: Callable[[Row], Row]) -> Callable[[Path], Store]:
    """Return the sound store with credit that another program changed in t0."""
    return lambda root: change_credit(
        sound(root), lambda row: change(row) if row["task_id"] == "t0" else {}
    )


def _grown(root: Path) -> Store:
    store = credited(root, sound_group())
    return write_store(store.root, sound_group(), renamed(rollout("e", "S up M"), "t0-e"))


def _killed(root: Path) -> Store:
    store = credited(root, sound_group("t0"), sound_group("t1"))
    path = store.shards()[1].credit_path
    before = path.read_bytes()
    assign_credit(store, CreditSettings(estimators=configure(["grpo"], ["grpo.normalize=none"])))
    path.write_bytes(before)
    return store


def _credited_long_ago(root: Path) -> Store:
    store = credited(root, sound_group())
    assign_credit(store, CreditSettings(estimators=configure(["spo3"])))
    as_made_before(store)
    return store


def _dead_group() -> list[Row]:
    rows = [rollout(name, f"S {name} S wait S") for name in ("a", "b", "c", "d")]
    return [step for trajectory in rows for step in trajectory]


def _merged(guard: bool, **actions: list[list[str] | None]) -> Callable[[Path], Store]:
    return lambda root: merged_without_noise(root, guard, **actions)


GROUP = sound_group()
COPY = renamed(GROUP[:2], "t0-copy")
"""Trajectory a once more: the same times, too."""

FAULTS = (
    Fault(
        check="incomplete_trajectories",
        make=_plain([*sound_group(), *rollout("dead", "S up M", success=None)]),
        counted=(1, 5),
        detail="t0-dead of 5 rollouts",
    ),
    Fault(
        check="singleton_groups",
        make=_plain([row | {"task_id": row["trajectory_id"]} for row in sound_group()]),
        severity=ERROR,
        counted=(4, 4),
        task="t0-a",
        detail="t0-a is alone; 3 other singletons of the iteration begin in its state",
    ),
    Fault(
        check="unequal_group_sizes",
        make=_plain([*sound_group("t0")[:-2], *sound_group("t1"), *sound_group("t2")]),
        counted=(1, 3),
        detail="3 rollouts, where 4 are usual",
    ),
    Fault(
        check="unequal_group_sizes",
        make=_plain([*sound_group("t0")[:-1], *sound_group("t1"), *sound_group("t2")]),
        counted=(1, 3),
        detail="3 rollouts, where 4 are usual; 1 more are incomplete",
    ),
    Fault(
        check="degenerate_groups",
        make=_plain(_dead_group()),
        counted=(1, 1),
        detail="all 4 rollouts (8 steps, 0 successful) have return 0",
    ),
    Fault(
        check="different_first_states",
        make=_plain([*sound_group()[:-2], *rollout("d", "X look S wait S")]),
        counted=(1, 4),
        detail="t0-d begin in 1 state other than that of t0-a and 2 more",
    ),
    Fault(
        check="different_first_states",
        make=_credited([*sound_group()[:-2], *rollout("d", "X look S wait S")]),
        counted=(1, 4),
        detail="t0-d begin in 1 state other than that of t0-a and 2 more",
    ),
    Fault(
        check="unmixed_classes",
        make=_plain(
            [
                *rollout("a", "S ok A wait A"),
                *rollout("b", "S ok A look A"),
                *win("c", "S ok B wait C win G"),
                *win("d", "S ok B win G"),
            ]
        ),
        counted=(4, 4),
        detail="2 classes that share no state after the same first step, among 4 rollouts",
    ),
    Fault(
        check="one_outcome",
        make=_plain(_dead_group()),
        counted=(4, 4),
        task=None,
        detail="all 4 failed",
    ),
    Fault(
        check="one_outcome",
        make=_plain(
            [*win("a", "S win G"), *win("b", "S win G"), *rollout("c", "S wait S", success=None)]
        ),
        counted=(2, 2),
        task=None,
        detail="all 2 succeeded; 1 more have no verdict: judging one outcome alone is selection",
    ),
    Fault(
        # Lengths 2, 2, 2, 20: (26)² / (4 + 4 + 4 + 400) = 1.64; 20 / (26 / 4) = 3.08.
        check="unequal_step_weights",
        make=_plain([*sound_group()[:-2], *rollout("d", "S look " * 20 + "S")]),
        counted=(1, 1),
        detail="effective size 1.6 of 4: t0-d has 20 of 26 steps, 3.1 times an equal share",
    ),
    Fault(
        check="copied_trajectories",
        make=_plain([*GROUP, *COPY]),
        severity=ERROR,
        counted=(2, 5),
        detail="t0-a, t0-copy (2 steps)",
    ),
    Fault(
        check="equal_trajectories",
        make=_plain([*sound_group(), *win("e", LONG), *win("f", LONG)]),
        counted=(2, 6),
        detail="t0-e, t0-f (5 steps)",
    ),
    Fault(
        # Where all times are equal, they tell no rollouts apart.
        check="equal_trajectories",
        make=_plain(at([*sound_group(), *win("e", LONG), *win("f", LONG)], START)),
        counted=(2, 6),
        detail="t0-e, t0-f (5 steps)",
    ),
    Fault(
        check="success_below_failure",
        make=_plain([*sound_group(), *rollout("e", "S wait S sit S", rewards=[1, 0.5])]),
        severity=ERROR,
        counted=(2, 2),
        detail="t0-a succeeded with return 1, t0-e failed with 1.5",
    ),
    Fault(
        check="success_without_reward",
        make=_plain([*sound_group(), *win("e", rewards=[0, 0])]),
        counted=(1, 3),
        detail="t0-e succeeded with return 0",
    ),
    Fault(
        check="stale_credit",
        make=_grown,
        severity=ERROR,
        counted=(1, 1),
        detail="1 of 5 rollouts have no credit",
    ),
    Fault(
        check="stale_credit",
        make=_changed(lambda row: {"group_size": 3}),
        severity=ERROR,
        counted=(1, 2),
        detail="credited as a group of 3, has 4 rollouts",
    ),
    *[
        Fault(
            check="infinite_credit",
            make=_changed(
                lambda row, name=name, value=value: {name: value} if row["state"] == "M" else {}
            ),
            severity=ERROR,
            counted=(2, 16),
            detail="first at step 1 of t0-a",
        )
        for name in ("graphgpo_advantage", "goal_distance")
        for value in (float("inf"), float("-inf"))
    ],
    Fault(
        check="outdated_credit",
        make=_killed,
        severity=ERROR,
        counted=(1, 7),
        task=None,
        detail="grpo: its shards were made in 2 ways",
    ),
    Fault(
        check="outdated_credit",
        make=_grown,
        severity=ERROR,
        counted=(7, 7),
        task=None,
        detail="g2po: it was made of other step shards than there are",
    ),
    Fault(
        check="outdated_credit",
        make=_credited_long_ago,
        severity=ERROR,
        counted=(1, 8),
        task=None,
        detail="another version of the formula made spo3",
    ),
    Fault(
        # 1, 1, 0, 0 are returns that nobody centred. 12 balanced columns, 2 groups.
        check="unbalanced_advantages",
        make=_changed(
            lambda row: {"grpo_advantage": float(row["action"] in ("up", "win", "jump"))}
        ),
        severity=ERROR,
        counted=(1, 24),
        detail="grpo_advantage: mean +0.5 over 4 rollouts, +0.5 over their 8 steps, should be "
        "0 over rollouts; largest 1",
    ),
    Fault(
        check="unbalanced_advantages",
        make=_changed(lambda row: {"gigpo_step_advantage": 2.0 * (row["state"] == "M")}),
        severity=ERROR,
        counted=(1, 24),
        detail="gigpo_step_advantage: mean +2 over 2 steps from node 1, should be 0; largest 2",
    ),
    Fault(
        # Of the steps of t0, 4 are ups and wins.
        check="unbalanced_advantages",
        make=_changed(lambda row: {"g2po_step_advantage": float(row["state"] == "M")}),
        severity=ERROR,
        counted=(1, 24),
        detail="g2po_step_advantage: mean +0.25 over 8 steps of the group, should be 0; largest 1",
    ),
    Fault(
        check="late_credit",
        make=_changed(
            lambda row: {"grpo_advantage": row["grpo_advantage"] * 0.01 ** (row["step_index"] == 0)}
        ),
        counted=(1, 14),
        task="t0",
        detail="grpo: the first half of its rollouts of 2 steps and more has 1.0 % of all credit, "
        "where equal shares are 50 %",
        thresholds={"min_long_steps": 2},
    ),
    Fault(
        check="steps_alone",
        make=_credited(
            [*win("a", "S up M win G"), *win("b", "S in N win G"), *win("c", "S on O win G")]
        ),
        severity=INFO,
        counted=(3, 6),
        detail="3 of 6 steps",
    ),
    Fault(
        check="steps_alone",
        make=_credited(
            [*win("a", "S up M win G"), *win("b", "S in N win G"), *win("c", "S on O win G")]
        ),
        counted=(3, 6),
        detail="3 of 6 steps",
        thresholds={"max_alone_share": 0.4},
    ),
    Fault(
        # (S, up) three times, to M and to N; (S, wait) and (S, look) twice each; the rest once.
        check="aliased_actions",
        make=_credited([*sound_group(), *win("e", "S up N jump M win G")]),
        counted=(1, 4),
        detail='"up" at node 0 led to nodes 1 (2x), 2 (1x)',
    ),
    Fault(
        check="mixed_merges",
        make=_merged(False, plain=[["up", "wait"]], noisy=[["up", "wait", "win"]]),
        severity=ERROR,
        counted=(1, 1),
        detail='node 0 (2 texts, "S") joins texts that differ in their admissible actions in 2 '
        "ways, for example at t0-a step 0, t0-c step 0",
    ),
)


@pytest.mark.parametrize(
    "fault", FAULTS, ids=[f"{number}-{fault.check}" for number, fault in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found_with_its_task_its_number_and_its_remedy(
    tmp_path: Path, fault: Fault
):
    store = fault.make(tmp_path / "s")
    with making_only(fault.check):
        report = audit(store, thresholds=AuditThresholds(**fault.thresholds))
    (finding,) = report.findings
    assert (finding.severity, finding.number, finding.total) == (fault.severity, *fault.counted)
    place = finding.places[0]
    assert (place.run_id, place.iteration, place.task_id) == ("r0", 0, fault.task)
    assert place.detail == fault.detail
    assert finding.check.remedy


def test_every_check_has_a_planted_fault():
    assert {fault.check for fault in FAULTS} == {check.name for check in CHECKS}


def test_a_sound_store_is_checked_in_full_and_nothing_is_found(tmp_path: Path):
    report = audit(sound(tmp_path / "s"))
    assert [finding.message for finding in report.findings] == []
    assert repr(report) == "0 errors, 0 warnings, 0 to know"
    assert report.skipped == {}


SOUND: dict[str, tuple[str, Callable[[Path], Store]]] = {
    "episode statistics over steps, as the options say": (
        "unbalanced_advantages",
        _credited(
            [*sound_group(), *rollout("e", "S wait S look S look S")],
            settings=("grpo.stat_over=steps", "gigpo.stat_over=steps"),
        ),
    ),
    "late credit of a rollout that is alone": (
        "late_credit",
        lambda root: change_credit(
            credited(root, win("a", " ".join(f"S{n} up" for n in range(40)) + " G")),
            lambda row: {"grpo_advantage": float(row["step_index"] > 30)},
        ),
    ),
    "a mean that is less than float32 has near 0": (
        "unbalanced_advantages",
        _changed(lambda row: {"grpo_advantage": 1e-45 * (row["action"] == "jump")}),
    ),
    "merged states with the same admissible actions in another order": (
        "mixed_merges",
        _merged(True, plain=[["up", "wait"]], noisy=[["wait", "up"]]),
    ),
    "merged states that each have the same several sets of admissible actions": (
        "mixed_merges",
        _merged(True, plain=[["up"], ["up", "wait"]], noisy=[["up"], ["up", "wait"]]),
    ),
    "a merged state whose admissible actions are not known": (
        "mixed_merges",
        _merged(True, plain=[["up"], ["up", "wait"]], noisy=[None]),
    ),
    "groups of one beside a group of several, where groups of one are usual": (
        "unequal_group_sizes",
        _plain([*sound_group("t0"), *rollout("a", "S wait S", task="t1")]),
    ),
    "first states whose texts differ by noise that a merge removed": (
        "different_first_states",
        lambda root: change_credit(
            credited(root, [*sound_group()[:-2], *rollout("d", "S! look S wait S")]),
            lambda row: {"state_id": 0} if row["state"] == "S!" else {},
        ),
    ),
    "classes that meet in a later state": (
        "unmixed_classes",
        _plain(
            [
                *rollout("a", "S ok A wait C"),
                *rollout("b", "S ok A look C wait C"),
                *win("c", "S ok B wait C win G"),
                *win("d", "S ok B win G"),
            ]
        ),
    ),
    "equal steps at equal times in another iteration": (
        "copied_trajectories",
        lambda root: write_store(write_store(root, sound_group()).root, sound_group(), iteration=1),
    ),
    "successes with rewards like those of failures": (
        "success_below_failure",
        _plain([*sound_group(), *rollout("e", "S wait S sit S", rewards=[1, 0])]),
    ),
    "actions with several outcomes in different groups": (
        "aliased_actions",
        _credited([*sound_group("t0"), *win("a", "S up N win G", task="t1")]),
    ),
    "credit that an older iteration lacks altogether": (
        "stale_credit",
        lambda root: write_store(credited(root, sound_group()).root, sound_group(), iteration=1),
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("check", "make"), SOUND.values(), ids=SOUND.keys())
def test_what_only_looks_like_a_fault_is_not_found(
    tmp_path: Path, check: str, make: Callable[[Path], Store]
):
    store = make(tmp_path / "s")
    with making_only(check):
        report = audit(store)
    assert (report.findings, report.skipped) == ((), {})


def test_statistics_over_steps_are_unbalanced_where_the_options_say_trajectories(tmp_path: Path):
    rows = [*sound_group(), *rollout("e", "S wait S look S look S")]
    store = credited(tmp_path / "s", rows, settings=("grpo.stat_over=steps",))
    change_configuration(store, {}, shard=0)
    with making_only("unbalanced_advantages"):
        (finding,) = audit(store).findings
    assert finding.num_places == 2
    assert "+0 over their 11 steps, should be 0 over rollouts" in finding.places[0].detail


def test_a_store_without_credit_gets_what_needs_steps_alone(tmp_path: Path):
    report = audit(write_store(tmp_path / "s", sound_group()))
    assert report.findings == ()
    assert report.skipped == {c.name: c.needs for c in CHECKS if c.needs != "steps"}
    assert set(report.numbers) == {"group sizes", "returns", "step weight"}


def test_the_numbers_of_the_sound_store(tmp_path: Path):
    numbers = audit(sound(tmp_path / "s")).numbers
    assert numbers["group sizes"] == {"4": 2}
    assert numbers["returns"] == {
        "mean": 0.5,
        "std": pytest.approx((8 * 0.25 / 7) ** 0.5),
        "min": 0,
        "max": 1,
        "mean of successes": 1,
        "mean of failures": 0,
    }
    assert list(numbers["step weight"].values()) == [1, 1, 0.5, 0.5]
    # S is left 6 times in each group, M twice.
    assert numbers["state group sizes"] == {"2-3": 2, "4-7": 2}
    assert numbers["advantages"]["grpo mean"] == pytest.approx(0, abs=1e-7)


def test_true_distances_judge_every_estimator(tmp_path: Path):
    rows = sound_group()
    for row, before, after in zip(
        rows, [2, 1] * 2 + [2] * 4, [1, 0] * 2 + [2, 1, 2, 2], strict=True
    ):
        row |= {"oracle_distance": before, "next_oracle_distance": after}
    report = audit(credited(tmp_path / "s", rows))
    # Ranks of progress: 0 three times (2), 1 five times (6). GRPO: failures (2.5), successes (6.5).
    # Covariance 4·2·(6 - 4.5) + (6 - 4.5)(-2) + 3·(-2.5)(-2) = 24; squares 30 and 32.
    judged = report.numbers["rank correlation with true progress"]
    assert judged["grpo"] == pytest.approx(24 / (30 * 32) ** 0.5)
    # One step of a failure led nearer; GRPO's credit is the same for all four.
    assert report.numbers["rank correlation in failures"]["grpo"] == 0
    assert report.numbers["sign agreement with true progress"]["grpo"] == 4 / 5
    assert report.numbers["steps without a signal"]["grpo"] == 0
    assert report.numbers["groups that were judged"] == {
        "with credit": 1,
        "with progress that varies": 1,
        "with progress that varies in failures": 1,
    }


def test_a_rare_fault_is_only_something_to_know(tmp_path: Path):
    rows = [*sound_group("t0"), *sound_group("t1"), *win("x", task="t2")]
    store = write_store(tmp_path / "s", rows)
    for limit, severity in ((0.34, INFO), (0.33, ERROR)):
        report = audit(store, thresholds=AuditThresholds(max_singleton_share=limit))
        severities = {finding.check.name: finding.severity for finding in report.findings}
        assert severities["singleton_groups"] is severity
    assert report.findings[0].severity is ERROR


def test_only_the_worst_places_are_named_and_all_are_counted(tmp_path: Path):
    rows = [row for number in range(7) for row in win("x", task=f"t{number}")]
    store = write_store(tmp_path / "s", rows)
    with making_only("singleton_groups"):
        (finding,) = audit(store).findings
    assert [place.task_id for place in finding.places] == ["t0", "t1", "t2", "t3", "t4"]
    assert (finding.number, finding.num_places) == (7, 7)


def test_one_run_or_iteration_is_audited_alone(tmp_path: Path):
    store = write_store(tmp_path / "s", sound_group())
    write_store(store.root, win("x"), run_id="r1", iteration=3)
    write_store(store.root, sound_group(), run_id="r1", iteration=4)
    padded = store.steps_dir("r1", 3)
    padded.rename(padded.with_name("iteration=03"))
    for run, iteration, num_groups in (
        (None, None, 3),
        ("r0", None, 1),
        ("r1", None, 2),
        ("r1", 3, 1),
        (None, 4, 1),
    ):
        with making_only("singleton_groups"):
            report = audit(store, run_id=run, iteration=iteration)
        assert sum(report.numbers["group sizes"].values()) == num_groups
        assert bool(report.findings) == (run != "r0" and iteration != 4)


@pytest.mark.parametrize("broken", [{"reward": float("nan")}, {"cost": 0.0}], ids=str)
def test_what_credit_refuses_is_incomplete_and_leaves_no_credit_stale(
    tmp_path: Path, broken: dict[str, float]
):
    refused = [row | broken for row in renamed(rollout("e", "S up M"), "t0-e")]
    store = credited(tmp_path / "s", [*sound_group(), *refused])
    with making_only("stale_credit", "incomplete_trajectories"):
        (finding,) = audit(store).findings
    assert (finding.check.name, finding.number, finding.total) == ("incomplete_trajectories", 1, 5)
    assert "a reward or cost that is out of its range" in finding.check.means


def test_incomplete_trajectories_alone_are_counted_and_nothing_else_fails(tmp_path: Path):
    store = write_store(tmp_path / "s", rollout("dead", "S up M", success=None))
    report = audit(store)
    assert [(f.check.name, f.number, f.total) for f in report.findings] == [
        ("incomplete_trajectories", 1, 1)
    ]
    assert report.numbers == {}


def test_a_shard_without_rows_is_audited(tmp_path: Path):
    assert audit(write_store(tmp_path / "s", [])).findings == ()


def test_a_configuration_that_is_no_json_object_is_refused_by_name(tmp_path: Path):
    store = change_configuration(sound(tmp_path / "s"), ["grpo"], shard=0)
    with pytest.raises(SchemaError, match=r'w0-000000\.parquet must say .* found b\'\["grpo"\]'):
        audit(store)


def test_text_that_is_not_utf8_is_refused_by_file(tmp_path: Path):
    store = sound(tmp_path / "s")
    path = store.shards()[0].path
    table = pq.ParquetFile(path).read()
    index = table.schema.get_field_index("action")
    values = pa.array([b"\xff"] * table.num_rows)
    bad = pa.Array.from_buffers(pa.string(), table.num_rows, values.buffers())
    pq.write_table(table.set_column(index, "action", bad), path)
    with pytest.raises(SchemaError, match=r"one cannot be read: .*w0-000000\.parquet"):
        audit(store)


def test_progress_is_told_check_by_check(tmp_path: Path):
    told: list[tuple[float, int]] = []
    store = write_store(tmp_path / "s", sound_group())
    audit(store, on_progress=lambda what, *progress: told.append(progress))
    assert told == [(done, len(CHECKS)) for done in range(len(CHECKS))]


def test_an_interrupted_query_is_an_interruption(tmp_path: Path):
    """DuckDB turns Ctrl-C into a RuntimeError, which would have been a traceback."""

    def interrupt(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        audit(write_store(tmp_path / "s", sound_group()), on_progress=interrupt)


def test_nothing_to_audit_is_refused(tmp_path: Path):
    store = write_store(tmp_path / "s", sound_group())
    with pytest.raises(InputError, match="none for run r9, iteration any"):
        audit(store, run_id="r9")
    with pytest.raises(InputError, match="none for run any, iteration any"):
        audit(create_store(tmp_path / "empty"))


def test_a_threshold_out_of_range_is_refused(tmp_path: Path):
    store = write_store(tmp_path / "s", sound_group())
    with pytest.raises(OptionError, match=r"audit\.max_dead_share must be at most 1"):
        audit(store, thresholds=AuditThresholds(max_dead_share=1.5))


def test_credit_of_a_program_that_writes_advantages_only_is_audited(tmp_path: Path):
    store = write_store(tmp_path / "s", sound_group())
    steps = pq.ParquetFile(store.shards()[0].path).read(columns=["trajectory_id", "step_index"])
    path = store.shards()[0].credit_path
    path.parent.mkdir(parents=True)
    pq.write_table(steps.append_column("grpo_advantage", pa.array([1.0] * 8, pa.float32())), path)
    report = audit(store)
    assert [finding.check.name for finding in report.findings] == ["unbalanced_advantages"]
    assert (report.findings[0].number, report.findings[0].total) == (1, 1)


OURS = {"stale_credit", "outdated_credit", "unbalanced_advantages"}


@settings(max_examples=examples(25))
@given(logs(), st.sampled_from([(), ("grpo.stat_over=steps", "graphgpo.stat_over=steps")]))
def test_our_own_credit_always_balances_and_is_never_stale(rows: list[Row], options: Any):
    with TemporaryDirectory() as folder:
        try:
            store = credited(Path(folder) / "s", rows, settings=options)
        except NothingToCreditError:
            reject()
        with making_only(*OURS):
            report = audit(store)
    assert report.findings == ()
    assert not OURS & report.skipped.keys()
