"""TextWorld's grammar without its repeated work, for a process that plays one game.

TextWorld parses a rule whenever it applies it, and copies everything that is known of the things in
it. Neither changes: parsed rules are kept, and what is copied is shared. The texts are the same.

Importing this file imports TextWorld.
"""

from copy import deepcopy
from functools import cache
from typing import Any

from textworld.envs.pddl import textgen
from textworld.logic import Rule

_textgen: Any = textgen
_parse = _textgen._parse_and_convert
_parse_query = Rule.parse_conjunctive_query


def remember_rules() -> None:
    """Make TextWorld's grammar remember, in this process and for good."""
    _textgen._parse_and_convert = _parsed
    _textgen.copy_context = _shared
    Rule.parse_conjunctive_query = _parsed_query


@cache
def _parsed_once(text: str, rule_name: str) -> Any:
    return _parse(text, rule_name=rule_name)


def _parsed(text: str, rule_name: str, trace: bool = False) -> Any:
    """Return the symbols of a text; new ones each time, since they are given a context."""
    del trace
    return deepcopy(_parsed_once(text, rule_name))


def _shared(context: dict[str, Any]) -> dict[str, Any]:
    own = {"variables": dict(context["variables"]), "mapping": dict(context["mapping"])}
    return {**context, **own}


@cache
def _parsed_query(text: str) -> Rule:
    return _parse_query(text)
