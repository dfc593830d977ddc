"""How often a group saw what is rarest in each of its states.

Where nobody reached the goal, it lies behind something that nobody did or saw often. Two things
tell how new a state is:

    the actions   the admissible action of the state that the group took least often, wherever
    the words     the word of its text, or the pair of neighbouring words, that the fewest visits of
                  the group's states show

A state as a whole says less: each lamp that is lit makes another state of all others. The actions
are used where all steps of the group have a list, and the lists tell its states apart
(`analogies/action_lists.py`). Elsewhere it is the words. Groups with a goal need neither.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.action_lists import Worth, judge_lists
from graphcredit.credit.merging.admissible import signatures
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes


def least_seen(steps: Steps, nodes: Nodes, admissible_actions: pa.ChunkedArray) -> Floats:
    """Return [num_nodes] how often the rarest thing of a node was seen.

    It is inf at a node of which nothing is known: one without words; where the actions are used,
    one that no step left; and everywhere in a group with a goal.

    Args:
        steps: Complete trajectories.
        nodes: Of their states.
        admissible_actions: [rows of the table] the column that the steps came with.
    """
    found = np.full(len(nodes.text_of_node), np.inf)
    is_goalless = nodes.goal_of_group < 0
    if not is_goalless.any():
        return found
    lists = judge_lists(
        signatures(admissible_actions)[steps.row],
        nodes.state_of_step,
        nodes.group_of_step,
        len(nodes.goal_of_group),
    )
    has_lists = (is_goalless & (lists.worth == Worth.USEFUL))[nodes.group_of_node]
    has_words = is_goalless[nodes.group_of_node] & ~has_lists
    _lower(found, *_actions(steps, nodes, admissible_actions, has_lists))
    _lower(found, *_words(steps, nodes, has_words))
    return found


def _lower(found: Floats, node: Ints, seen: Floats) -> None:
    """Lower the number of each node to the least of its things."""
    np.minimum.at(found, node, seen)


def _actions(
    steps: Steps, nodes: Nodes, admissible_actions: pa.ChunkedArray, is_asked: Bools
) -> tuple[Ints, Floats]:
    """Return nodes, each with how often its group took an action that is admissible there."""
    asked = np.flatnonzero(is_asked[nodes.state_of_step])
    lists = admissible_actions.take(pa.array(steps.row[asked])).combine_chunks()
    listed = pc.list_flatten(lists).cast(pa.string())
    code = encode(pa.chunked_array([steps.action_texts, listed])).code
    taken, offered = np.split(code, [len(steps.action_texts)])
    parent = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    node = nodes.state_of_step[asked[parent]]
    is_known = offered >= 0
    node, offered = node[is_known], offered[is_known]
    width = int(code.max(initial=0)) + 1
    key = nodes.group_of_step[asked] * width + taken[steps.action[asked]]
    keys, times = np.unique(key, return_counts=True)
    wanted = nodes.group_of_node[node] * width + offered
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    is_taken = keys[place] == wanted if len(keys) else np.zeros(0, bool)
    return node, np.where(is_taken, times[place], 0.0) if len(keys) else np.zeros(0)


def _words(steps: Steps, nodes: Nodes, is_asked: Bools) -> tuple[Ints, Floats]:
    """Return nodes, each with how many visits of its group's states show one of its words."""
    known = np.flatnonzero(is_asked & (nodes.text_of_node >= 0))
    texts = steps.state_texts.take(pa.array(nodes.text_of_node[known]))
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[^\pL\pN_]+", " "))
    split = pc.utf8_split_whitespace(plain)
    words = encode(pa.chunked_array([pc.list_flatten(split)]))
    is_word = pc.not_equal(words.texts, "").to_numpy(zero_copy_only=False)[words.code]
    node = known[pc.list_parent_indices(split).to_numpy()][is_word]
    code = words.code[is_word]
    is_pair = node[1:] == node[:-1]
    pair, _, _ = factorise_pairs(code[:-1][is_pair], code[1:][is_pair])
    node = np.concatenate([node, node[1:][is_pair]])
    thing = np.concatenate([code, pair + len(words.texts)])
    _, node, thing = factorise_pairs(node, thing)
    of_group, _, _ = factorise_pairs(nodes.group_of_node[node], thing)
    visits = _visits(steps, nodes)
    return node, np.bincount(of_group, visits[node])[of_group].astype(np.float64)


def _visits(steps: Steps, nodes: Nodes) -> Ints:
    """Return [num_nodes] how often the trajectories were in each node, ends included."""
    ends = nodes.target_of_step[steps.trajectory_start[1:] - 1]
    both = np.concatenate([nodes.state_of_step, ends])
    return np.bincount(both, minlength=len(nodes.text_of_node))
