"""The rules of `--state`: the part of a rollout that identifies the state of each step."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphcredit.collector.importers.messages.rollout import SYSTEM, TOOL, Message, Turn, text_of
from graphcredit.collector.importers.messages.values import as_text, field_at, parse_json
from graphcredit.collector.states.calls import Move, visits_of
from graphcredit.collector.states.content import TextSet
from graphcredit.collector.states.table import is_tool_rule, tool_rule
from graphcredit.store.errors import OptionError
from graphcredit.store.near_names import did_you_mean

NOTHING_SEEN = "(nothing)"
"""The state of a policy that has seen no text at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class States:
    """The states of a rollout."""

    texts: tuple[str, ...]
    """One for each turn."""
    num_missed: int = 0
    """How many of them the rule did not find; they are what the agent last saw."""


StateRule = Callable[[Sequence[Turn]], States]
"""Returns the states of the turns of a rollout."""

_PLAIN = "last, results, calls, effects, facts, worktree, last-tool"
_TAKING = "window:K, regex:PATTERN, json:PATH or column:NAME"


def state_rule(text: str, decimals: int | None = None) -> StateRule:
    """Return the rule that `--state` names.

    Args:
        text: The rule.
        decimals: Decimals of the numbers in its states; None leaves them as they are.

    Raises:
        OptionError: There is none of that name, or its argument is not right.
    """
    rule = _rule(text)
    if decimals is None:
        return rule

    def rounded(turns: Sequence[Turn]) -> States:
        states = rule(turns)
        texts = tuple(_NUMBER.sub(lambda m: _rounded(m[0], decimals), t) for t in states.texts)
        return States(texts=texts, num_missed=states.num_missed)

    return rounded


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\w|\.\d)")
"""A number that is not whole; no part of a version or an address."""


def _rounded(number: str, decimals: int) -> str:
    value = round(float(number), decimals) + 0.0  # -0.0 becomes 0.0
    return str(int(value)) if value.is_integer() else str(value)


def _rule(text: str) -> StateRule:
    kind, _, argument = text.partition(":")
    if text == "last":
        return lambda turns: States(texts=tuple(last_seen(turns)))
    if text == "results":
        return _results
    if is_tool_rule(text):
        rule = tool_rule(text)
        return lambda turns: States(texts=tuple(rule(visits_of(_moves(turns)))))
    if kind == "window" and argument.isdecimal() and int(argument):
        return lambda turns: _window(turns, int(argument))
    if kind == "regex" and argument:
        pattern = _compiled(argument)
        return lambda turns: _extracted(turns, lambda turn: _match(pattern, turn))
    if kind == "json" and argument:
        return lambda turns: _extracted(turns, lambda turn: _json_part(argument, turn))
    if kind == "column" and argument:
        return lambda turns: _extracted(turns, lambda turn: _column(argument, turn))
    nearest = did_you_mean(kind, [*_PLAIN.split(", "), *re.findall(r"[a-z]+(?=:)", _TAKING)])
    raise OptionError(
        f"import.state must be {_PLAIN} (several with + between them), {_TAKING} (see "
        f"docs/choosing-a-state.md): got {text!r}.{nearest}"
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL | re.MULTILINE)
    except re.error as error:
        raise OptionError(
            f"import.state must have a regular expression after 'regex:': {pattern!r}: {error}"
        ) from None


def last_seen(turns: Sequence[Turn]) -> list[str]:
    """Return what the agent last saw before each turn.

    An agent that acts twice in a row has seen nothing new: the second time it is where it was.
    """
    texts: list[str] = []
    for turn in turns:
        seen = turn.seen
        if len(seen) == 1 and not turn.heard and seen[0].role != SYSTEM:  # so are nearly all
            text = seen[0].text if seen[0].state is None else seen[0].state
            texts.append(text or (texts[-1] if texts else NOTHING_SEEN))
            continue
        named = seen[-1].state if seen else None
        text = text_of(turn.prompt) if named is None else named
        texts.append(text or (texts[-1] if texts else NOTHING_SEEN))
    return texts


def _moves(turns: Sequence[Turn]) -> list[Move]:
    """Return the turns as steps: what followed the last one is in no state."""
    moves: list[Move] = []
    after = [*(turn.seen for turn in turns[1:]), ()]
    for turn, seen, last in zip(turns, after, last_seen(turns), strict=True):
        results = tuple(message.text for message in seen if message.role == TOOL)
        moves.append(
            Move(
                action=action_of(turn.message),
                results=results or tuple(filter(None, [text_of(seen)])),
                is_refused=bool(seen) and all(message.is_refused for message in seen),
                seen=last,
            )
        )
    return moves


def _results(turns: Sequence[Turn]) -> States:
    """Return the set of results so far: of tools by their content, where it calls any.

    Without tools it is all that the agent saw, in alphabetical order; before the first, the prompt.
    """
    if any(turn.message.tool_calls for turn in turns):
        return States(texts=tuple(tool_rule("results")(visits_of(_moves(turns)))))
    results = TextSet()
    texts: list[str] = []
    for index, (turn, last) in enumerate(zip(turns, last_seen(turns), strict=True)):
        for message in turn.seen if index else ():
            if message.role != SYSTEM and message.text:
                results.add(message.text)
        texts.append(str(results) or last)
    return States(texts=tuple(texts))


def _window(turns: Sequence[Turn], length: int) -> States:
    """Return what the agent saw in its last `length` turns, with its actions between."""
    seen = last_seen(turns)
    texts: list[str] = []
    for index in range(len(turns)):
        first = max(0, index + 1 - length)
        parts = [
            f"{seen[earlier]}\n> {action_of(turns[earlier].message)}"
            for earlier in range(first, index)
        ]
        texts.append("\n".join([*parts, seen[index]]))
    return States(texts=tuple(texts))


def action_of(message: Message) -> str:
    """Return the action of a message: its tool calls, one a line, else its text."""
    if message.action is not None:
        return message.action
    calls = message.tool_calls
    if len(calls) == 1:
        return str(calls[0])
    return "\n".join(map(str, calls)) or message.text


def _extracted(turns: Sequence[Turn], extract: Callable[[Turn], str | None]) -> States:
    """Return what a rule finds in each turn, or what the agent last saw where it finds nothing."""
    texts = [extract(turn) for turn in turns]
    pairs = zip(texts, last_seen(turns), strict=True)
    states = tuple(last if text is None else text for text, last in pairs)
    return States(texts=states, num_missed=texts.count(None))


def _match(pattern: re.Pattern[str], turn: Turn) -> str | None:
    """Return the groups of the last match, or all of it where the pattern has no groups."""
    last = deque(pattern.finditer(text_of(turn.seen)), maxlen=1)
    if not last:
        return None
    return " | ".join(g or "" for g in last[0].groups()) if pattern.groups else last[0][0]


def _json_part(path: str, turn: Turn) -> str | None:
    """Return a part of the last message that is JSON and has it."""
    for message in reversed(turn.seen):
        part = field_at(parse_json(message.text), path)
        if part is not None:
            return as_text(part)
    return None


def _column(name: str, turn: Turn) -> str | None:
    """Return a field of the policy's message, or of the last message it saw that has it."""
    for message in (turn.message, *reversed(turn.seen)):
        value = field_at(message.source, name)
        if value is not None:
            return as_text(value)
    return None
