"""Distinct prompts with responses: how often each is there, what is held out, what is drawn."""

from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.errors import InputError
from graphcredit.trainer.cloning.examples import Pairs, held_out, read_pairs, shuffled
from tests.trainer.logs import episode, token_store, turn

HERE, THERE = [1, 2], [1, 2, 3]


def _pairs(*counted: tuple[list[int], list[int], int]) -> Pairs:
    prompts, responses, counts = zip(*counted, strict=True)
    return Pairs(
        prompts=tuple(np.array(ids, np.int32) for ids in prompts),
        responses=tuple(np.array(ids, np.int32) for ids in responses),
        count=np.array(counts),
    )


def test_equal_steps_are_one_pair_that_counts_them(tmp_path: Path):
    trajectories = [
        episode("a", turn(HERE, [4]), turn(THERE, [4]), turn(HERE, [4])),
        episode("b", turn(HERE, [5, 6]), turn(HERE, [4])),
    ]
    pairs = read_pairs(token_store(tmp_path / "s", trajectories, num_shards=2), "r0")
    found = zip(pairs.prompts, pairs.responses, pairs.count, strict=True)
    assert {(tuple(p.tolist()), tuple(r.tolist())): int(n) for p, r, n in found} == {
        ((1, 2), (4,)): 3,
        ((1, 2, 3), (4,)): 1,
        ((1, 2), (5, 6)): 1,
    }


def test_who_recorded_what_does_not_matter(tmp_path: Path):
    trajectories = [
        episode(name, turn([n, 2], [3, n]), turn([2, n], [n])) for n, name in enumerate("abcdef")
    ]
    one = read_pairs(token_store(tmp_path / "one", trajectories), "r0")
    other = read_pairs(token_store(tmp_path / "o", trajectories[::-1], num_shards=3), "r0")
    assert [p.tolist() for p in one.prompts] == [p.tolist() for p in other.prompts]
    assert [r.tolist() for r in one.responses] == [r.tolist() for r in other.responses]


def test_a_trajectory_that_was_cut_off_teaches_nothing_though_its_name_ended_before(tmp_path: Path):
    whole, cut = episode("a", turn(HERE, [4])), episode("a", turn(HERE, [5]))
    cut[-1] |= {"success": None, "terminated": False, "truncated": False}
    token_store(tmp_path / "s", [whole], iteration=0)
    pairs = read_pairs(token_store(tmp_path / "s", [cut], iteration=1), "r0")
    assert [ids.tolist() for ids in pairs.responses] == [[4]]


def test_steps_without_tokens_teach_nothing(tmp_path: Path):
    silent = {"prompt_ids": None, "response_ids": None, "response_logprobs": None}
    spoken, mute = episode("a", turn(HERE, [4])), episode("b", turn(HERE, [5], **silent))
    pairs = read_pairs(token_store(tmp_path / "some", [spoken, mute]), "r0")
    assert pairs.count.tolist() == [1]
    with pytest.raises(InputError, match=r"must have prompt_ids and response_ids.*tutor:PATH"):
        read_pairs(token_store(tmp_path / "none", [mute]), "r0")


def test_what_was_left_without_an_end_and_played_again_teaches_once(tmp_path: Path):
    whole = episode("a:0.1", turn(HERE, [4]), turn(THERE, [5]))
    dead = [{**step, "trajectory_id": "a:0"} for step in whole[:1]]
    pairs = read_pairs(token_store(tmp_path / "s", [dead, whole]), "r0")
    assert pairs.count.tolist() == [1, 1]


def test_pairs_are_packed_one_after_the_other():
    pairs = _pairs((HERE, [7, 8], 3), (THERE, [9], 1), ([5], [6], 2))
    batch = pairs.packed(np.array([1, 0]), np.array([0.25, 0.75]))
    assert batch.input_ids.tolist() == [1, 2, 3, 9, 1, 2, 7, 8]
    assert batch.cu_seqlens.tolist() == [0, 4, 8]
    assert batch.predictor.tolist() == [2, 5, 6]
    assert batch.token_ids.tolist() == [9, 7, 8]
    assert batch.weight.tolist() == [0.25, 0.75, 0.75]
    assert batch.temperature.tolist() == [1, 1, 1]


def test_a_prompt_is_held_out_with_all_its_responses():
    pairs = _pairs(*((prompt, [r], 1) for prompt in ([1], [2], [3], [4]) for r in (5, 6, 7)))
    learnt, kept = held_out(pairs, 0.25, seed=0)
    assert len(kept.count) == 3
    assert len({tuple(p.tolist()) for p in kept.prompts}) == 1
    assert len(learnt.count) == 9
    assert {tuple(p.tolist()) for p in kept.prompts}.isdisjoint(
        tuple(p.tolist()) for p in learnt.prompts
    )


def test_something_is_held_out_and_something_is_learnt_from_however_little_there_is():
    learnt, kept = held_out(_pairs((HERE, [4], 1), (THERE, [4], 1)), 0.01, seed=0)
    assert len(learnt.count) == len(kept.count) == 1
    with pytest.raises(InputError, match="one prompt in all"):
        held_out(_pairs((HERE, [4], 1), (HERE, [5], 1)), 0.5, seed=0)


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    batch_size=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_an_epoch_draws_no_step_twice_and_batches_are_full(
    counts: list[int], batch_size: int, seed: int
):
    pairs = _pairs(*(([n], [n], count) for n, count in enumerate(counts)))
    size = min(batch_size, sum(counts))
    batches = list(islice(shuffled(pairs, batch_size, seed), sum(counts) // size))
    drawn: Counter[int] = Counter()
    for numbers, often in batches:
        assert all(a < b for a, b in pairwise(numbers.tolist()))
        assert often.sum() == size
        drawn.update(dict(zip(numbers.tolist(), often.tolist(), strict=True)))
    assert all(drawn[n] <= count for n, count in enumerate(counts))
    assert sum(counts) - drawn.total() < size
