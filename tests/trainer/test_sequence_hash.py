"""Hashes of token sequences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.trainer.data.ragged import Ragged
from graphcredit.trainer.data.step_identity import sequence_hashes

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
