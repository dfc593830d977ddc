"""A rollout of a foreign log: its messages, its rewards, and how it ended."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphcredit.collector.importers.images.neighbour_files import KeptImage
from graphcredit.collector.importers.logs.places import NOWHERE, Place
from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    as_mapping,
    as_number,
    field_at,
)

ASSISTANT, SYSTEM, USER, TOOL = "assistant", "system", "user", "tool"


@dataclass(slots=True)
class ToolCall:
    """A call of a tool by the policy."""

    name: str
    arguments: str
    """JSON with sorted keys, so that equal calls have equal texts; the log's text if not JSON."""
    id: str | None = field(default=None, compare=False)
    """Tells whether two places of a log have one call. No part of an action."""
    logged: Any = field(default=None, compare=False)
    """The arguments as the log has them, in their order; None: as in `arguments`."""

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedSampling:
    """How a message was sampled; None where the log does not say."""

    prompt_ids: list[int] | None = None
    """Token ids that the policy was given."""
    response_ids: list[int] | None = None
    """Token ids that the policy sampled."""
    response_logprobs: list[float] | None = None
    """Log-probability of each sampled token."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    policy_version: str | None = None
    """Which weights sampled it."""


NO_SAMPLING = LoggedSampling()
"""Of a message of which the log does not say how it was sampled."""


def sampling_of(settings: object) -> LoggedSampling:
    """Return the temperature and `top_p` of some settings."""
    return LoggedSampling(
        temperature=as_number(field_at(settings, "temperature"), "temperature"),
        top_p=as_number(field_at(settings, "top_p"), "top_p"),
    )


EVALUATED = "rollouts of an evaluation are in a run of their own, whose name ends in `eval`"


def run_of_evaluation(run: str | None) -> str:
    """Return the run of a training's evaluations, which must not be compared with its rollouts."""
    return "eval" if run is None else f"{run}-eval"


@dataclass(kw_only=True)
class Message:
    """A message of a rollout. Do not change it.

    It is neither frozen nor has it slots: what has its default need not be set where a message of
    few fields is made (`messages/plain.py`).
    """

    role: str
    """assistant, system, user or tool."""
    text: str
    thought: str = ""
    """Reasoning that the log keeps apart from the text."""
    tool_calls: tuple[ToolCall, ...] = ()
    calls_text: str = ""
    """The text that its calls were read from, where the log has them in words."""
    said: str = ""
    """Its text as the log has it, where reasoning or calls were taken out of it."""
    action: str | None = None
    """The action that was run, where the log names it; by default it is made from the message."""
    is_context: bool = False
    """An assistant message that was part of the prompt: no step of this rollout."""
    is_refused: bool = False
    """A result which says that the call could not be parsed or was refused."""
    admissible_actions: tuple[str, ...] | None = None
    """What the environment accepts after this message, where the log says so."""
    reward: float | None = None
    """The reward of this turn; of an assistant message only."""
    score: float | None = None
    """How good the state after this turn is, where the format says so; of an assistant message."""
    image_parts: tuple[Mapping[str, Any], ...] = ()
    """The images of its content as the log has them; each has a mark in the text."""
    images: tuple[KeptImage, ...] = ()
    """Those of them that are kept."""
    num_unread: int = 0
    """Parts of its content that no reader knows: each has a mark in the text."""
    sampling: LoggedSampling = NO_SAMPLING
    state: str | None = None
    """The state that it shows, where the log names it beside the text."""
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The message as the log has it, for `extra` and for `--state column:NAME`."""
    plain: Mapping[str, Any] | None = None
    """Its source, if that has nothing but a role, texts, and calls as OpenAI has them."""

    @property
    def is_answer(self) -> bool:
        """Whether the policy sampled it."""
        return self.role == ASSISTANT and not self.is_context


def made(**fields: Any) -> Message:
    """Return a message of some fields, its `source` among them.

    It takes a third of the time of the constructor, and is for the readers of most messages.
    """
    message = object.__new__(Message)
    message.__dict__ = fields
    return message


class PlainMessages(tuple[Message, ...]):
    """All messages of a rollout, of plain sources: nothing more need be looked for in any."""

    turns: "Turns"
    items: list[Any]
    """The list that they were read from, each its item."""
    num_characters: int
    """Of its texts that count, which all were read."""


def are_plain(messages: Sequence[Message]) -> bool:
    """Return whether the sources of all messages are plain."""
    if type(messages) is PlainMessages:
        return True
    return all(message.plain is message.source for message in messages)


def with_sampling(message: Message, sampling: LoggedSampling) -> Message:
    """Return a message of the policy as sampled so; others as they are."""
    return replace(message, sampling=sampling) if message.is_answer else message


@dataclass(kw_only=True, slots=True)
class LoggedRollout:
    """One trajectory of a foreign log. Do not change it."""

    messages: tuple[Message, ...]
    record: Mapping[str, Any]
    """The record that it was read from, for fields that options name."""
    trajectory_id: str | None = None
    """An id of the log that no other rollout has anywhere. None makes one of `label` and the
    content."""
    label: str = ""
    """A readable beginning of the id, such as `task:trial`."""
    group: str | None = None
    """What the log names as the group: rollouts of the same task from the same start."""
    task: str | None = None
    """What the log names as the task."""
    run: str | None = None
    iteration: int | None = None
    """The training step that the policy was sampled at."""
    reward: float | None = None
    """The log's total reward."""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    """Rewards by name, unweighted."""
    success: bool | None = None
    """Whether the task was accomplished, where the log itself says so."""
    is_claim: bool = False
    """Whether it is the agent, or a judge that it brings, that says so."""
    truncated: bool = False
    """Whether a limit ended it."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the log says of it, for `extra` of the first step."""
    places: tuple[int, ...] | None = None
    """The place of each turn among all answers of the record, where some are of other branches."""
    num_answers: int | None = None
    """Those answers; None: all are turns."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the reader left out of this rollout: reason to number."""
    notes: tuple[str, ...] = ()
    """What the reader decided, for the report; each note is shown once."""
    is_steps: bool = False
    """Whether the log is one of steps: each has its own reward, and messages after the last one
    show the state that it led to."""
    state_field: str | None = None
    """Of steps: the field taken for what each action was chosen in, by its name alone."""
    place: Place = NOWHERE
    """Where it was read."""
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    """Columns of the steps that the log has as the store does, checked: a value for each turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Omission:
    """Something of a log that becomes no step."""

    reason: str
    """A noun in the singular with its reason, for `counted`: `episode with an error`."""
    count: int = 1


OF_SUBAGENT = Omission(reason="session of a sub-agent")

Rollouts = Iterator[LoggedRollout | Omission]
"""What a reader yields of a record."""

_SHOWN = 5
"""Broken parts that an error names."""


def each_part(
    parts: Sequence[Any], what: str, read: Callable[[Mapping[str, Any]], Rollouts]
) -> Rollouts:
    """Yield the rollouts of all sound parts of a record, then raise an error about the others."""
    broken: list[str] = []
    for number, part in enumerate(parts):
        try:
            yield from read(as_mapping(part, "it"))
        except RecordError as error:
            broken.append(f"{what}[{number}]: {error}")
        except MALFORMED as error:
            broken.append(f"{what}[{number}]: {error!r}")
    if broken:
        more = f"; and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        raise RecordError(
            f"{len(broken)} of its parts cannot be read: " + "; ".join(broken[:_SHOWN]) + more
        )


@dataclass(slots=True)
class Turn:
    """A message of the policy, and what it had seen since its message before."""

    seen: tuple[Message, ...]
    message: Message
    heard: tuple[Message, ...] = ()
    """Where several agents speak: what was said before `seen`, since this agent last spoke."""

    @property
    def prompt(self) -> tuple[Message, ...]:
        """What its agent has seen since it last spoke, without system messages."""
        return tuple([m for m in (*self.heard, *self.seen) if m.role != SYSTEM])


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """The turns of a rollout, in order, and what followed the last one."""

    turns: tuple[Turn, ...]
    after: tuple[Message, ...]
    """Messages after the last one of the policy, for example the final result."""


def turns_of(messages: tuple[Message, ...]) -> Turns:
    """Cut a list of messages at the messages that the policy sampled.

    Every message is in exactly one turn, or in `after`.
    """
    if type(messages) is PlainMessages:
        return messages.turns
    turns: list[Turn] = []
    seen: list[Message] = []
    for message in messages:
        if message.role == ASSISTANT and not message.is_context:
            turns.append(Turn(tuple(seen), message))
            seen = []
        else:
            seen.append(message)
    return Turns(turns=tuple(_with_others(turns)), after=tuple(seen))


_SPEAKERS = ("name", "agent", "agent_name", "sender", "speaker")


def agent_of(message: Message) -> str | None:
    """Return who speaks, where a message of the policy says so."""
    source, name = message.source, None
    if message.plain is source:
        return None
    if not source.keys().isdisjoint(_SPEAKERS):
        tools = {call.name for call in message.tool_calls}
        names = (source.get(name) for name in _SPEAKERS)
        name = next((n for n in names if isinstance(n, str) and n and n not in tools), None)
    role = source.get("role")
    if name is None and isinstance(role, str) and role[:1].isupper():
        return role.partition(" (")[0]
    return name


def _with_others(turns: list[Turn]) -> list[Turn]:
    """Return turns in which each of several agents has heard what the others said."""
    agents = [agent_of(turn.message) for turn in turns]
    if len(set(agents)) < 2:
        return turns
    last: dict[str | None, int] = {}
    for number, (turn, agent) in enumerate(zip(turns, agents, strict=True)):
        between = turns[last.get(agent, -1) + 1 : number]
        turn.heard = tuple(m for each in between for m in (*each.seen, _said(each.message)))
        last[agent] = number
    return turns


def _said(message: Message) -> Message:
    """Return an answer of one agent as another one hears it."""
    text = message.text or "\n".join(map(str, message.tool_calls))
    return replace(message, role=USER, text=f"{agent_of(message) or ASSISTANT}: {text}")


def only_agent(rollout: LoggedRollout, name: str) -> LoggedRollout:
    """Return a rollout whose steps are those of one agent: what others say is what it hears."""
    messages = (
        message if not message.is_answer or agent_of(message) == name else _said(message)
        for message in rollout.messages
    )
    return replace(rollout, messages=tuple(messages), columns={})


def text_of(messages: tuple[Message, ...], *, system: bool = False) -> str:
    """Return the texts of messages, joined by empty lines.

    Args:
        messages: Any messages.
        system: Whether system messages count even where there are others.
    """
    if len(messages) == 1:
        return messages[0].text
    kept = [m for m in messages if system or m.role != SYSTEM] or list(messages)
    return "\n\n".join(message.text for message in kept if message.text)


NO_WORDS = " #"
"""How the name of a prompt begins that has no text."""


def prompt_name(messages: tuple[Message, ...]) -> str:
    """Return a name of the messages before the first action: its first words and a digest."""
    turns = turns_of(messages)
    prompt = turns.turns[0].seen if turns.turns else turns.after
    content = json.dumps([(message.role, message.text) for message in prompt])
    return words_of(text_of(prompt), content)


def words_of(text: str, content: str | None = None) -> str:
    """Return the first words of a text, and a digest of it or of other content."""
    words = " ".join(text.split())[:48].rstrip()
    return f"{words}{NO_WORDS}{hashlib.sha256((content or text).encode()).hexdigest()[:12]}"
