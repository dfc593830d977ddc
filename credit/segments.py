"""States by the parts of their texts that recur with them.

A similarity of whole texts cannot tell an advertisement from a door that was opened: both change a
few words. What tells them apart is that the door stays open when the state is seen again.

1. **Segments.** A text is cut at line ends, punctuation and bullets; a segment is its words, in one
   case, so that layout does not matter.
2. **The same state, for certain.** The trajectories of a group start from one state; the same
   actions lead from one state to one state (where the admissible actions do not contradict); an
   invalid action does not leave a state. Each such class of visits is several looks at one state.
3. **Evidence.** In each class of two or more visits, a segment that all of them have *stays*, one
   that only some have *comes and goes*. Both are counted over the whole iteration. A segment is
   noise if it came and went more often than it stayed.
4. **Segments without evidence** are judged by their words, digits aside: noise, if they are
   twenty times likelier in a segment that is noise than in one that is not (naive Bayes).
5. **States.** Texts of one group are one state if the same segments are left and the guard allows.
   Without admissible actions the segments must also stand in the same order.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.arrays import Bools, Ints, factorise
from graphcredit.credit.guard import UNKNOWN
from graphcredit.credit.states import Nodes
from graphcredit.credit.trajectories import Steps

_WRAP = re.compile(r"(?<=[\w,])[ \t]*\n[ \t]*(?=[a-z])")
_BREAK = re.compile(r"[.,:](?=\s|$)|[\n!?;|•·*#=~<>()\[\]{}\"“”]+|(?<!\w)[-–—]+|[-–—]+(?!\w)")
_WORD = re.compile(r"\w+(?:(?:['’-]|(?<=\d)[.,:](?=\d))\w+)*")
_NUMBER = re.compile(r"\w*\d\w*")
_LEAST_SCORE = math.log(20)
"""How much likelier than not a segment's words must be in noise."""


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
        num_segments = max(len(self.names), 1)
        _, pairs = factorise(self.text * num_segments + self.segment)
        text, segment = np.divmod(pairs, num_segments)
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


@dataclass(kw_only=True, slots=True)
class Evidence:
    """In how many classes of visits to one state each segment stayed, or came and went."""

    stays: Counter[str] = field(default_factory=Counter[str])
    """Classes of two or more visits that all have the segment."""
    comes: Counter[str] = field(default_factory=Counter[str])
    """Classes of which some visits have it and some have not."""

    def add(self, segmented: Segmented, text_of_visit: Ints, class_of_visit: Ints) -> None:
        """Count the classes of one batch.

        Args:
            segmented: The texts.
            text_of_visit: [num_visits] the text seen.
            class_of_visit: [num_visits] equal where the state was the same for certain.
        """
        size = np.bincount(class_of_visit)
        visits = np.flatnonzero(size[class_of_visit] > 1)
        visit, segment = segmented.of(text_of_visit[visits])
        num_segments = max(len(segmented.names), 1)
        key, keys = factorise(class_of_visit[visits[visit]] * num_segments + segment)
        owner, code = np.divmod(keys, num_segments)
        is_whole = np.bincount(key, minlength=len(keys)) == size[owner]
        for counter, rows in ((self.stays, is_whole), (self.comes, ~is_whole)):
            number = np.bincount(code[rows], minlength=num_segments)
            for position in np.flatnonzero(number).tolist():
                counter[segmented.names[position]] += int(number[position])

    def is_noise(self, names: list[str]) -> Bools:
        """Return [len(names)] whether each segment says nothing of the state."""
        judge = _Words.learn(self)
        return np.array([self._verdict(name, judge) for name in names], bool)

    def _verdict(self, name: str, judge: "_Words") -> bool:
        comes, stays = self.comes[name], self.stays[name]
        return comes > stays if comes + stays else judge.is_noise(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    """How often each word is in a segment that is noise, and in one that is not."""

    noise: Counter[str]
    signal: Counter[str]
    num_noise: int
    num_signal: int

    @classmethod
    def learn(cls, evidence: Evidence) -> "_Words":
        noise, signal, number = Counter[str](), Counter[str](), [0, 0]
        for name in evidence.stays.keys() | evidence.comes.keys():
            is_noise = evidence.comes[name] > evidence.stays[name]
            (noise if is_noise else signal).update(_masked(name))
            number[is_noise] += 1
        return cls(noise=noise, signal=signal, num_noise=number[1], num_signal=number[0])

    def is_noise(self, name: str) -> bool:
        """Return whether a segment's words are by far more at home in noise.

        With n of N noise segments and m of M others having a word, and p = (n + m) / (N + M), it
        adds log((n + p) / (N + 1)) − log((m + p) / (M + 1)): 0 where nothing is known.
        """
        score = 0.0
        for word in _masked(name):
            noise, signal = self.noise[word], self.signal[word]
            if noise + signal:
                share = (noise + signal) / (self.num_noise + self.num_signal)
                score += math.log((noise + share) / (self.num_noise + 1))
                score -= math.log((signal + share) / (self.num_signal + 1))
        return score > _LEAST_SCORE


def _masked(name: str) -> set[str]:
    return {_NUMBER.sub("0", word) for word in name.split()}


def certain_classes(steps: Steps, nodes: Nodes, signature_of_node: Ints) -> tuple[Ints, Ints]:
    """Return [num_visits] the node of each visit, and a class: equal for one state for certain.

    Visits are the states before every step, then those after the last step of each failure.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Of their texts.
        signature_of_node: [num_nodes] what the guard knows; it splits classes.
    """
    num_trajectories = len(steps.trajectory_start) - 1
    lengths = np.diff(steps.trajectory_start)
    trajectory = np.repeat(np.arange(num_trajectories), lengths)
    # An invalid action is as good as none: only the others move a trajectory on.
    acted = steps.is_action_valid | steps.is_success
    moves_before = np.concatenate(([0], np.cumsum(acted)))
    place = moves_before[:-1] + trajectory
    signature = signature_of_node - UNKNOWN
    label = _prefix_classes(
        move_start=moves_before[steps.trajectory_start],
        first=_pair(
            nodes.group_of_step[steps.trajectory_start[:-1]],
            signature[nodes.state_of_step[steps.trajectory_start[:-1]]],
        ),
        action=steps.action[acted],
        outcome=signature[nodes.target_of_step[acted]],
    )
    last = steps.trajectory_start[1:] - 1
    failures = last[~steps.is_success[last]]
    node = np.concatenate([nodes.state_of_step, nodes.target_of_step[failures]])
    of_visit = label[np.concatenate([place, place[failures] + acted[failures]])]
    # The guard has the last word: what was called invalid may have changed what is admissible.
    return node, _pair(of_visit, signature[node])


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
    return factorise(one * (int(other.max(initial=0)) + 1) + other)[0]


def identities(segmented: Segmented, is_noise: Bools, *, in_order: bool) -> Ints:
    """Return [num_texts] a code: equal for texts with the same segments besides noise.

    Args:
        segmented: The texts.
        is_noise: [num_segments].
        in_order: Whether the order and number of segments matters.
    """
    kept: list[list[int]] = [[] for _ in range(segmented.num_texts)]
    for text, segment in zip(segmented.text.tolist(), segmented.segment.tolist(), strict=True):
        if not is_noise[segment]:
            kept[text].append(segment)
    code_of: dict[tuple[int, ...], int] = {}
    keys = (tuple(part if in_order else sorted(set(part))) for part in kept)
    return np.array([code_of.setdefault(key, len(code_of)) for key in keys], np.int64)
