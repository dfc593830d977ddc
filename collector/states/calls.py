"""The calls of a trajectory: which tools it called, and what they answered."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

from graphcredit.collector.states.content import as_json, canonical_scalar, content_of, is_failure
from graphcredit.store.files.parse import parse_json


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A step of a trajectory, as any log has it."""

    action: str
    """Calls, `name({…})` a line; else a text."""
    results: tuple[str, ...] = ()
    """What the calls returned, in their order; nothing where the log does not say."""
    is_refused: bool = False
    """Whether nothing was done."""
    seen: str = ""
    """What the agent last saw before it."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool, with its result."""

    tool: str
    arguments: str
    """JSON with sorted fields; the text itself where it is none."""
    result: str = ""
    is_refused: bool = False
    raw: str = ""
    """The arguments as they were written, where they are no JSON."""

    @cached_property
    def is_failed(self) -> bool:
        """Whether it did nothing."""
        return self.is_refused or is_failure(self.result)

    @cached_property
    def content(self) -> str:
        """What it returned, apart from the wording."""
        return content_of(self.result)

    @property
    def key(self) -> str:
        """Equal for calls that ask for the same."""
        return f"{self.tool}({self.arguments})"

    @cached_property
    def values(self) -> frozenset[str]:
        """The texts and numbers of its arguments."""
        try:
            return frozenset(_leaves(parse_json(self.arguments)))
        except ValueError:
            return frozenset({self.arguments})


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A step with its calls."""

    seen: str
    """What the agent last saw before it."""
    calls: tuple[Call, ...]
    """Those it made, in order."""


_FENCED = re.compile(r"```(?:\w*bash\w*|sh|shell)[ \t]*\n(.*?)```", re.DOTALL)
_CALL = re.compile(r"([A-Za-z_][\w.:/-]*)\((.*)\)", re.DOTALL)

REMEMBERED = 2048
"""Texts whose calls are remembered: rollouts of a task repeat them, and each rule asks for them."""


def visits_of(moves: Sequence[Move]) -> list[Visit]:
    """Return the steps of a trajectory with their calls.

    An action in words is a message, unless it has a fenced block for a shell, or all actions of the
    trajectory are commands, such as `go north`.
    """
    written = [_calls_in(move.action) for move in moves]
    is_in_words = all(map(_is_command, (move.action for move in moves))) and not any(written)
    return [
        Visit(
            seen=move.seen,
            calls=tuple(_with_results(_words(move.action) if is_in_words else calls, move)),
        )
        for move, calls in zip(moves, written, strict=True)
    ]


def called(tool: str, arguments: object = "", result: str = "", *, is_failed: bool = False) -> Call:
    """Return a call whose arguments are values, JSON or any text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return _called(tool, text, result, is_failed)


@lru_cache(REMEMBERED)
def _called(tool: str, text: str, result: str, is_failed: bool) -> Call:
    return Call(
        tool=tool, arguments=_canonical(text), result=result, is_refused=is_failed, raw=text
    )


@lru_cache(REMEMBERED)
def _calls_in(action: str) -> Sequence[tuple[str, str]]:
    """Return the tools and arguments that an action names; nothing where it is words."""
    lines = [_CALL.fullmatch(line) for line in action.split("\n")]
    matches = [match for match in lines if match and _is_json(match[2])]
    if not matches or len(matches) < len(lines):
        matches = [match] if (match := _CALL.fullmatch(action.strip())) else []
    if not matches:
        return [("bash", block.strip()) for block in _FENCED.findall(action)]
    return [(match[1], match[2]) for match in matches]


def _is_command(action: str) -> bool:
    line = action.strip().partition("\n")[0]
    return not line.endswith((".", "?", "!", ":"))


def _words(action: str) -> list[tuple[str, str]]:
    words = action.strip().split(maxsplit=1)
    return [(words[0] if words else "", words[1] if len(words) > 1 else "")]


def _with_results(calls: Sequence[tuple[str, str]], move: Move) -> Iterator[Call]:
    is_each = len(move.results) == len(calls)
    for number, (tool, arguments) in enumerate(calls):
        result = move.results[number] if is_each else "\n\n".join(move.results)
        yield called(tool, arguments, result, is_failed=move.is_refused)


def _canonical(arguments: str) -> str:
    try:
        value = parse_json(arguments)
    except ValueError:
        return " ".join(arguments.split())
    return as_json(_plain(value))


def _plain(value: Any) -> Any:
    """Return an argument without fields that are null, and without white space around texts."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value).items()
        return {name: _plain(part) for name, part in fields if part is not None}
    if isinstance(value, list):
        return [_plain(part) for part in cast("list[Any]", value)]
    return canonical_scalar(value)


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in cast("Mapping[str, Any]", value).values():
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _leaves(part)
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        yield str(value)
