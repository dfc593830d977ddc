"""Sampled episodes with tools as people log them, and their states by some rules.

What tools answer has ids, times and lists in any order, and the user words things anew: no two
episodes read the same. The log has the last text as the state, and never the situation.
"""

from collections.abc import Iterator

import pyarrow as pa

from experiments.credit_truth.rollouts import step_table
from experiments.credit_truth.world import World
from experiments.episodes import Rollouts
from experiments.tool_world import words
from experiments.tool_world.service import Service, Situation, action_of, service_named
from graphcredit.collector.states.calls import Visit, visits_of
from graphcredit.collector.states.effects import Effects, learn_effects
from graphcredit.collector.states.rows import moves_of_rows

TRUE = "the true state"


def logged(world: World, rollouts: Rollouts) -> pa.Table:
    """Return the steps, with what the agent last saw as their states."""
    steps = in_true_states(world, rollouts)
    texts = list(_texts(world, rollouts))
    for name, column in zip(("state", "next_state"), zip(*texts, strict=True), strict=True):
        steps = steps.set_column(steps.schema.get_field_index(name), name, pa.array(column))
    nothing = pa.nulls(len(texts), pa.string())
    return steps.append_column("observation", nothing).append_column("extra", nothing)


def in_true_states(world: World, rollouts: Rollouts) -> pa.Table:
    """Return the steps, with the true situations as their states."""
    return step_table(world, rollouts, lists="none")


def effects_of(steps: pa.Table, num_groups: int) -> Effects:
    """Return which tools change something, as the first groups of logged steps tell it."""
    groups: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in steps.to_pylist():
        groups.setdefault(row["task_id"], {}).setdefault(row["trajectory_id"], []).append(row)
    return learn_effects(map(_visits, list(groups.values())[:num_groups]))


def _visits(rollouts: dict[str, list[dict[str, str]]]) -> list[list[Visit]]:
    return [visits_of(moves_of_rows(rows)) for rows in rollouts.values()]


def _texts(world: World, rollouts: Rollouts) -> Iterator[tuple[str, str]]:
    """Yield what the agent sees before each step, and after it."""
    service = service_named(world.name)
    calls = {action_of(*call): call for call in service.calls(service.everything)}
    text, now, history = "", service.start, ()
    for episode, time, action in zip(
        rollouts.episode.tolist(), rollouts.time.tolist(), rollouts.action.tolist(), strict=True
    ):
        if not time:
            text, now, history = words.opening(service), service.start, (str(episode),)
        history = (*history, world.actions[action])
        before = text
        text, now = _answered(service, now, calls[world.actions[action]], history)
        yield before, text


def _answered(
    service: Service, now: Situation, call: tuple[str, dict[str, str]], history: tuple[str, ...]
) -> tuple[str, Situation]:
    answer = service.call(now, *call)
    assert answer is not None, "the player makes calls that can be made"
    then, result = answer
    random = words.varied(history)
    if call[0] == "ask_user":
        return words.told(service, then.told, then.told > now.told, random), then
    return words.logged(result, random, len(history) - 1), then
