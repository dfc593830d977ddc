"""The tool world for a model of half a million weights: orders have names, and all is remembered.

It is the service of `experiments/tool_world`. Three things differ, for a model that has no memory
and cannot copy numbers: an order is called by its item (`cancel_order desk`), the text says all
that was told and read so far, and admissible calls are not shown to it.

- `named-tools` pays the score with `finish`, as `tools` does.
- `paid-tools` pays each turn what it changes in the score. The sum is the same.
- `tutored-tools` is for the warm-up: at random, seven of ten turns allow the best call alone, so
  that random play succeeds now and then.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.tool_world import names, words
from experiments.tool_world.service import (
    Distances,
    Service,
    Situation,
    action_of,
    distances_of,
    service_named,
)
from graphcredit.collector.environments.base import Environment, Observation, Task, Transition
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind

_TUTORED = 0.7
"""Share of the turns of a warm-up that allow the best call alone."""


class NamedTools(Environment):
    """One customer, and tools that take orders by the names of their items."""

    def __init__(self, service: Service, *, is_paid: bool, tutor: Distances | None) -> None:
        """Make the environment of a task; a tutor knows the best calls of a warm-up."""
        self._service, self._is_paid, self._tutor = service, is_paid, tutor
        self.reset()

    def reset(self) -> Observation:
        """Start again."""
        self._now = self._service.start
        self._history: tuple[str, ...] = ()
        return self._observe()

    def step(self, action: str) -> Transition:
        """Make a call; anything else is refused and changes nothing."""
        call = self._calls().get(action.strip())
        before = self._service.score(self._now)
        self._history = (*self._history, action)
        if call is not None:
            after = self._service.call(self._now, *call)
            assert after is not None, "calls that are listed can be made"
            self._now = after[0]
        score = self._service.score(self._now)
        at_end = score if self._now.is_over else 0.0
        return Transition(
            observation=self._observe(),
            reward=score - before if self._is_paid else at_end,
            is_action_valid=call is not None,
            terminated=self._now.is_over,
            success=at_end == 1.0,
        )

    def _calls(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Return the calls that can be made, by their names here."""
        return {
            self._name(tool, arguments): (tool, arguments)
            for tool, arguments in self._service.calls(self._now)
        }

    def _name(self, tool: str, arguments: dict[str, str]) -> str:
        items = {order.order_id: order.item for order in self._service.orders}
        item = items.get(arguments.get("order_id", ""), "")
        is_new = arguments.get("address") == self._service.streets[1]
        street = ("old", "new")[is_new] if "address" in arguments else ""
        return " ".join(filter(None, (tool, item, street)))

    def _observe(self) -> Observation:
        state = text_of(self._service, self._now)
        return Observation(state=state, admissible_actions=self._allowed())

    def _allowed(self) -> tuple[str, ...]:
        calls = self._calls()
        if self._tutor and words.varied(self._history).random() < _TUTORED:
            plan = self._tutor.plan(self._now)
            best = [name for name, call in calls.items() if plan and action_of(*call) == plan[0]]
            if best:
                return tuple(best)
        return tuple(sorted(calls))


def text_of(service: Service, now: Situation) -> str:
    """Return all that the agent was told and has read: the state, and what the model sees."""
    told = [f"{order.wish} {order.item}" for order in service.wishes[: now.told]]
    lines = [f"wants {', '.join(told)}", ("unknown", "customer", "orders")[now.known]]
    if now.known == 2:
        pairs = zip(service.orders, now.orders, now.read, strict=True)
        lines += sorted(
            f"{order.item} {status} {'new' if is_new else 'old'}" if is_read else order.item
            for order, (status, is_new), is_read in pairs
        )
    return "\n".join([*lines, *(["over"] if now.is_over else [])])


def world_of(spec: str) -> str:
    """Return all of a task that its texts tell: the wishes in their order, and the other order."""
    return ", ".join(f"{order.wish} {order.item}" for order in service_named(spec).orders)


def specs(first: int, number: int, *, but: frozenset[str] = frozenset()) -> list[str]:
    """Return tasks with two wishes, by their seeds from the first on, no two of one world."""
    chosen: dict[str, str] = {}
    seed = first
    while len(chosen) < number:
        spec = f"w2-s{seed}"
        if world_of(spec) not in but:
            chosen.setdefault(world_of(spec), spec)
        seed += 1
    return list(chosen.values())


def _list_tasks(environment: str, games: str | None, **options: Any) -> list[Task]:
    tasks = names.list_tasks(games, **options)
    return [replace(task, environment=environment) for task in tasks]


def _open(environment: str, spec: str, _: Path, __: bool) -> NamedTools:
    tutor = distances_of(spec) if environment == "tutored-tools" else None
    return NamedTools(service_named(spec), is_paid=environment == "paid-tools", tutor=tutor)


def register() -> None:
    """Make the three environments known."""
    for name in ("named-tools", "paid-tools", "tutored-tools"):
        ENVIRONMENTS[name] = EnvironmentKind(
            list_tasks=partial(_list_tasks, name), open=partial(_open, name), world_of=world_of
        )
