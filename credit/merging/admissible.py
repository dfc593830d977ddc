"""Admissible actions as signatures: states that differ in them are not one state."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Bools, Ints, distinct_pairs, factorise, factorise_pairs
from graphcredit.credit.steps.codes import encode
from graphcredit.store.parquet.numbers import numpy_of

UNKNOWN = -1
"""Signature of a state where nothing was logged: it may be one with any other."""

_NO_ACTIONS = np.uint64(0xD6E8FEB86659FD93)
"""Of an empty list: as random as a hash, so that it weighs as much where lists are added up."""


def signatures(admissible_actions: pa.ChunkedArray) -> Ints:
    """Return a number for each list of admissible actions: equal numbers for equal sets.

    The number is the sum of 63-bit hashes of the actions; order and repetition do not matter.

    Args:
        admissible_actions: [num_rows] lists of strings.

    Returns:
        [num_rows] signatures, at least 0; `UNKNOWN` where the list is null.
    """
    # Chunk by chunk: all texts of an iteration in one array would be more than it can hold.
    parts = [_signatures(lists) for lists in admissible_actions.chunks]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _signatures(lists: pa.ListArray) -> Ints:
    row = numpy_of(pc.list_parent_indices(lists)).astype(np.int64)
    actions = encode(pa.chunked_array([pc.list_flatten(lists)]))
    row, code = distinct_pairs(row, actions.code + 1)
    hashes = np.array([0, *map(_hash, actions.texts.to_pylist())], np.uint64)
    totals = np.zeros(len(lists), np.uint64)
    totals[numpy_of(pc.list_value_length(lists), null=-1) == 0] = _NO_ACTIONS
    np.add.at(totals, row, hashes[code])
    signature = (totals >> np.uint64(1)).astype(np.int64)
    return np.where(numpy_of(pc.is_null(lists)), UNKNOWN, signature)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def signature_of_nodes(signature_of_step: Ints, state_of_step: Ints, num_nodes: int) -> Ints:
    """Return [num_nodes] what the set of signatures logged at each node is, as a code."""
    lasting = lasting_signatures(signature_of_step, state_of_step, num_nodes)
    return np.where(lasting == UNKNOWN, UNKNOWN, factorise(lasting)[0])


def lasting_signatures(signature_of_step: Ints, state_of_step: Ints, num_nodes: int) -> Ints:
    """Return [num_nodes] what the set of signatures logged at each node is, as a hash.

    Args:
        signature_of_step: [num_steps] from `signatures`.
        state_of_step: [num_steps] the node each step leaves.
        num_nodes: A node that no known signature was logged at gets `UNKNOWN`.
    """
    is_known = signature_of_step != UNKNOWN
    code, values = factorise(signature_of_step[is_known])
    _, node, code = factorise_pairs(state_of_step[is_known], code)
    # A node with several lists is one that only nodes with the same several lists may join.
    mixed = (values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))[code]
    totals = np.zeros(num_nodes, np.uint64)
    np.add.at(totals, node, mixed)
    has_any = np.zeros(num_nodes, bool)
    has_any[node] = True
    return np.where(has_any, (totals >> np.uint64(1)).astype(np.int64), UNKNOWN)


def is_compatible(mine: Ints | int, others: Ints) -> Bools:
    """Return whether a signature allows each of the others to be the same state."""
    return (others == mine) | (others == UNKNOWN) | (np.asarray(mine) == UNKNOWN)


def unite(key: Ints, signature: Ints) -> tuple[Ints, int]:
    """Label nodes that have one key and signatures that allow it.

    Args:
        key: [num_nodes] what must be equal.
        signature: [num_nodes]; a node without one joins the first signature of its key.

    Returns:
        [num_nodes] labels, and how many more labels than keys the signatures made.
    """
    key_code, keys = factorise(key)
    known = np.flatnonzero(signature != UNKNOWN)
    joins = np.full(len(keys), UNKNOWN)
    joins[key_code[known[::-1]]] = signature[known[::-1]]
    effective = np.where(signature == UNKNOWN, joins[key_code], signature)
    label, key_of_label, _ = factorise_pairs(key_code, effective + 1)
    return label, len(key_of_label) - len(keys)
