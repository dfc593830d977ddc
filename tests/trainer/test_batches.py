"""Packed micro-batches hold what the log has, token by token."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.store import Store
from graphcredit.store.errors import SchemaError
from graphcredit.trainer.batching import reader as batches
from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.batching.plan import MicroBatch, TrainingPlan, make_plan
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.ragged import Ragged
from graphcredit.trainer.data.step_columns import TokenColumns
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_identity import sequence_hashes
from graphcredit.trainer.data.step_index import StepIndex, read_index
from tests.examples import examples
from tests.trainer.logs import Row, episode, random_episodes, token_store, turn, two_episodes

OTHERS = ("max_length", "keys", "pictures")
FIELDS = [name for name in PackedBatch.__dataclass_fields__ if name not in OTHERS]


def _index(store: Store) -> StepIndex:
    filters = Filters(max_tokens=100)
    return read_index([RunIteration(store, "r0", 0)], column="reach_advantage", filters=filters)[0]


def _plan(index: StepIndex) -> TrainingPlan:
    return make_plan(index, seed=0, epochs=1, batch_size=16, max_tokens=40, aggregation="seq-mean")


def _micro(*steps: int, weight: Sequence[float] = ()) -> MicroBatch:
    return MicroBatch(steps=np.array(steps), weight=np.array(weight or [1.0] * len(steps)))


def _equal(one: PackedBatch, other: PackedBatch) -> bool:
    return one.max_length == other.max_length and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS
    )


def test_two_steps_are_packed_as_worked_by_hand(tmp_path: Path):
    reader = BatchReader(_index(token_store(tmp_path / "s", two_episodes())))
    # Steps 0 and 1 are of the failure. Step 2 is 1 2 3 | 4 5, step 4 is 1 2 | 8 9 10.
    batch = reader.read(_micro(2, 4, weight=[0.25, 0.125]))
    assert batch.input_ids.tolist() == [1, 2, 3, 4, 5, 1, 2, 8, 9, 10]
    assert batch.position_ids.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert batch.cu_seqlens.tolist() == [0, 5, 10]
    assert batch.max_length == 5
    assert batch.predictor.tolist() == [2, 3, 6, 7, 8]
    assert batch.token_ids.tolist() == [4, 5, 8, 9, 10]
    assert batch.behaviour_logprobs.tolist() == pytest.approx([-0.1, -0.2, -0.4, -0.5, -0.6])
    assert batch.is_scored.tolist() == [True] * 5
    assert batch.temperature.tolist() == [1] * 5
    assert batch.advantage.tolist() == [0.5, 0.5, 1.5, 1.5, 1.5]
    assert batch.weight.tolist() == [0.25, 0.25, 0.125, 0.125, 0.125]
    assert batch.segment.tolist() == [0, 0, 1, 1, 1]
    assert batch.steps.tolist() == [2, 4]
    types = {name: getattr(batch, name).dtype.name for name in FIELDS}
    assert {n for n, t in types.items() if t == "float32"} == {
        "behaviour_logprobs",
        "temperature",
        "advantage",
        "weight",
    }
    assert (types["cu_seqlens"], types["is_scored"]) == ("int32", "bool")
    assert types["input_ids"] == types["predictor"] == types["segment"] == "int64"


def test_a_token_without_a_finite_logprob_has_no_weight(tmp_path: Path):
    logprobs = [-1.0, float("nan"), float("-inf"), None]
    steps = [turn([1], [2, 3, 4, 5], logprobs, temperature=0.5), turn([1], [2], temperature=None)]
    reader = BatchReader(_index(token_store(tmp_path / "s", [episode("a", *steps)])))
    batch = reader.read(_micro(0, 1))
    assert batch.is_scored.tolist() == [True, False, False, False, True]
    assert batch.behaviour_logprobs.tolist() == [-1, 0, 0, 0, -1]
    assert batch.weight.tolist() == [1, 0, 0, 0, 1]
    assert batch.temperature.tolist() == [0.5] * 4 + [1]


def _packed_in_python(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return what packing means, step by step and token by token."""
    packed: dict[str, list[float]] = {
        name: [] for name in ("input_ids", "position_ids", "predictor", "token_ids", "segment")
    }
    for segment, row in enumerate(rows):
        start = len(packed["input_ids"])
        for position, token in enumerate([*row["prompt_ids"], *row["response_ids"]]):
            packed["input_ids"].append(token)
            packed["position_ids"].append(position)
            if position >= len(row["prompt_ids"]):
                packed["predictor"].append(start + position - 1)
                packed["token_ids"].append(token)
                packed["segment"].append(segment)
    return packed


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 999),
    num_shards=st.integers(1, 3),
    row_group_rows=st.integers(1, 9),
    cache_bytes=st.sampled_from([0, 1500, 1 << 20]),
)
def test_packing_is_what_a_plain_loop_makes_of_the_log(
    seed: int, num_shards: int, row_group_rows: int, cache_bytes: int
):
    trajectories = random_episodes(seed, 6)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "s")
        store = token_store(
            root, trajectories, num_shards=num_shards, row_group_rows=row_group_rows
        )
        index = _index(store)
        reader = BatchReader(index, cache_bytes=cache_bytes)
        rows = list(chain.from_iterable(trajectories))
        plan = _plan(index)
        seen: list[int] = []
        for micro in (m for n in range(len(plan.updates)) for m in plan.micro_batches(n, 1)[0]):
            batch = reader.read(micro)
            members = [rows[step] for step in micro.steps]
            for name, expected in _packed_in_python(members).items():
                assert getattr(batch, name).tolist() == expected
            logprobs = chain.from_iterable(row["response_logprobs"] for row in members)
            assert batch.behaviour_logprobs.tolist() == list(logprobs)
            expected = np.array([row["advantage"] for row in members], np.float32)[batch.segment]
            assert batch.advantage.tolist() == expected.tolist()
            assert reader._cache.num_bytes <= cache_bytes
            seen += micro.steps.tolist()
        assert sorted(seen) == list(range(len(rows)))


def test_the_cache_keeps_what_was_used_last_and_stays_below_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    steps = [turn([1] * 50, [2] * 50)] * 3
    index = _index(token_store(tmp_path / "s", [episode("a", *steps)], row_group_rows=1))
    one = BatchReader(index)
    one.read(_micro(0))
    reads: list[int] = []
    read_tokens = batches.read_tokens

    def counted(path: Path, row_group: int) -> TokenColumns:
        reads.append(row_group)
        return read_tokens(path, row_group)

    monkeypatch.setattr(batches, "read_tokens", counted)
    reader = BatchReader(index, cache_bytes=2 * one._cache.num_bytes)
    for step in (0, 1, 0, 2, 0, 1):
        reader.read(_micro(step))
        assert reader._cache.num_bytes <= 2 * one._cache.num_bytes
    # 2 pushes out 1, because 0 was used in between; then 1 is read again.
    assert reads == [0, 1, 2, 1]


def test_reading_ahead_gives_the_same_batches_in_order(tmp_path: Path):
    index = _index(token_store(tmp_path / "s", random_episodes(1, 12), row_group_rows=4))
    micro_batches = [m for n in range(2) for m in _plan(index).micro_batches(n, 1)[0]]
    assert len(micro_batches) > 4
    reader = BatchReader(index)
    ahead = list(reader.ahead(iter(micro_batches)))
    plain = [BatchReader(index).read(micro) for micro in micro_batches]
    assert len(ahead) == len(plain)
    assert all(map(_equal, ahead, plain))


def test_what_the_thread_raises_is_raised_at_its_turn(tmp_path: Path):
    index = _index(token_store(tmp_path / "s", two_episodes(), num_shards=2))
    reader = BatchReader(index)
    stream = reader.ahead([_micro(2), _micro(0), _micro(3)])
    index.shards[1].path.unlink()
    assert next(stream).steps.tolist() == [2]
    with pytest.raises(SchemaError, match="cannot be read"):
        next(stream)


def test_a_consumer_may_stop_early(tmp_path: Path):
    index = _index(token_store(tmp_path / "s", two_episodes()))
    stream = BatchReader(index).ahead([_micro(n) for n in (0, 1, 2, 3, 4)])
    assert next(stream).steps.tolist() == [0]
    stream.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(stream)


def _twins() -> list[list[Row]]:
    """Return three steps of two sequences; the third is the first with another credit."""
    return [
        episode("a", turn([1, 2], [3, 4], [-0.1, -0.2], advantage=1.0)),
        episode("b", turn([1, 2, 3], [4], [-0.3], advantage=2.0)),
        episode("c", turn([1, 2], [3, 4], [-0.5, -0.6], advantage=3.0, temperature=0.5)),
    ]


def test_equal_steps_go_through_the_model_once_and_keep_their_own_credit(tmp_path: Path):
    index = _index(token_store(tmp_path / "s", _twins()))
    assert index.sequence[0] == index.sequence[2] != index.sequence[1]
    batch = BatchReader(index).read(_micro(0, 1, 2, weight=[0.1, 0.2, 0.3]))
    assert batch.input_ids.tolist() == [1, 2, 3, 4, 1, 2, 3, 4]
    assert batch.cu_seqlens.tolist() == [0, 4, 8]
    assert batch.predictor.tolist() == [1, 2, 6, 1, 2]
    assert batch.segment.tolist() == [0, 0, 1, 2, 2]
    assert batch.advantage.tolist() == [1, 1, 2, 3, 3]
    assert batch.temperature.tolist() == [1, 1, 1, 0.5, 0.5]
    assert batch.weight == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.3])
    assert batch.behaviour_logprobs == pytest.approx([-0.1, -0.2, -0.3, -0.5, -0.6])


def test_steps_that_only_hash_alike_keep_their_own_tokens(tmp_path: Path):
    index = _index(token_store(tmp_path / "s", _twins()))
    alike = replace(index, sequence=np.zeros(3, np.int64))
    batch = BatchReader(alike).read(_micro(0, 1))
    assert batch.input_ids[batch.predictor + 1].tolist() == batch.token_ids.tolist()
    assert batch.cu_seqlens.tolist() == [0, 4, 8]


Ids = list[int]

steps_of_few_ids = st.lists(
    st.tuples(st.lists(st.integers(0, 1), min_size=1, max_size=3), st.lists(st.integers(0, 1))),
    max_size=12,
)


def _ragged(lists: list[Ids]) -> Ragged:
    return Ragged(
        values=np.array([i for ids in lists for i in ids], np.int32),
        starts=np.cumsum([0, *map(len, lists)]),
        is_null=np.zeros(len(lists), bool),
    )


def _hashes(steps: list[tuple[Ids, Ids]]) -> list[int]:
    prompts, responses = ([step[part] for step in steps] for part in (0, 1))
    rows = np.arange(len(steps))
    return sequence_hashes(_ragged(prompts), _ragged(responses), rows).tolist()


@given(steps=steps_of_few_ids)
def test_hashes_are_equal_where_prompt_and_response_are(steps: list[tuple[Ids, Ids]]):
    distinct = {(tuple(prompt), tuple(response)) for prompt, response in steps}
    assert len(set(_hashes(steps))) == len(distinct)


@given(steps=steps_of_few_ids, longest=st.integers(0, 200))
def test_a_hash_does_not_depend_on_the_other_steps_of_the_row_group(
    steps: list[tuple[Ids, Ids]], longest: int
):
    alone = [_hashes([step])[0] for step in steps]
    assert _hashes([*steps, ([1], [1] * longest)])[:-1] == alone


def test_the_place_where_the_response_begins_is_part_of_the_sequence():
    assert len(set(_hashes([([1], [2, 3]), ([1, 2], [3]), ([1, 2, 3], [])]))) == 3
