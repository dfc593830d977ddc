"""Outcomes of untried actions, if they did what they did in the most alike state.

The graph of a group knows what was done. The log also knows what could have been done: an action
that is admissible in a state and that no step took there was often taken in another state. Two
states are alike as far as the same actions are possible in them and the same words describe them:

    alike(s, t) = J(actions of s, actions of t) · J(words of s, words of t)
    J(X, Y)     = |X ∩ Y| / |X ∪ Y|

Where several states are most alike and the action led from them to several states, nothing is
known. Nor is it in a group whose lists are missing, or say nothing of its states
(`action_lists.py`). A group without a goal has nowhere to be nearer to: there, what is untried is
what is new (`novelty.py`).

Texts end here: an estimator sees nodes and numbers only.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.action_lists import ActionLists, Worth, judge_lists
from graphcredit.credit.inputs.analogies.jaccard import Block, Sets, compare
from graphcredit.credit.inputs.analogies.novelty import novelty
from graphcredit.credit.inputs.analogies.text_slices import text_slices
from graphcredit.credit.merging.admissible import UNKNOWN, signatures
from graphcredit.credit.steps.arrays import (
    Floats,
    Ints,
    distinct_pairs,
    factorise,
    factorise_pairs,
)
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes

_ROUNDING = 1e-9
"""Products of ratios that differ, differ by more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Analogies:
    """Transitions that no step took, and how new each node is."""

    source: Ints
    """[num_imagined] node with an admissible action that no step took there; of a group with a
    goal."""
    target: Ints
    """[num_imagined] node that the action led to where it was taken; never the node it left."""
    cost: Floats
    """[num_imagined] what it cost there, divided by how alike the two nodes are; inf where that is
    beyond all numbers."""
    novelty: Floats
    """[num_nodes] N(s) of the nodes of groups without a goal; 0 elsewhere."""
    lists: ActionLists
    """What the lists of each group are worth: nothing is imagined where they say nothing."""


def find_analogies(
    steps: Steps,
    nodes: Nodes,
    texts: pa.Array,
    admissible_actions: pa.ChunkedArray,
    terminated: pa.ChunkedArray,
) -> Analogies:
    """Find what each untried action of each node did in the most alike nodes of the group.

    A node at which nothing was logged as admissible has no untried actions. The time grows with the
    square of a group's nodes, the memory does not.

    Args:
        steps: Complete trajectories; an invalid action counts as not tried.
        nodes: Of their states.
        texts: [num_nodes] what the text of each state says; null at a goal.
        admissible_actions: [rows of the table] the column that the steps came with.
        terminated: [rows of the table] likewise.
    """
    signature = signatures(admissible_actions)[steps.row]
    num_groups = len(nodes.goal_of_group)
    lists = judge_lists(signature, nodes.state_of_step, nodes.group_of_step, num_groups)
    possible, action = _actions(steps, nodes, admissible_actions, signature)
    possible = possible.at(lists.is_useful[nodes.group_of_node])
    imagined = _imagine(texts, nodes, possible, _taken(steps, nodes, action))
    return Analogies(
        source=imagined["source"].to_numpy(),
        target=imagined["target"].to_numpy(),
        cost=imagined["cost"].to_numpy(),
        novelty=novelty(
            steps,
            nodes,
            texts,
            possible=possible,
            action=action,
            has_lists=lists.worth == Worth.USEFUL,
            terminated=terminated,
        ),
        lists=lists,
    )


def _taken(steps: Steps, nodes: Nodes, action: Ints) -> pl.DataFrame:
    """Return what each action did: group, action, taker (a node), target, and the least cost."""
    steps_of = pl.DataFrame(
        {
            "group": nodes.group_of_step,
            "action": action,
            "taker": nodes.state_of_step,
            "target": nodes.target_of_step,
            "cost": steps.cost,
        }
    ).filter(steps.is_valid)
    keys = ("group", "action", "taker", "target")
    return steps_of.group_by(keys, maintain_order=True).agg(pl.col("cost").min())


def _imagine(texts: pa.Array, nodes: Nodes, possible: Sets, taken: pl.DataFrame) -> pl.DataFrame:
    """Return the source, the target and the cost of each imagined transition."""
    takers = taken.select("group", "action", "taker").unique(maintain_order=True)
    group = nodes.group_of_node[possible.node]
    listed = {"group": group, "action": possible.code, "source": possible.node}
    untried = (
        pl.DataFrame(listed)
        .filter(nodes.goal_of_group[group] >= 0)
        .join(takers, left_on=["action", "source"], right_on=["action", "taker"], how="anti")
        .join(takers, on=["group", "action"], how="semi")
        .sort("source", "action")
    )
    kinds = (possible, _words(texts, nodes.node_start)) if len(untried) else ()
    groups = untried["group"].unique().sort().to_numpy()
    blocks = [Block(rows=range(0), first=0, alike=np.empty((0, 0)))]
    alike = (
        _most_alike(untried, takers, block)
        for block in chain(blocks, compare(kinds, nodes.node_start, groups))
    )
    moves = taken.filter(pl.col("target") != pl.col("taker"))
    found = pl.concat(alike).join(
        moves, on=["group", "action", "taker"], maintain_order="left_right"
    )
    is_sure = pl.col("target").n_unique().over("source", "action") == 1
    return found.filter(is_sure).with_columns(pl.col("cost") / pl.col("alike"))


def _most_alike(untried: pl.DataFrame, takers: pl.DataFrame, block: Block) -> pl.DataFrame:
    """Return the takers that are most alike the nodes of a block, for each untried action."""
    of_block = pl.col("source").is_between(block.rows.start, block.rows.stop - 1)
    pairs = untried.filter(of_block).join(
        takers, on=["group", "action"], maintain_order="left_right"
    )
    source, taker = pairs["source"].to_numpy(), pairs["taker"].to_numpy()
    pairs = pairs.with_columns(
        pl.Series("alike", block.alike[source - block.rows.start, taker - block.first])
    )
    best = pl.col("alike").max().over("source", "action")
    return pairs.filter(pl.col("alike") > 0, pl.col("alike") >= best * (1 - _ROUNDING))


def _actions(
    steps: Steps, nodes: Nodes, admissible_actions: pa.ChunkedArray, signature: Ints
) -> tuple[Sets, Ints]:
    """Return what is possible at each node, and [num_steps] the code of each step's action.

    Each list of a node is read once; `signature` [num_steps] tells lists apart.
    """
    listed = np.flatnonzero(signature != UNKNOWN)
    node = nodes.state_of_step[listed]
    pair, _, _ = factorise_pairs(node, factorise(signature[listed])[0])
    _, first = np.unique(pair, return_index=True)
    lists = admissible_actions.take(pa.array(steps.row[listed[first]])).combine_chunks()
    flat = pc.list_flatten(lists).cast(pa.string())
    code = encode(pa.chunked_array([steps.action_texts, flat])).rank()
    of_text, of_list = np.split(code, [len(steps.action_texts)])
    owner = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    is_known = of_list >= 0
    return _sets(node[first[owner[is_known]]], of_list[is_known]), of_text[steps.action]


def _words(texts: pa.Array, node_start: Ints) -> Sets:
    """Return the words of each node's text: what white space separates.

    A word may have another code in another group: nobody compares the words of two groups.
    """
    parts = [_sets(np.empty(0, np.int64), np.empty(0, np.int64))]
    num_before = 0
    for nodes in text_slices(texts, node_start):
        split = pc.utf8_split_whitespace(texts[nodes.start : nodes.stop])
        words = encode(pa.chunked_array([pc.list_flatten(split)]))
        node = nodes.start + pc.list_parent_indices(split).to_numpy().astype(np.int64)
        is_word = pc.not_equal(words.texts, "").to_numpy(zero_copy_only=False)[words.code]
        parts.append(_sets(node[is_word], num_before + words.code[is_word]))
        num_before += len(words.texts)
    return Sets(
        node=np.concatenate([part.node for part in parts]),
        code=np.concatenate([part.code for part in parts]),
    )


def _sets(node: Ints, code: Ints) -> Sets:
    """Return the distinct pairs of a node and a code, in ascending order."""
    node, code = distinct_pairs(node, code)
    return Sets(node=node, code=code)
