"""Chat templates, rendered as transformers does it: in Jinja's sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from threading import Lock
from typing import Any

from graphcredit.store.errors import InputError

_lock = Lock()
"""Held while a template is told the day: its clock is a name of transformers' module."""


class TemplateRefusedError(InputError):
    """A chat template refuses a conversation; the message is its reason alone."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as text."""

    text: str
    spans: tuple[tuple[int, int], ...]
    """Where the text has what `{% generation %}` marks, if that was asked for."""


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    day: date,
    tools: Sequence[Mapping[str, Any]] | None = None,
    **options: Any,
) -> Rendered:
    """Return the text that a chat template makes of a conversation.

    Args:
        template: The template, in Jinja as transformers takes it.
        messages: The conversation.
        day: The day that a template is told that asks for the date.
        tools: Definitions of tools.
        options: Further arguments of transformers' `render_jinja_template`, such as the tokenizer's
            special tokens.

    Raises:
        TemplateRefusedError: The template raises an error, or its text is no UTF-8.
    """
    from transformers.utils import chat_template_utils as library

    class Clock:
        """The time as templates see it: the beginning of that day."""

        @staticmethod
        def now() -> datetime:
            return datetime.combine(day, time())

    asked = {"chat_template": template, "conversations": [messages], "tools": tools, **options}
    with _lock:
        names = library.__dict__
        usual = names["datetime"]
        names["datetime"] = Clock
        try:
            render: Any = library.render_jinja_template
            texts, spans = render(**asked)
            texts[0].encode()  # half of a surrogate pair is no text
        except Exception as error:  # whatever a template makes Python raise
            raise TemplateRefusedError(str(error) or type(error).__name__) from error
        finally:
            names["datetime"] = usual
    return Rendered(texts[0], tuple((start, end) for start, end in spans[0]) if spans else ())
