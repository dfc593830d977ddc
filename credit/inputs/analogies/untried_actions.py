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
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.action_lists import ActionLists, Worth, judge_lists
from graphcredit.credit.inputs.analogies.jaccard import Block, Sets, compare
from graphcredit.credit.inputs.analogies.novelty import novelty
from graphcredit.credit.inputs.analogies.text_slices import text_slices
from graphcredit.credit.merging.admissible import UNKNOWN, signatures
from graphcredit.credit.steps.arrays import (
    Bools,
    Floats,
    Ints,
    distinct_pairs,
    factorise,
    factorise_pairs,
    ranges,
    starts_of_runs,
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
    taken = _Taken.of(steps, nodes, action)
    untried = taken.not_in(possible)
    source, target, cost = _imagine(texts, nodes, possible, untried, taken)
    return Analogies(
        source=source,
        target=target,
        cost=cost,
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


def _imagine(
    texts: pa.Array, nodes: Nodes, possible: Sets, untried: Sets, taken: "_Taken"
) -> tuple[Ints, Ints, Floats]:
    """Return the source, the target and the cost of each imagined transition."""
    group = nodes.group_of_node[untried.node]
    run = taken.run(group, untried.code)
    known = np.flatnonzero((run >= 0) & (nodes.goal_of_group[group] >= 0))
    kinds = (possible, _words(texts, nodes.node_start)) if len(known) else ()
    rows = [_NOTHING] + [
        _most_alike(block, untried.node[known], run[known], taken)
        for block in compare(kinds, nodes.node_start, np.unique(group[known]))
    ]
    owner, place, alike = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    item, outcome = ranges(taken.num_outcomes, place)
    owner, target = owner[item], taken.target[outcome]
    with np.errstate(over="ignore"):
        cost = taken.cost[outcome] / alike[item]
    is_sure = _has_one_target(owner, target)
    return untried.node[known][owner[is_sure]], target[is_sure], cost[is_sure]


def _has_one_target(owner: Ints, target: Ints) -> Bools:
    """Return [n] whether all transitions of one owner have one target."""
    pair, owner_of_pair, _ = factorise_pairs(owner, target)
    is_sure: Bools = np.bincount(owner_of_pair)[owner_of_pair][pair] == 1
    return is_sure


@dataclass(frozen=True, kw_only=True, slots=True)
class _Taken:
    """The distinct actions of each node, those of one action and group together, and outcomes."""

    num_nodes: int
    num_groups: int
    key: Ints
    """[num_taken] ascending; action · num_nodes + node."""
    node: Ints
    """[num_taken] node the action was taken at."""
    run_key: Ints
    """[num_runs] ascending; action · num_groups + group."""
    num_of_run: Ints
    """[num_runs] how many nodes of the group the action was taken at."""
    num_outcomes: Ints
    """[num_taken] how many other nodes it led to."""
    target: Ints
    """[num_outcomes] which, for one after the other."""
    cost: Floats
    """[num_outcomes] at the least cost."""

    @classmethod
    def of(cls, steps: Steps, nodes: Nodes, action: Ints) -> "_Taken":
        is_valid = steps.is_valid
        num_nodes, num_groups = len(nodes.text_of_node), len(nodes.goal_of_group)
        source, target = nodes.state_of_step[is_valid], nodes.target_of_step[is_valid]
        key, taken = np.unique(action[is_valid] * num_nodes + source, return_inverse=True)
        action_of_key, node = np.divmod(key, max(num_nodes, 1))
        run_of_key = action_of_key * num_groups + nodes.group_of_node[node]
        run_start = starts_of_runs(run_of_key)
        outcome_key, outcome = np.unique(taken * num_nodes + target, return_inverse=True)
        least = np.full(len(outcome_key), np.inf)
        np.minimum.at(least, outcome, steps.cost[is_valid])
        taken_of_outcome, target = np.divmod(outcome_key, max(num_nodes, 1))
        is_move = target != node[taken_of_outcome]
        return cls(
            num_nodes=num_nodes,
            num_groups=num_groups,
            key=key,
            node=node,
            run_key=run_of_key[run_start[:-1]],
            num_of_run=np.diff(run_start),
            num_outcomes=np.bincount(taken_of_outcome[is_move], minlength=len(key)),
            target=target[is_move],
            cost=least[is_move],
        )

    def not_in(self, possible: Sets) -> Sets:
        """Return what is possible and was not taken."""
        is_untried = ~np.isin(possible.code * self.num_nodes + possible.node, self.key)
        return Sets(node=possible.node[is_untried], code=possible.code[is_untried])

    def run(self, group: Ints, action: Ints) -> Ints:
        """Return [n] the run of each action in each group; -1 where the group never took it."""
        wanted = action * self.num_groups + group
        place = np.searchsorted(self.run_key, wanted)
        return np.where(np.append(self.run_key, -1)[place] == wanted, place, -1)


_Best: TypeAlias = tuple[Ints, Ints, Floats]
"""Row by row, for each of the nodes that are most alike: the untried action, the place in `_Taken`,
and how alike."""

_NOTHING: _Best = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _most_alike(block: Block, node: Ints, run: Ints, taken: _Taken) -> _Best:
    """Find the most alike nodes for the untried actions of a block's rows.

    Args:
        block: Some nodes of a group, compared with all of it.
        node: [num_untried] ascending, the node of each untried action of any group.
        run: [num_untried] its run in `taken`.
        taken: What was tried.
    """
    first, stop = np.searchsorted(node, (block.rows.start, block.rows.stop)).tolist()
    if first == stop:
        return _NOTHING
    untried, place = ranges(taken.num_of_run, run[first:stop])
    alike = block.alike[node[first + untried] - block.rows.start, taken.node[place] - block.first]
    best = np.maximum.reduceat(alike, starts_of_runs(untried)[:-1])
    is_best = (alike >= best[untried] * (1 - _ROUNDING)) & (alike > 0)
    return first + untried[is_best], place[is_best], alike[is_best]


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
