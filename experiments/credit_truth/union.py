"""Several tasks as one world whose policy they share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments.credit_truth.world import World, numbered, playable_in
from experiments.episodes import Ints


def union(name: str, tasks: Sequence[World]) -> World:
    """Return a world of which each group plays one task, in turn.

    A view is the same in all tasks that show it, so they share the policy there: its success is the
    mean over the tasks, and so is its exact gradient.

    Args:
        name: Name of the world.
        tasks: Worlds with the same actions.
    """
    sizes = [task.num_states for task in tasks]
    first = np.cumsum([0, *sizes])
    width = max(task.target.shape[2] for task in tasks)
    shape = (first[-1], len(tasks[0].actions), width)
    target, probability = np.zeros(shape, np.int64), np.zeros(shape)
    starts = np.zeros((len(tasks), first[-1]))
    for number, task in enumerate(tasks):
        own, outcomes = slice(first[number], first[number + 1]), task.target.shape[2]
        target[own] = np.arange(*own.indices(len(target)))[:, None, None]
        target[own, :, :outcomes] = first[number] + task.target
        probability[own, :, :outcomes] = task.probability
        starts[number, own] = task.start
    views, view = numbered([task.views[place] for task in tasks for place in task.view])
    texts, text = numbered([task.texts[place] for task in tasks for place in task.text])

    def joined(column: str) -> Ints:
        return np.concatenate([getattr(task, column) for task in tasks])

    admissible = joined("admissible").astype(bool)
    return replace(
        tasks[0],
        name=name,
        horizon=max(task.horizon for task in tasks),
        views=views,
        view=view,
        texts=texts,
        text=text,
        is_own=joined("is_own").astype(bool),
        starts=starts,
        target=target,
        probability=probability,
        admissible=admissible,
        playable=playable_in(view, admissible, len(views)),
        is_won=joined("is_won").astype(bool),
        is_over=joined("is_over").astype(bool),
        score=joined("score").astype(np.float64),
    )
