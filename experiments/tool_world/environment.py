"""The tools environment: an agent with tools changes a customer's orders as the customer asks.

There are twelve calls: `find_customer`, `get_customer`, `list_orders`, `get_order`, `track_parcel`,
`get_policy`, `ask_user`, `cancel_order`, `return_order`, `refund_order`, `change_address`, and
`finish`, which ends the episode. An action is `tool({"argument": "value"})`.

- `state` is the true one: the database, what was read, what the user told. The text that the agent
  sees is only the last result, or the user's words: that is what people log.
- `text` is never twice the same: ids, times, the order of lists, and the user's words depend on all
  calls so far. The same calls give the same texts.
- Admissible actions are the calls that can be made with what is known. The service may answer one
  with an error, which changes nothing: an order that was sent cannot be cancelled.
- What is cancelled, returned or refunded stays so: a wrong one is a dead end. Addresses can be
  changed back.
- The reward comes with `finish`: the share of the wishes that are met, halved where something else
  was changed. Success is all of it.
- The oracle's plan is a shortest one, and its length the exact distance.
"""

from pathlib import Path

from experiments.tool_world import words
from experiments.tool_world.names import ENVIRONMENT, list_tasks
from experiments.tool_world.service import Service, action_of, distances_of, service_named
from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.store.files.parse import parse_json

_TASK = """\
You are the support agent of a shop, and change orders as the customer asks, and nothing else. \
A call of a tool is written tool({"argument": "value"}); finish({}) ends the talk."""


class ToolsEnvironment(Environment):
    """One customer, and the tools."""

    def __init__(self, spec: str, service: Service, *, with_oracle: bool) -> None:
        self._service = service
        self._distances = distances_of(spec) if with_oracle else None
        self.reset()

    def reset(self) -> Observation:
        """Start again: nothing was changed, and nobody is known."""
        self._now = self._service.start
        self._history: tuple[str, ...] = ()
        self._text = words.opening(self._service)
        return self._observe()

    def step(self, action: str) -> Transition:
        """Make a call; anything else is refused and changes nothing."""
        tool, _, rest = action.strip().partition("(")
        try:
            arguments = parse_json(rest.removesuffix(")"))
        except ValueError:
            arguments = None  # no call has them
        answer = self._service.call(self._now, tool, arguments)
        self._history = (*self._history, action)
        random = words.varied(self._history)
        if answer is None:
            result = {"error": "there is no such call, or what it names is not known"}
            self._text = words.logged(result, random, len(self._history))
        else:
            before, (self._now, result) = self._now, answer
            if tool == "ask_user":
                is_new = self._now.told > before.told
                self._text = words.told(self._service, self._now.told, is_new, random)
            else:
                self._text = words.logged(result, random, len(self._history))
        score = self._service.score(self._now) if self._now.is_over else 0.0
        return Transition(
            observation=self._observe(),
            reward=score,
            is_action_valid=answer is not None,
            terminated=self._now.is_over,
            success=score == 1.0,
        )

    def _observe(self) -> Observation:
        calls = (action_of(*call) for call in self._service.calls(self._now))
        return Observation(
            state=self._state(),
            text=self._text,
            admissible_actions=tuple(sorted(calls)),
            oracle_actions=self._distances.plan(self._now) if self._distances else None,
            task=_TASK,
        )

    def _state(self) -> str:
        now = self._now
        lines = [
            f"{order.order_id} ({order.item}): {status}, to {self._service.streets[is_new]}"
            + (", read" if is_read else "")
            for order, (status, is_new), is_read in zip(
                self._service.orders, now.orders, now.read, strict=True
            )
        ]
        known = ("nobody", "the customer", "the customer and the orders")[now.known]
        told = f"{now.told} of {len(self._service.wishes)} wishes told"
        return "\n".join([f"known: {known}; {told}", *lines, *(["over"] if now.is_over else [])])


def open_tools(spec: str, _: Path, with_oracle: bool) -> ToolsEnvironment:
    """Open a task."""
    return ToolsEnvironment(spec, service_named(spec), with_oracle=with_oracle)


ENVIRONMENTS[ENVIRONMENT] = EnvironmentKind(list_tasks=list_tasks, open=open_tools)
