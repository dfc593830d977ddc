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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.action_lists import ActionLists, Worth, judge_lists
from graphcredit.credit.inputs.analogies.jaccard import Sets, sets_of
from graphcredit.credit.inputs.analogies.novelty import novelty
from graphcredit.credit.merging.admissible import UNKNOWN, signatures
from graphcredit.credit.steps.arrays import Floats, Ints, factorise, factorise_pairs
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import arrow_of, numpy_of


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
    none = np.empty(0, np.int64)
    source, target, cost = none, none, np.empty(0)
    if len(possible.node):
        from graphcredit.credit.inputs.analogies.imagined import imagine

        source, target, cost = imagine(steps, nodes, texts, possible, action)
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
    lists = admissible_actions.take(arrow_of(steps.row[listed[first]])).combine_chunks()
    flat = pc.list_flatten(lists).cast(pa.string())
    code = encode(pa.chunked_array([steps.action_texts, flat])).rank()
    of_text, of_list = np.split(code, [len(steps.action_texts)])
    owner = numpy_of(pc.list_parent_indices(lists)).astype(np.int64)
    is_known = of_list >= 0
    return sets_of(node[first[owner[is_known]]], of_list[is_known]), of_text[steps.action]
