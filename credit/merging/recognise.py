"""States in another iteration: what a state is recognised by, and which earlier state it is.

A merge looks at one iteration, so that credit does not depend on what else is in the store. Counts
over iterations need names that last: a state is named after the first text that the run saw of it.
A node is an earlier state of its task if its first text is that name, or else if the merge, asked
about both, would unite them; otherwise it is a new state.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.codes import encode
from graphcredit.store.schema import STATE_SCORE_COLUMNS

NAME_SCHEMA = pa.schema([(column.name, column.type) for column in STATE_SCORE_COLUMNS[:4]])
"""The columns of `history/` that name a state, and say what it is recognised by. A node that is a
goal has no name, and is not in `history/`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """States to be compared, the earlier ones first."""

    group: Ints
    """[n] the group of the batch that each belongs to; a state is no other group's."""
    texts: list[str]
    """[n] what each is recognised by."""
    signature: Ints
    """[n] its admissible actions, from `guard.lasting_signatures`."""


Alike: TypeAlias = Callable[[Looks], Ints]
"""A merge, as a comparison: returns [n] the first of the states that each of them is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identities:
    """What the nodes of a batch are recognised by in other iterations."""

    texts: list[str]
    """[num_nodes] the normal form of the first text seen there; of it, what is not noise, where the
    merge tells noise. Anything at a goal."""
    signature: Ints
    """[num_nodes] from `guard.lasting_signatures`."""
    alike: Alike
    """The merge that made the nodes."""


Identify: TypeAlias = Callable[[], Identities]
"""Returns what nodes are recognised by; it costs something, so it is called only when asked for."""


def recognise(
    known: pa.Table,
    identities: Identities,
    *,
    group: Ints,
    task_ids: pa.Array,
    first_texts: pa.Array,
) -> Ints:
    """Find the earlier state that each node is.

    Args:
        known: The earlier states of these tasks, `NAME_SCHEMA`.
        identities: What the nodes are recognised by.
        group: [num_nodes] the group of each node.
        task_ids: [num_nodes] its task.
        first_texts: [num_nodes] the first text seen there; null at a goal.

    Returns:
        [num_nodes] row of `known`; -1 where the state is new, and at a goal.
    """
    earlier = np.full(len(group), -1)
    if not known.num_rows:
        return earlier
    known_group = group[pc.index_in(known["task_id"], task_ids).to_numpy()]
    is_state = first_texts.is_valid().to_numpy(zero_copy_only=False)
    states = np.flatnonzero(is_state & np.isin(group, known_group))
    groups = np.concatenate([known_group, group[states]])
    names = pa.chunked_array([*known["state"].chunks, first_texts.take(pa.array(states))])
    code = encode(names).code
    same_name = first_of(groups * (int(code.max(initial=0)) + 1) + code)
    merged = identities.alike(
        Looks(
            group=groups,
            texts=[*known["identity"].to_pylist(), *(identities.texts[n] for n in states.tolist())],
            signature=np.concatenate([lasting(known), identities.signature[states]]),
        )
    )
    first = np.where(same_name < known.num_rows, same_name, merged)[known.num_rows :]
    earlier[states] = np.where(first < known.num_rows, first, -1)
    return earlier


def lasting(names: pa.Table) -> Ints:
    """Return [n] the signatures of names, `UNKNOWN` where they have none."""
    return pc.fill_null(names["signature"], UNKNOWN).to_numpy()


def first_of(label: Ints) -> Ints:
    """Return [n] the position of the first label that equals each."""
    _, first, of_label = np.unique(label, return_index=True, return_inverse=True)
    return first[of_label]
