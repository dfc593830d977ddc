"""The precision of a merge by its log, on worlds worked out by hand."""

import json
import random
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit.run import audit
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.precision import GroupEvidence, MergePrecision, estimate
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import CreditWarning
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import MERGE_KEY
from tests.credit.audit_worlds import painted_rooms
from tests.worlds import step_table, trajectory, write_store

COLOURS = MergeSettings(substitute=("red|blue=>",))


def evidence(rows: list[dict[str, Any]], settings: MergeSettings) -> list[GroupEvidence]:
    """Return what groups say of a merge."""
    return evidence_of(step_table(rows), settings)


def evidence_of(table: pa.Table, settings: MergeSettings) -> list[GroupEvidence]:
    steps, _ = complete_trajectories(table)
    merged = open_merger(settings).learn([table]).nodes(steps, table)
    return list(merged.report().evidence)


def judged(rows: list[dict[str, Any]], settings: MergeSettings = COLOURS) -> MergePrecision:
    found = estimate(evidence(rows, settings))
    assert found is not None
    return found


def painted(*paths: str, task: str = "t0") -> list[dict[str, Any]]:
    """Return a trajectory for each path, whose states and actions have commas between them."""
    return [
        row
        for number, path in enumerate(paths)
        for row in trajectory(f"{task}-{number}", path.split(", "), task_id=task)
    ]


def painted_groups(*sizes: int) -> list[list[dict[str, Any]]]:
    """Return groups of so many trajectories in a red room, and two in a blue one."""
    return [
        painted(*[stay("red")] * size, *[stay("blue")] * 2, task=f"t{number}")
        for number, size in enumerate(sizes)
    ]


def stay(colour: str) -> str:
    return f"start, paint {colour}, room {colour}, wait, room {colour}, wait, room {colour}"


def test_a_difference_that_is_carried_is_no_noise():
    # The room is left 8 times and the start 4 times: 28 + 6 pairs. 4 · 4 are red and blue, and all
    # of them keep their colours.
    found = judged(painted(*[stay("red")] * 2, *[stay("blue")] * 2))
    assert (found.num_pairs, found.num_groups) == (16, 1)
    assert found.precision == pytest.approx(1 - 16 / 34)
    assert found.standard_error is None


def test_outcomes_that_differ_are_no_chance_where_certain_looks_agree():
    # 2 · 2 of 6 pairs in the room push to two places; those of one colour agree.
    red, blue = "start, paint red, room red, push, hall", "start, paint blue, room blue, push, pit"
    found = judged(painted(red, red, blue, blue))
    assert found.num_pairs == 4
    assert found.precision == pytest.approx(1 - 4 / 12)


def test_outcomes_that_differ_as_often_in_certain_looks_are_chance():
    # In each colour one of two pushes leads to the hall: all that certain looks allow.
    paths = [
        f"start, paint {colour}, room {colour}, push, {place}"
        for colour in ("red", "blue")
        for place in ("hall", "pit")
    ]
    found = judged(painted(*paths))
    assert found.num_pairs == 4
    assert found.precision == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_is_drawn_anew_is_no_evidence(seed: int):
    rng = random.Random(seed)

    def path(colour: str) -> str:
        looks = [f"room {colour} #{rng.getrandbits(32):x} {rng.choice('pqr')}" for _ in range(4)]
        return f"start, paint {colour}, " + ", wait, ".join(looks)

    settings = MergeSettings(substitute=(" #.*=>",))
    found = judged(painted(*[path("red")] * 2, *[path("red") for _ in range(6)]), settings)
    assert found.precision > 0.97


def test_a_session_that_each_trajectory_has_is_no_evidence():
    paths = [stay("red").replace("room", f"[{name}] room") for name in ("ab", "cd", "ef", "gh")]
    found = judged(painted(*paths), MergeSettings(substitute=(r"\[..\]=>",)))
    assert found.precision == 1.0


def test_a_clock_is_no_evidence():
    paths = [
        f"start, paint red, room at {10 + n}, wait, room at {11 + n}, wait, room at {12 + n}"
        for n in (0, 0, 1, 1)
    ]
    found = judged(
        painted(
            *[
                p.replace("start, ", f"start, {a}, start, ")
                for p, a in zip(paths, "abab", strict=True)
            ]
        ),
        MergeSettings(substitute=(r"\d+=>",)),
    )
    assert found.precision == 1.0


def test_texts_that_are_states_need_no_estimate():
    assert evidence(painted(stay("red"), stay("blue")), MergeSettings()) == []
    assert estimate(evidence(painted(stay("red"), stay("red")), COLOURS)) is None


def test_few_groups_or_pairs_are_no_reason_to_warn():
    groups = painted_groups(8, 8, 8, 2)
    assert judged([*chain(*groups)]).is_below(0.97)
    assert not judged([*chain(*groups)]).is_below(0.3)
    assert not judged([*chain(*groups[:3])]).is_below(0.97)
    few = judged([*chain(*painted_groups(1, 1, 1, 1))])
    assert few.precision < 0.97
    assert not few.is_below(0.97)


def test_neither_order_nor_batches_change_the_estimate():
    groups = painted_groups(2, 3, 4)
    rows = [*chain(*groups)]
    whole = estimate(evidence(rows, COLOURS))
    shuffled = random.Random(0).sample(rows, len(rows))
    assert estimate(evidence(shuffled, COLOURS)) == whole
    parts = [own for group in reversed(groups) for own in evidence(group, COLOURS)]
    assert estimate(parts) == whole


def test_the_error_is_that_of_the_jackknife():
    groups = painted_groups(2, 3, 4)
    whole = judged([*chain(*groups)])
    left = [judged([*chain(*(g for g in groups if g is not out))]).precision for out in groups]
    mean = sum(left) / 3
    assert whole.standard_error == pytest.approx(
        (2 / 3 * sum((x - mean) ** 2 for x in left)) ** 0.5
    )


def test_credit_reports_it_writes_it_and_warns(tmp_path: Path):
    store = painted_rooms(tmp_path / "store")
    settings = CreditSettings(estimators=configure(["grpo"]), merge=COLOURS)
    report = assign_credit(store, settings)["r0", 0]
    assert report.as_json()["merge_precision"]["precision"] == 0.5
    assert "evidence" not in report.as_json()
    assert any("unites different states" in notice for notice in report.notices)
    path = store.graph_dir("r0", 0) / "nodes.parquet"
    with open_parquet(path) as file:
        found = MergePrecision.from_metadata(file.schema_arrow.metadata)
        assert found == report.merge_precision
    assert not check_store(store).violations


def test_the_limit_is_an_option(tmp_path: Path):
    store = painted_rooms(tmp_path / "store")
    lenient = MergeSettings(substitute=COLOURS.substitute, min_merge_precision=0.4)
    settings = CreditSettings(estimators=configure(["grpo"]), merge=lenient)
    assert not assign_credit(store, settings, only_new=True), "the limit changes no credit"
    assert not assign_credit(store, settings)["r0", 0].notices
    checks = {f.check.name for f in audit(store).findings}
    assert "imprecise_merges" in checks
    lenient_audit = audit(store, thresholds=AuditThresholds(min_merge_precision=0.4))
    assert "imprecise_merges" not in {f.check.name for f in lenient_audit.findings}


def test_exact_states_say_nothing(tmp_path: Path):
    store = write_store(tmp_path / "store", painted(stay("red"), stay("blue")))
    report = assign_credit(store, CreditSettings(estimators=configure(["grpo"])))["r0", 0]
    assert report.merge_precision is None
    metadata = pq.read_schema(store.graph_dir("r0", 0) / "nodes.parquet").metadata
    assert json.loads(metadata[MERGE_KEY]) == {"precision": None}


def test_credit_in_memory_warns():
    rows = [*chain(*painted_groups(4, 4, 4, 4))]
    with pytest.warns(CreditWarning, match="unites different states"):
        compute(step_table(rows), estimators=["grpo"], merge=COLOURS)
