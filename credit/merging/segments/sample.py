"""The groups that the merge learns from: all of an iteration, or as many as is enough."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from graphcredit.credit.merging.candidates import Candidates
from graphcredit.credit.merging.segments.observations import Observations, observe
from graphcredit.credit.steps.arrays import Ints, factorise
from graphcredit.store.parquet.numbers import arrow_of

_OBSERVATIONS = 10_000
"""Enough to learn from; groups are taken whole."""

_CHARACTERS = 1 << 24
"""Of texts, in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledGroups:
    """Observations of whole groups."""

    texts: list[str]
    """The text of each node."""
    observations: Observations
    """All observations; groups are numbered from 0."""
    actions: list[str]
    """The text of each code of `observations.action`."""


def take_sample(batches: Iterable[Candidates]) -> SampledGroups:
    """Return groups in the order of a hash of their task, until there is enough.

    Which groups are taken does not depend on the batches that they are in.
    """
    chosen: list[_Group] = []
    for candidates in batches:
        groups = sorted([*chosen, *_groups(candidates)], key=lambda group: group.mark)
        before = np.cumsum([0.0, *(group.weight for group in groups)])
        chosen = groups[: int(np.searchsorted(before, 1.0))]
    return _joined(chosen)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    mark: bytes
    """Hash of its task: its place in the order in which groups are taken."""
    texts: list[str]
    observations: Observations
    """Its group has number 0."""
    actions: list[str]

    @property
    def weight(self) -> float:
        """Share of what is enough."""
        size = sum(map(len, self.texts))
        return max(len(self.observations.node) / _OBSERVATIONS, size / _CHARACTERS)


def _groups(candidates: Candidates) -> Iterator[_Group]:
    steps, nodes = candidates.steps, candidates.nodes
    every = observe(steps, nodes, candidates.marks())
    order = np.argsort(every.group, kind="stable")
    starts = np.searchsorted(every.group[order], np.arange(len(nodes.goal_of_group) + 1))
    first_step = np.searchsorted(nodes.group_of_step, np.arange(len(nodes.goal_of_group)))
    tasks = steps.task_texts.take(arrow_of(steps.task[first_step])).to_pylist()
    marks = [hashlib.blake2b(task.encode(), digest_size=16).digest() for task in tasks]
    form = candidates.form_of(nodes)
    room = 1.0
    for group in sorted(range(len(marks)), key=marks.__getitem__):
        # No group after these is taken, whatever other batches hold.
        if room <= 0:
            return
        rows = order[starts[group] : starts[group + 1]]
        node, distinct = factorise(every.node[rows])
        taken, action = np.unique(every.action[rows], return_inverse=True)
        is_end = int(taken[0] < 0)
        one = _Group(
            mark=marks[group],
            texts=[candidates.forms[code] for code in form[distinct].tolist()],
            observations=Observations(
                node=node,
                equivalence=factorise(every.equivalence[rows])[0],
                group=np.zeros(len(rows), np.int64),
                index=every.index[rows],
                trajectory=factorise(every.trajectory[rows])[0],
                action=action - is_end,
                is_valid=every.is_valid[rows],
                outcome=every.outcome[rows],
            ),
            actions=steps.action_texts.take(arrow_of(taken[is_end:])).to_pylist(),
        )
        room -= one.weight
        yield one


def _joined(groups: list[_Group]) -> SampledGroups:
    """Return groups as one sample; what is numbered within a group is numbered on."""
    actions = sorted({text for group in groups for text in group.actions})
    code_of = {text: code for code, text in enumerate(actions)}
    parts: list[Observations] = []
    num_nodes = num_classes = num_trajectories = 0
    for number, group in enumerate(groups):
        own = group.observations
        codes = np.array([*map(code_of.__getitem__, group.actions), -1])
        parts.append(
            replace(
                own,
                node=own.node + num_nodes,
                equivalence=own.equivalence + num_classes,
                group=own.group + number,
                trajectory=own.trajectory + num_trajectories,
                action=codes[own.action],
            )
        )
        num_nodes += len(group.texts)
        num_classes += int(own.equivalence.max()) + 1
        num_trajectories += int(own.trajectory.max()) + 1

    def joined(name: str) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *(getattr(of, name) for of in parts)])

    arrays: dict[str, Any] = {field.name: joined(field.name) for field in fields(Observations)}
    arrays["is_valid"] = arrays["is_valid"].astype(np.bool_)
    return SampledGroups(
        texts=[text for group in groups for text in group.texts],
        observations=Observations(**arrays),
        actions=actions,
    )
