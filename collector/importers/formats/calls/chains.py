"""Join the calls of a model to conversations: a call has what was said before it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, cast

from graphcredit.collector.importers.messages.answers import joined_answer
from graphcredit.collector.importers.messages.rollout import ASSISTANT, SYSTEM, TOOL, Message


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCall:
    """One call of a model."""

    prompt: tuple[Message, ...]
    answers: tuple[Message, ...]
    facts: Mapping[str, Any]
    """What else the log says of it."""
    continues: bool = False
    """Whether the prompt has only what is new since the call before."""
    is_nested: bool = False
    """Whether a tool made it."""
    source: Any = None
    """The record or the span that it was read from."""


@dataclass(kw_only=True, slots=True)
class Chain:
    """The calls of one conversation, joined."""

    messages: list[Message]
    facts: list[Mapping[str, Any]]
    """Those of its calls, in their order."""
    is_nested: bool = False
    """Whether a tool made its calls."""
    sources: list[Any] = field(default_factory=list[Any])
    """What its calls were read from."""
    last: ModelCall | None = None
    """The last call that added to it."""
    num_given: int = 0
    """Messages of its first prompt."""
    num_calls: int = 1
    """Calls that added to it."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """What became no part of it: reason to number."""

    @property
    def num_answers(self) -> int:
        """Messages of the policy, examples too."""
        return sum(message.role == ASSISTANT for message in self.messages)

    def take(self, call: ModelCall, new: Sequence[Message]) -> None:
        """Add a call, of which some messages are new."""
        self.sources.append(call.source)
        if not new:
            return
        self.facts.append(call.facts)
        self.num_calls += 1
        self.last = call
        if not call.prompt and self.messages[-1].is_answer:  # it went on without seeing anything
            self.messages[-1] = joined_answer(self.messages[-1], *new)
        else:
            self.messages += new

    def with_context(self) -> tuple[Message, ...]:
        """Return the messages; answers that the first of several prompts had are context."""
        if self.num_calls == 1:
            return tuple(self.messages)
        given = self.messages[: self.num_given]
        shown = [replace(m, is_context=True) if m.is_answer else m for m in given]
        return (*shown, *self.messages[self.num_given :])


MOST_OPEN = 100
"""Conversations that a call may go on with: of a hundred thousand, each would be compared."""


def chain_of(call: ModelCall) -> Chain:
    """Return a conversation that begins with a call."""
    messages = [*call.prompt, *call.answers]
    return Chain(
        messages=messages,
        facts=[call.facts],
        sources=[call.source],
        last=call,
        is_nested=call.is_nested,
        num_given=len(call.prompt),
    )


def joined_calls(calls: Iterable[ModelCall], *, has_parts: bool = False) -> list[Chain]:
    """Return the conversations of calls that belong together, such as those of a trace.

    A call belongs to the conversation that its prompt begins with. Where the context was cut, its
    prompt has the last answer still, or only the beginning. It goes on with one of `MOST_OPEN`
    conversations: those of one call are given up first, then those that nothing was added to.

    Args:
        calls: The calls, in their order.
        has_parts: Whether a call may tell the beginning of a conversation again, as the spans of a
            trace do. Otherwise it begins another one.
    """
    chains: list[Chain] = []
    open_: dict[int, None] = {}
    for call in calls:
        for number in sorted(open_, reverse=True):
            new = _new_of(chains[number], call, has_parts=has_parts)
            if new is not None:
                chains[number].take(call, new)
                break
        else:
            number = len(chains)
            chains.append(chain_of(call))
        if len(open_) == MOST_OPEN and number not in open_:
            oldest = next(iter(open_))
            del open_[next((n for n in open_ if chains[n].num_calls == 1), oldest)]
        open_.pop(number, None)
        open_[number] = None
    return chains


def are_turns(calls: Sequence[ModelCall]) -> bool:
    """Return whether calls may be the turns of one agent whose prompts have nothing from before."""
    if any(message.role == ASSISTANT for call in calls for message in call.prompt):
        return False
    systems = {tuple(m.text for m in call.prompt if m.role == SYSTEM) for call in calls}
    given = {tuple(m.text for m in call.prompt if m.role != SYSTEM) for call in calls}
    return len(systems) == 1 and len(given) == len(calls)


def in_turn(calls: Iterable[ModelCall]) -> Chain:
    """Return the conversation that calls are one after the other."""
    (chain,) = joined_calls(
        replace(call, continues=number > 0) for number, call in enumerate(calls)
    )
    return chain


def _new_of(chain: Chain, call: ModelCall, *, has_parts: bool) -> Sequence[Message] | None:
    """Return the messages that a call adds to a conversation; None if it is of another one."""
    if call.continues:
        return (*call.prompt, *call.answers)
    told, given = _spoken(chain.messages), _spoken(call.prompt)
    whole = [*given, *call.answers]
    if _begins(told, whole) and (has_parts or len(told) == len(whole)):
        return ()
    if told and _begins(given, told):
        return (*given[len(told) :], *call.answers)
    if (rest := _text_behind(chain.last, call)) is not None:
        return (replace(call.prompt[-1], text=rest), *call.answers)
    if told and given and given[0].role == TOOL:  # it has only what is new
        return whole
    return None if call.is_nested != chain.is_nested else _behind_cut(told, given, call, chain)


def _text_behind(before: ModelCall | None, call: ModelCall) -> str | None:
    """Return what is new in a prompt that is one text, and begins with that of the call before."""
    if before is None or not before.answers or not before.prompt or not call.prompt:
        return None
    prompt, text = before.prompt[-1].text, call.prompt[-1].text
    answer = before.answers[-1].text.strip()
    if len(_spoken(call.prompt)) > 1 or not (prompt and answer and text.startswith(prompt)):
        return None
    rest = text[len(prompt) :].lstrip()
    return rest[len(answer) :].strip() if rest.startswith(answer) else None


def _behind_cut(
    told: list[Message], given: list[Message], call: ModelCall, chain: Chain
) -> Sequence[Message] | None:
    """Return what is new in a prompt that lacks messages from before."""
    last = next((n for n in reversed(range(len(told))) if told[n].role == ASSISTANT), None)
    if last is None or not given:
        return None
    common = takewhile(lambda pair: is_same(*pair), zip(told, given, strict=False))
    if any(message.role == ASSISTANT for message, _ in common):
        return None  # it goes another way from there
    at = next((n for n in reversed(range(len(given))) if _is_again(given, n, told, last)), None)
    if at is not None:
        lost = sum(not any(is_same(m, each) for each in told) for m in given[:at])
        if lost:
            chain.left_out[_REPLACED] = chain.left_out.get(_REPLACED, 0) + lost
        after, rest = told[last + 1 :], given[at + 1 :]
        return (*(rest[len(after) :] if _begins(rest, after) else rest), *call.answers)
    is_told_again = any(message.role == ASSISTANT for message in given)
    if is_told_again or not is_same(given[0], told[0]):
        return None
    new = [m for m in given if not any(is_same(m, each) for each in told)]
    return (*new, *call.answers) if new else None


def _is_again(given: list[Message], at: int, told: list[Message], last: int) -> bool:
    """Return whether a message of a prompt is the last answer, and no equal one of another run.

    Short answers recur: then the message before must be the same, too, or the id of a call.
    """
    if not is_same(given[at], told[last]):
        return False
    ids = [[call.id for call in message.tool_calls] for message in (given[at], told[last])]
    if all(ids) and None not in (*ids[0], *ids[1]):
        return ids[0] == ids[1]
    is_long = len(told[last].text) > _LONG or bool(told[last].tool_calls)
    return is_long or (at > 0 and last > 0 and is_same(given[at - 1], told[last - 1]))


_LONG = 40
"""Characters of an answer that nobody gives twice by accident."""

_REPLACED = "message that replaces earlier ones in a shortened context"


def _spoken(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role != SYSTEM]


def _begins(whole: Sequence[Message], begin: Sequence[Message]) -> bool:
    return len(begin) <= len(whole) and all(map(is_same, whole, begin))


def is_same(one: Message, other: Message) -> bool:
    """Return whether two messages are one: a prompt may have an answer without its calls."""
    if one.role != other.role or one.text.strip() != other.text.strip():
        return False
    calls, others = list(map(str, one.tool_calls)), list(map(str, other.tool_calls))
    return not (calls and others) or calls == others


def best_chain(chains: Sequence[Chain], told: Collection[str] = ()) -> Chain:
    """Return the conversation that the others serve: the one with most answers.

    Args:
        chains: Conversations; of equal ones the later is the one.
        told: Texts of which its last answer is one rather than those of others.
    """
    return max(
        reversed(chains),
        key=lambda c: (
            not c.is_nested,
            c.num_answers,
            bool(told and c.messages) and c.messages[-1].text in told,
        ),
    )


def told_once(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield rows without the items that the row before has at the beginning of its lists."""
    before: Any = None
    for row in rows:
        yield _new_in(row, before)
        before = row


def _new_in(value: Any, before: Any) -> Any:
    if isinstance(value, dict) and isinstance(before, dict):
        known = cast("dict[str, Any]", before)
        pairs = cast("dict[str, Any]", value).items()
        return {name: _new_in(item, known.get(name)) for name, item in pairs}
    if isinstance(value, list) and isinstance(before, list):
        items, first = cast("list[Any]", value), cast("list[Any]", before)
        return items[len(first) :] if items[: len(first)] == first else items
    return value
