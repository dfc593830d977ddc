"""Novelty of states where nobody reached the goal: it lies behind what was seldom done or seen.

    N(s) = Σ 1 / (1 + seen(x))²     over the new things x of s

    the actions   the admissible actions of s that no step took there; seen(x) is how often the
                  group took x in other states
    the words     the words of its text, and the pairs of neighbouring words; seen(x) is how many
                  visits of the group's states show x

A state as a whole says less: each lamp that is lit makes another state of all others. The actions
are used where all steps of a group have a list, the lists tell its states apart
(`action_lists.py`), and some action is untried. Elsewhere it is the words.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.jaccard import Sets
from graphcredit.credit.inputs.analogies.text_slices import text_slices
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import arrow_of, numpy_of


def novelty(
    steps: Steps,
    nodes: Nodes,
    texts: pa.Array,
    *,
    possible: Sets,
    action: Ints,
    has_lists: Bools,
    terminated: pa.ChunkedArray,
) -> Floats:
    """Return [num_nodes] N(s).

    It is 0 in a group with a goal, and where an episode ended for good without a success: there is
    nothing to try.

    Args:
        steps: Complete trajectories.
        nodes: Of their states.
        texts: [num_nodes] what the text of each state says; null at a goal.
        possible: The actions that are admissible at each node.
        action: [num_steps] the action of each step, in the codes of `possible`.
        has_lists: [num_groups] whether the lists are those of the states.
        terminated: [rows of the table] the column that the steps came with.
    """
    is_goalless = nodes.goal_of_group < 0
    values = np.zeros(len(nodes.text_of_node))
    if not is_goalless.any():
        return values
    untried = _untried(nodes, possible, action)
    number = np.bincount(nodes.group_of_node[untried.node], minlength=len(has_lists))
    uses_actions = has_lists & (number > 0)
    by_actions, by_words = (
        (is_goalless & chosen)[nodes.group_of_node] for chosen in (uses_actions, ~uses_actions)
    )
    for node, seen in (
        _actions(nodes, untried.at(by_actions), action),
        *_words(steps, nodes, texts, by_words),
    ):
        values += np.bincount(node, (1.0 + seen) ** -2, len(values))
    last = steps.trajectory_start[1:] - 1
    is_end = numpy_of(terminated.take(arrow_of(steps.row[last])))
    values[nodes.target_of_step[last[is_end & ~steps.is_success[last]]]] = 0.0
    return values


def _untried(nodes: Nodes, possible: Sets, action: Ints) -> Sets:
    """Return what is possible and no step took; an invalid step took it, too."""
    width = int(max(action.max(initial=0), possible.code.max(initial=0))) + 1
    tried = np.isin(possible.node * width + possible.code, nodes.state_of_step * width + action)
    return Sets(node=possible.node[~tried], code=possible.code[~tried])


def _actions(nodes: Nodes, untried: Sets, action: Ints) -> tuple[Ints, Ints]:
    """Return the node of each untried action, and how often its group took it."""
    width = int(max(action.max(initial=0), untried.code.max(initial=0))) + 1
    keys, times = np.unique(nodes.group_of_step * width + action, return_counts=True)
    wanted = nodes.group_of_node[untried.node] * width + untried.code
    place = np.searchsorted(keys, wanted)
    is_taken = np.append(keys, -1)[place] == wanted
    return untried.node, np.where(is_taken, np.append(times, 0)[place], 0)


def _words(
    steps: Steps, nodes: Nodes, texts: pa.Array, is_asked: Bools
) -> Iterator[tuple[Ints, Ints]]:
    """Yield nodes, each with how many visits of its group's states show one of its words."""
    visits = _visits(steps, nodes)
    known = np.flatnonzero(is_asked & (nodes.text_of_node >= 0))
    asked = texts.take(arrow_of(known))
    for part in text_slices(asked, np.searchsorted(known, nodes.node_start)):
        of_part = slice(part.start, part.stop)
        node, thing = _things(asked[of_part], known[of_part])
        of_group, _, _ = factorise_pairs(nodes.group_of_node[node], thing)
        yield node, np.bincount(of_group, visits[node])[of_group].astype(np.int64)


def _things(texts: pa.Array, nodes: Ints) -> tuple[Ints, Ints]:
    """Return each word and each pair of neighbouring words of each node once.

    Args:
        texts: [n] texts.
        nodes: [n] whose.
    """
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[^\pL\pN_]+", " "))
    split = pc.utf8_split_whitespace(plain)
    words = encode(pa.chunked_array([pc.list_flatten(split)]))
    is_word = (numpy_of(pc.binary_length(words.texts)) > 0)[words.code]
    node = nodes[numpy_of(pc.list_parent_indices(split))][is_word]
    code = words.code[is_word]
    is_pair = node[1:] == node[:-1]
    pair, _, _ = factorise_pairs(code[:-1][is_pair], code[1:][is_pair])
    thing = np.concatenate([code, pair + len(words.texts)])
    _, node, thing = factorise_pairs(np.concatenate([node, node[1:][is_pair]]), thing)
    return node, thing


def _visits(steps: Steps, nodes: Nodes) -> Ints:
    """Return [num_nodes] how often the trajectories were in each node, ends included."""
    ends = nodes.target_of_step[steps.trajectory_start[1:] - 1]
    both = np.concatenate([nodes.state_of_step, ends])
    return np.bincount(both, minlength=len(nodes.text_of_node))
