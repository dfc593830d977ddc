"""Which fields of a record have texts that count, and their paths, such as `messages.*.content`."""

import math
from collections.abc import Collection
from functools import lru_cache
from typing import Any, cast

from graphcredit.collector.importers.messages.plain import LONGEST_NAME
from graphcredit.collector.importers.messages.values import snake_case

_NAMES = frozenset(
    {
        *("speaker", "author", "sender", "server_name", "server_label"),
        *("role", "from", "type", "kind", "object", "model", "id", "ids", "uuid", "status"),
        *("finish_reason", "stop_reason", "done_reason", "timestamp", "created", "created_time"),
        *("start_time", "end_time", "date", "version", "service_tier", "mime_type", "media_type"),
        *("model_name", "model_version", "system_fingerprint", "tool_name", "tool_choice"),
        *("value_type", "provider", "gen_ai.system", "custom_llm_provider", "request_path"),
        *("url", "method", "status_code", "api_key", "source", "requestor"),
    }
)
"""Fields, in snake case, whose short texts identify or classify, and say nothing."""

_NAME_ENDS = ("_id", "_ids", "_at", "_uuid", "_type", "_uid", "_kind", "provider_name")
_DEFINITIONS = frozenset(
    {
        *("tools", "functions", "oai_tools", "tool_definitions", "tools_schema"),
        *("signature", "thoughtSignature", "thought_signature", "encrypted_content"),
    }
)
"""Fields that describe the tools that a policy may call, or that only a model's server can read."""

_MOST_WITHIN = 1_000
"""Fields within one that are remembered: their names may be ids, of which there is no end."""


class Field(dict[str, "Field"]):
    """A place of texts in records, and the places within it, each made where it is first seen."""

    __slots__ = ("aside", "characters", "path")

    def __init__(self, path: str, aside: Collection[str], characters: float = 0) -> None:
        """Describe a place.

        Args:
            path: Where it is.
            aside: Paths of the record that a reader leaves out on purpose.
            characters: Of the longest text that does not count, as of a name; infinite: none does.
        """
        super().__init__()
        self.path, self.aside, self.characters = path, aside, characters

    def __missing__(self, name: str) -> "Field":
        """Return the place of a name within this one; `*` is that of a list's items."""
        path = f"{self.path}.{name}" if self.path else name
        characters = math.inf if path in self.aside or name in _DEFINITIONS else 0
        snake = snake_case(name)
        if not characters and (snake in _NAMES or snake.endswith(_NAME_ENDS)):
            characters = LONGEST_NAME
        within = Field(path, self.aside, characters)
        if len(self) < _MOST_WITHIN:
            self[name] = within
        return within


@lru_cache(maxsize=256)
def record_field(aside: tuple[str, ...] = ()) -> Field:
    """Return the place of a whole record whose reader leaves some paths out on purpose."""
    return Field("", aside)


def texts_within(value: object, place: Field) -> list[tuple[Field, str]]:
    """Return the texts of an object or a list, with their places.

    Names, blank texts and what is left out on purpose do not count.
    """
    texts: list[tuple[Field, str]] = []
    rest: list[tuple[Field, Any]] = [(place, value)]
    for outer, within in rest:  # it grows by what is within
        if type(within) is dict:
            for name, item in cast("dict[str, Any]", within).items():
                kind = type(item)
                if kind is str:
                    inner = outer[name]
                    if len(item) > inner.characters:
                        texts.append((inner, item))
                elif kind is dict or kind is list:
                    inner = outer[name]
                    if not inner.characters or _may_have_texts(item, inner.characters):
                        rest.append((inner, item))
        elif type(within) is list:
            inner, items = outer["*"], cast("list[Any]", within)
            if not inner.characters:
                texts += [(inner, item) for item in items if type(item) is str and item]
                rest += [(inner, item) for item in items if type(item) in (dict, list)]
    return [item for item in texts if not item[1].isspace()]


def _may_have_texts(value: object, characters: float) -> bool:
    """Return whether an object or a list is no list of names, of at most so many characters."""
    return characters < math.inf and not (
        isinstance(value, list)
        and all(
            isinstance(text, str) and len(text) <= characters
            for text in cast("list[object]", value)
        )
    )
