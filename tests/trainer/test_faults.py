"""Data that cannot be trained on is refused with what, where and what to do."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store
from graphcredit.store.errors import InputError, NothingToTrainError, SchemaError
from graphcredit.store.schema import CONFIGURATION_KEY
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index
from tests.store.whole_store import damage_column
from tests.trainer.logs import Row, episode, stamp_credit, token_store, turn, two_episodes

INFINITE = float("inf")


def _index(store: Store, column: str = "reach_advantage", **filters: Any) -> int:
    options: dict[str, Any] = {"max_tokens": 100} | filters
    _, report = read_index(
        [RunIteration(store, "r0", 0)], column=column, filters=Filters(**options)
    )
    return report.num_kept


def _refused(store: Store, *words: str, column: str = "reach_advantage", **filters: Any) -> None:
    with pytest.raises(InputError) as refusal:
        _index(store, column, **filters)
    message = str(refusal.value)
    assert [word for word in words if word not in message] == [], message


def _store(root: Path, *steps: Row) -> Store:
    """Return two sound steps, and the given ones from row 2 on, in row groups of 2."""
    sound = (turn([1, 2], [3]), turn([1, 2], [3]))
    return token_store(root, [episode("a", *sound, *steps)], row_group_rows=2)


def _edit_credit(store: Store, number: int, change: Callable[[pa.Table], pa.Table]) -> None:
    path = store.shards()[number].credit_path
    table = pq.read_table(path, partitioning=None)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


FAULTS: list[tuple[str, Row, tuple[str, ...]]] = [
    ("fewer log-probabilities", turn([1], [2, 3], [-1.0]), ("2 ids and 1 log-prob",)),
    ("more log-probabilities", turn([1], [2], [-1.0, -1.0]), ("1 ids and 2 log-prob",)),
    ("no prompt column", turn([1], [2], prompt_ids=None), ("lacks prompt_ids",)),
    (
        "ids without log-probabilities",
        turn([1], [2], response_logprobs=None),
        ("all of prompt_ids, response_ids, response_logprobs or none", "lacks response_logprobs"),
    ),
    (
        "prompts alone",
        turn([1], [2], response_ids=None, response_logprobs=None),
        ("lacks response_ids and response_logprobs",),
    ),
    ("empty prompt", turn([], [2]), ("predicted", "has none")),
    ("negative prompt id", turn([1, -5], [2]), ("prompt_ids must be 0 or more", "found -5")),
    ("negative response id", turn([1], [2, -7]), ("response_ids must be 0 or more", "found -7")),
    ("null id", turn([1], [2, None]), ("none of them null",)),  # type: ignore[list-item]
    ("probabilities", turn([1], [2, 3], [-1.0, 0.25]), ("0 at most", "found 0.25")),
    ("infinite log-probability", turn([1], [2], [INFINITE]), ("found inf",)),
    ("greedy", turn([1], [2], temperature=0.0), ("above 0", "found 0 ", "greedily")),
    ("negative temperature", turn([1], [2], temperature=-1.0), ("found -1",)),
    ("temperature that is no number", turn([1], [2], temperature=float("nan")), ("found nan",)),
    ("infinite temperature", turn([1], [2], temperature=INFINITE), ("found inf",)),
    ("top-p", turn([1], [2], top_p=0.9), ("top_p 0.9", "--correction none")),
    ("top-k", turn([1], [2], top_k=50), ("top_k 50", "--correction none")),
]


@pytest.mark.parametrize(("fault", "words"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_in_a_step_is_refused_with_its_file_and_row(
    tmp_path: Path, fault: Row, words: tuple[str, ...]
):
    store = _store(tmp_path / "s", turn([1, 2, 3], [4, 5]), fault)
    _refused(store, f"{store.shards()[0].path}, row 3", *words)


SOUND: list[tuple[str, Row]] = [
    ("rounding above zero", turn([1], [2], [5e-5])),
    ("the whole distribution", turn([1], [2], top_p=1.0, top_k=0)),
    ("top-k switched off", turn([1], [2], top_k=-1)),
    (
        "greedy step without tokens",
        turn(
            [1],
            [2],
            prompt_ids=None,
            response_ids=None,
            response_logprobs=None,
            temperature=0.0,
            top_k=1,
        ),
    ),
]


@pytest.mark.parametrize("step", [s[1] for s in SOUND], ids=[s[0] for s in SOUND])
def test_what_only_looks_like_a_fault_is_accepted(tmp_path: Path, step: Row):
    assert _index(_store(tmp_path / "s", step)) == 3 - (step["prompt_ids"] is None)


def test_truncated_sampling_is_accepted_where_no_ratio_to_the_sampler_is_taken(tmp_path: Path):
    store = _store(tmp_path / "s", turn([1], [2], top_p=0.9))
    assert _index(store, is_corrected=False) == 3


def test_steps_without_any_tokens_are_refused_with_the_columns_that_are_needed(tmp_path: Path):
    store = token_store(tmp_path / "s")
    (shard,) = store.shards()
    table = pq.read_table(shard.path, partitioning=None)
    names = ["prompt_ids", "response_ids", "response_logprobs"]
    pq.write_table(table.drop_columns(names), shard.path)
    stamp_credit(store)
    _refused(store, *names, "all 5 steps", "recorder")


_FLAT, _LONG = turn([1], [2], advantage=0.0), turn([1, 2, 3], [4])
_DEAD = turn([1], [2], advantage=None)


@pytest.mark.parametrize(
    ("trajectories", "max_tokens", "counts", "lacks_signal"),
    [
        ([[_LONG]], 2, "1 over_long", False),
        ([[_FLAT]], 100, "1 zero_advantage", True),
        ([[_FLAT, _FLAT, _LONG]], 3, "2 zero_advantage, 1 over_long", False),
        # A step without a signal has none whatever else it is.
        ([[_FLAT, turn([1, 2, 3], [4], advantage=0.0)]], 3, "2 zero_advantage", True),
        # A trajectory that never ended takes no signal away.
        ([[_FLAT], [_DEAD, _DEAD]], 100, "2 no_credit, 1 zero_advantage", True),
        ([[_DEAD, _DEAD]], 100, "2 no_credit", False),
    ],
)
def test_nothing_left_is_refused_with_where_it_went_and_lack_of_signal_is_an_error_of_its_own(
    tmp_path: Path, trajectories: list[list[Row]], max_tokens: int, counts: str, lacks_signal: bool
):
    episodes = [episode(f"e{number}", *turns) for number, turns in enumerate(trajectories)]
    store = token_store(tmp_path / "s", episodes)
    with pytest.raises(InputError, match=rf", all are .*\({counts}\)") as refusal:
        _index(store, drop_zero_advantage=True, max_tokens=max_tokens)
    assert isinstance(refusal.value, NothingToTrainError) == lacks_signal


def test_an_iteration_without_shards_is_refused(tmp_path: Path):
    store = token_store(tmp_path / "s", run_id="other")
    _refused(store, "run 'r0', iteration 0", "Runs: other")


def test_stale_steps_are_refused_only_where_nothing_corrects_for_them(tmp_path: Path):
    steps = [turn([1], [2], policy_version=f"run-{n}") for n in (1, 2, 3)]
    store = token_store(tmp_path / "s", [episode("a", *steps)])
    assert _index(store) == 3
    assert _index(store, max_staleness=1, is_corrected=False) == 2
    _refused(store, "1 of 3 steps", "up to 2 older", "--max-staleness 1", is_corrected=False)


@pytest.mark.parametrize(
    "versions", [("final", "final", "final"), ("run-1", "run-1", None), ("a1", "b7", "b9")]
)
def test_versions_without_an_order_are_no_reason_to_refuse(
    tmp_path: Path, versions: tuple[str | None, ...]
):
    steps = [turn([1], [2], policy_version=version) for version in versions]
    store = token_store(tmp_path / "s", [episode("a", *steps)])
    assert _index(store, is_corrected=False) == 3


def test_steps_without_any_credit_are_refused(tmp_path: Path):
    store = token_store(tmp_path / "s", two_episodes(), num_shards=2)
    for shard in store.shards():
        shard.credit_path.unlink()
    _refused(store, "none of 2 shards", "graphcredit credit STORE -e reach")


def test_credit_without_a_shard_that_came_later_is_refused(tmp_path: Path):
    store = token_store(tmp_path / "s", two_episodes(), num_shards=2)
    store.shards()[1].credit_path.unlink()
    _refused(store, "w1-000000.parquet is missing", "older than the steps", "graphcredit credit")


@pytest.mark.parametrize("metadata", [None, {CONFIGURATION_KEY: b"?"}, {CONFIGURATION_KEY: b"[]"}])
def test_foreign_credit_need_not_say_how_it_was_made(
    tmp_path: Path, metadata: Mapping[bytes, bytes] | None
):
    store = token_store(tmp_path / "s")
    path = store.shards()[0].credit_path
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.replace_schema_metadata(metadata), path)
    assert _index(store) == 5


def test_credit_by_another_estimator_may_be_older(tmp_path: Path):
    store = token_store(tmp_path / "s")
    path = store.shards()[0].credit_path
    table = pq.read_table(path, partitioning=None)
    made_by = json.loads(table.schema.metadata[CONFIGURATION_KEY]) | {"grpo": {"steps": "old"}}
    metadata = {CONFIGURATION_KEY: json.dumps(made_by)}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    assert _index(store) == 5


def test_an_unknown_advantage_is_refused_with_those_that_exist(tmp_path: Path):
    store = token_store(tmp_path / "s", two_episodes(), num_shards=2)
    _edit_credit(store, 1, lambda t: t.append_column("rloo_advantage", t["reach_advantage"]))
    found = "found reach_advantage, rloo_advantage (in 1 of 2 shards)"
    _refused(store, found, "graphcredit credit STORE -e grpo", column="grpo_advantage")
    _refused(store, found, "column rloo_advantage", column="rloo_advantage")
    _refused(store, "-e grpo`", column="grpo_step_advantage")


def test_credit_of_other_rows_is_refused_with_the_first_that_differs(tmp_path: Path):
    store = _store(tmp_path / "s", turn([1], [2]), turn([1], [2]))
    place = pq.read_schema(store.shards()[0].credit_path).get_field_index("step_index")
    others = pa.array([0, 1, 2, 7], pa.int32())
    _edit_credit(store, 0, lambda t: t.set_column(place, "step_index", others))
    _refused(store, "w0-000000.parquet", "differ at row 3", "Run `graphcredit credit` again")


@pytest.mark.parametrize("change", [lambda t: t.slice(1), lambda t: pa.concat_tables([t, t])])
def test_credit_with_fewer_or_more_rows_is_refused(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table]
):
    store = token_store(tmp_path / "s")
    _edit_credit(store, 0, change)
    _refused(store, "a row for each row", "for 5")


@pytest.mark.parametrize("value", [INFINITE, -INFINITE, float("nan")])
def test_an_advantage_that_is_no_number_is_refused(tmp_path: Path, value: float):
    store = _store(tmp_path / "s", turn([1], [2], advantage=value))
    _refused(store, "finite", f"found {value}", "row 2", "reach_advantage")


def test_damaged_tokens_are_refused_with_their_file(tmp_path: Path):
    store = token_store(tmp_path / "s")
    (shard,) = store.shards()
    damage_column(shard.path.relative_to(store.root).as_posix(), "prompt_ids")(store.root)
    with pytest.raises(SchemaError, match=re.escape(f"{shard.path}, row group 0 cannot be read")):
        _index(store)


def test_ids_of_another_type_are_refused_with_their_file(tmp_path: Path):
    store = token_store(tmp_path / "s")
    (shard,) = store.shards()
    table = pq.read_table(shard.path, partitioning=None)
    place = table.column_names.index("prompt_ids")
    texts = pa.array([["a"]] * table.num_rows, pa.list_(pa.string()))
    pq.write_table(table.set_column(place, "prompt_ids", texts), shard.path)
    stamp_credit(store)
    with pytest.raises(SchemaError, match="'prompt_ids' must be list<"):
        _index(store)
