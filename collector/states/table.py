"""The table of rules for agents that use tools, and how an option names them: `effects+last-tool`.

A rule is a function in `rules.py` and a row here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from graphcredit.collector.states import rules
from graphcredit.collector.states.calls import Visit
from graphcredit.collector.states.rules import ToolRule
from graphcredit.collector.states.worktree import worktree
from graphcredit.store.errors import OptionError
from graphcredit.store.near_names import did_you_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRuleRow:
    """One row of the table."""

    name: str
    rule: Callable[..., list[str]]
    takes: Literal["nothing", "tools", "some tools"] = "nothing"
    """`tools`: names of tools after a colon, which are learned from the log where there are none;
    the function gets them as `tools`. `some tools`: the same, and all tools where there are none.
    """


TOOL_RULES: tuple[ToolRuleRow, ...] = (
    ToolRuleRow(name="calls", rule=rules.calls, takes="some tools"),
    ToolRuleRow(name="effects", rule=rules.effects, takes="tools"),
    ToolRuleRow(name="results", rule=rules.results),
    ToolRuleRow(name="facts", rule=rules.facts),
    ToolRuleRow(name="worktree", rule=worktree),
    ToolRuleRow(name="last-tool", rule=rules.last_tool),
    ToolRuleRow(name="last", rule=rules.last),
)

_ROW_NAMED = {row.name: row for row in TOOL_RULES}


def is_tool_rule(text: str) -> bool:
    """Return whether a text names rules of the table, with `+` between them."""
    return all(map(_is_one, text.split("+")))


def must_learn(text: str) -> bool:
    """Return whether a part of a rule is to be learned from the log."""
    return any(_is_open(part) for part in text.split("+"))


def learned(text: str, tools: Sequence[str]) -> str:
    """Return a rule with the tools that were learned, where it names none."""
    names = ",".join(tools)
    parts = text.split("+")
    return "+".join(f"{part.rstrip(':')}:{names}" if _is_open(part) else part for part in parts)


def tool_rule(text: str) -> ToolRule:
    """Return the rule that a text names; of several, a state has the states of all.

    Raises:
        OptionError: There is none of that name. The rule itself raises it where it must be learned
            first.
    """
    parts = [_one(part) for part in text.split("+")]
    if len(parts) == 1:
        return parts[0]

    def together(visits: Sequence[Visit]) -> list[str]:
        states = (part(visits) for part in parts)
        return ["\n\n".join(texts) for texts in zip(*states, strict=True)]

    return together


def _is_one(text: str) -> bool:
    name, colon, _ = text.partition(":")
    row = _ROW_NAMED.get(name)
    return row is not None and (not colon or row.takes != "nothing")


def _one(text: str) -> ToolRule:
    if not _is_one(text):
        raise OptionError(
            f"a rule of states must be one of {', '.join(_ROW_NAMED)}, or several with + between "
            f"them: got {text!r}.{did_you_mean(text, _ROW_NAMED)}"
        )
    name, colon, argument = text.partition(":")
    row = _ROW_NAMED[name]
    if not colon:
        return _unlearned if row.takes == "tools" else row.rule
    tools = frozenset(filter(None, map(str.strip, argument.split(","))))
    if row.takes == "some tools" and not tools:
        raise OptionError(f"{name}: must name tools, such as {name}:get_order,search")
    return partial(row.rule, tools=tools)


def _unlearned(visits: Sequence[Visit]) -> list[str]:
    raise OptionError(
        "effects must name the tools that change something where there is no log to learn it from, "
        "such as effects:book,cancel"
    )


def _is_open(part: str) -> bool:
    row = _ROW_NAMED.get(part)
    return row is not None and row.takes == "tools"
