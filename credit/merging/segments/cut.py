"""States by the parts of their texts that recur with them.

A similarity of whole texts cannot tell an advertisement from a door that was opened: both change a
few words. What tells them apart is that the door stays open when the state is seen again.

1. **Segments.** A text is cut at line ends, punctuation and bullets; a segment is its words, in one
   case, so that layout does not matter.
2. **The same state, for certain.** The trajectories of a group start from one state; the same
   actions lead from one state to one state (where the admissible actions do not contradict); an
   invalid action does not leave a state. Each such class of visits is several looks at one state.
3. **Evidence** (`evidence.py`). In each class of two or more visits, a segment that all of them
   have *stays*, one that only some have *comes and goes*. Both are counted over the whole
   iteration. A segment is noise if it came and went more often than it stayed, or if it only counts
   the steps. One that no class shows is judged by its words, and by whether it is seen again.
4. **States.** Texts of one group are one state if the same segments are left and the guard allows.
   In a group without admissible actions they must also stand in the same order.
5. **Once more.** One action leads from one of these states to one state: such classes are evidence
   on the segments of their group that had none, and the states are found again, twice.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes

_WRAP = re.compile(r"(?<=[\w,])[ \t]*\n[ \t]*(?=[a-z])")
_BREAK = re.compile(r"[.,:](?=\s|$)|[\n!?;|•·*#=~<>()\[\]{}\"“”]+|(?<!\w)[-–—]+|[-–—]+(?!\w)")
_WORD = re.compile(r"\w+(?:(?:['’-]|(?<=\d)[.,:](?=\d))\w+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Segmented:
    """Texts as lists of segment codes."""

    segment: Ints
    """[num_pairs] code of each segment, text by text, in the order in which they stand."""
    text: Ints
    """[num_pairs] the text it stands in, ascending."""
    num_texts: int
    """Texts, those without a segment included."""
    names: list[str]
    """The words of each segment code."""

    def of(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return the distinct segments of some texts, as (position in `texts`, segment) pairs."""
        _, text, segment = factorise_pairs(self.text, self.segment)
        start = np.searchsorted(text, np.arange(self.num_texts + 1))
        count = np.diff(start)[texts]
        position = np.repeat(np.arange(len(texts)), count)
        offset = np.arange(len(position)) - np.repeat(np.cumsum(count) - count, count)
        return position, segment[np.repeat(start[texts], count) + offset]


def cut(texts: Iterable[str]) -> Segmented:
    """Cut texts into segments."""
    code_of: dict[str, int] = {}
    segment: list[int] = []
    text: list[int] = []
    number = -1
    for number, body in enumerate(texts):
        for part in _BREAK.split(_WRAP.sub(" ", body)):
            if words := _WORD.findall(part):
                name = " ".join(words).casefold()
                segment.append(code_of.setdefault(name, len(code_of)))
                text.append(number)
    return Segmented(
        segment=np.array(segment, np.int64),
        text=np.array(text, np.int64),
        num_texts=number + 1,
        names=list(code_of),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Visits:
    """Every look at a state: before each step, then after the last step of each failure."""

    node: Ints
    """[num_visits] the node of the text seen."""
    certain: Ints
    """[num_visits] a class: equal where the state was the same for certain."""
    group: Ints
    """[num_visits] the group."""
    index: Ints
    """[num_visits] steps taken before."""


def visits_of(steps: Steps, nodes: Nodes, signature_of_node: Ints) -> Visits:
    """Return all visits of some trajectories.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Of their texts.
        signature_of_node: [num_nodes] what the guard knows; it splits classes.
    """
    first, last = steps.trajectory_start[:-1], steps.trajectory_start[1:] - 1
    trajectory = np.repeat(np.arange(len(first)), np.diff(steps.trajectory_start))
    # From `UNKNOWN`, which is -1, signatures become codes from 0.
    signature = signature_of_node - UNKNOWN
    # An invalid action does not leave a state: only the others are moves. A trajectory of m moves
    # is in m + 1 places, one after the other, so each trajectory before adds one to the count.
    is_move = steps.is_valid
    moves_before = np.concatenate(([0], np.cumsum(is_move)))
    place = moves_before[:-1] + trajectory
    class_of_place = _prefix_classes(
        move_start=moves_before[steps.trajectory_start],
        first=_pair(nodes.group_of_step[first], signature[nodes.state_of_step[first]]),
        action=steps.action[is_move],
        outcome=signature[nodes.target_of_step[is_move]],
    )
    # A failure's last step leads to one more visit: in the next place if the step was a move.
    failures = last[~steps.is_success[last]]
    node = np.concatenate([nodes.state_of_step, nodes.target_of_step[failures]])
    of_visit = class_of_place[np.concatenate([place, place[failures] + is_move[failures]])]
    index = np.arange(len(steps.row)) - steps.trajectory_start[trajectory]
    # The guard has the last word: what was called invalid may have changed what is admissible.
    return Visits(
        node=node,
        certain=_pair(of_visit, signature[node]),
        group=np.concatenate([nodes.group_of_step, nodes.group_of_step[failures]]),
        index=np.concatenate([index, index[failures] + 1]),
    )


def outcome_classes(steps: Steps, nodes: Nodes, visits: Visits, signature_of_node: Ints) -> Ints:
    """Return [num_visits] a class: equal where one action was taken in one node.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Their states as found so far.
        visits: All visits, with the nodes of their texts.
        signature_of_node: [num_nodes of `visits`] what the guard knows; it splits classes.
    """
    num_steps = len(steps.row)
    last = steps.trajectory_start[1:] - 1
    is_first = np.zeros(len(visits.node), bool)
    is_first[steps.trajectory_start[:-1]] = True
    # The step that led to each visit; before the first of a trajectory there is none.
    before = np.concatenate([np.arange(num_steps) - 1, last[~steps.is_success[last]]])
    # All invalid actions are action 0, for none of them leaves its state; the first visits of a
    # group's trajectories are one class, as if one action had led there from the group.
    action = np.where(steps.is_valid, steps.action + 1, 0)[before]
    action[is_first] = len(steps.action_texts) + 1
    source = np.where(is_first, visits.group, nodes.state_of_step[before])
    return _pair(_pair(source, action), (signature_of_node - UNKNOWN)[visits.node])


def _prefix_classes(*, move_start: Ints, first: Ints, action: Ints, outcome: Ints) -> Ints:
    """Number the places of trajectories: equal for equal first states and actions up to there.

    Args:
        move_start: [num_trajectories + 1] first move of each trajectory.
        first: [num_trajectories] equal for equal first states.
        action: [num_moves] what was done.
        outcome: [num_moves] what is known of the state after it; it must be equal, too.

    Returns:
        [num_moves + num_trajectories] a number for the place before each move of a trajectory and
        one for its last place, trajectory by trajectory.
    """
    length = np.diff(move_start)
    start = move_start[:-1] + np.arange(len(length))
    label = np.zeros(len(action) + len(length), np.int64)
    edge = _pair(action, outcome)
    active = np.arange(len(length))
    current, fresh = _pair(first, first), 0
    for depth in range(int(length.max(initial=-1)) + 1):
        label[start[active] + depth] = current + fresh
        fresh += int(current.max(initial=-1)) + 1
        goes_on = length[active] > depth
        active, current = active[goes_on], current[goes_on]
        current = _pair(current, edge[move_start[active] + depth])
    return label


def _pair(one: Ints, other: Ints) -> Ints:
    """Return a number for each pair, from 0 in order of first appearance."""
    return factorise_pairs(one, other)[0]


def identities(segmented: Segmented, is_noise: Bools, in_order: Bools) -> Ints:
    """Return [num_texts] a code: equal for texts with the same segments besides noise.

    Args:
        segmented: The texts.
        is_noise: [num_pairs] which of `segmented.segment` say nothing.
        in_order: [num_texts] whether the order and number of the text's segments matters.
    """
    kept: list[list[int]] = [[] for _ in range(segmented.num_texts)]
    text, segment = segmented.text[~is_noise], segmented.segment[~is_noise]
    for number, code in zip(text.tolist(), segment.tolist(), strict=True):
        kept[number].append(code)
    code_of: dict[tuple[int, ...], int] = {}
    keys = (
        tuple(part if is_list else sorted(set(part)))
        for part, is_list in zip(kept, in_order.tolist(), strict=True)
    )
    return np.array([code_of.setdefault(key, len(code_of)) for key in keys], np.int64)
