"""One entry of `states.toml`, as pydantic checks it."""

import functools
import re
from fnmatch import fnmatchcase
from typing import ClassVar, Literal, Self, TypeAlias, cast

from pydantic import model_validator

from graphcredit.store.errors import OptionError
from graphcredit.store.options import Options, Texts
from graphcredit.store.state_rules.pattern import (
    compile_path,
    compile_pattern,
    compile_words,
    has_kinds,
)

Means: TypeAlias = Literal["field", "text", "values", "words"]
_MEANS: tuple[Means, ...] = ("field", "text", "values", "words")


class StateRule(Options):
    """One entry. Exactly one of `field`, `text`, `values` and `words` says what it is about."""

    owner: ClassVar[str] = "an entry"

    field: str | None = None
    """A field of JSON in the text, by its path: `status.time`, `items[].id`, `**.latency`."""
    text: str | None = None
    """A piece of a line: words and kinds of tokens, such as `battery at {number} percent`."""
    values: str | None = None
    """Such a piece, of which only the tokens in braces are meant."""
    words: Texts = ()
    """Phrases that may stand for each other."""
    tasks: str = "*"
    """Only texts of tasks whose id matches; `*`, `?` and `[abc]` as in a shell."""
    why: str = ""
    """For people."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuse what is not a pattern."""
        given = [name for name in _MEANS if getattr(self, name) not in (None, ())]
        if len(given) != 1:
            raise OptionError(
                f"an entry must have one of {', '.join(_MEANS)}: found "
                f"{' and '.join(given) or 'none of them'}"
            )
        if self.values is not None and not has_kinds(self.expression):
            raise OptionError(
                f"values must have a kind of token in braces, or else be `text`: got "
                f"{self.values!r}"
            )
        assert self.expression
        return self

    @functools.cached_property
    def means(self) -> Means:
        """Which of the four it has."""
        return next(name for name in _MEANS if getattr(self, name) not in (None, ()))

    @functools.cached_property
    def expression(self) -> re.Pattern[str]:
        """What its path, its pattern or its words match."""
        if self.field is not None:
            return _path(self.field)
        if self.words:
            return _words(self.words)
        return _pattern(cast("str", self.values if self.text is None else self.text))

    def is_for(self, task_id: str) -> bool:
        """Return whether it holds in a task."""
        return fnmatchcase(task_id, self.tasks)


_path = functools.lru_cache(compile_path)
_pattern = functools.lru_cache(compile_pattern)
_words = functools.lru_cache(compile_words)
