"""Chat templates, which come with models of strangers, rendered by a confined process."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any

from graphcredit.store.confined.limits import MIB
from graphcredit.store.confined.process import ConfinedProcess
from graphcredit.store.errors import InputError

SECONDS = 10.0
"""Most processor time for one conversation."""

MEMORY = 1024 * MIB
"""Most bytes that a template may use."""

_CHILD = "graphcredit.store.confined.template_child"


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
    seconds: float = SECONDS,
    **options: Any,
) -> Rendered:
    """Return the text that a chat template makes of a conversation.

    One process renders all conversations, one after the other. It has `MEMORY` for all of them, and
    writes no file.

    Args:
        template: The template, in Jinja as transformers takes it.
        messages: The conversation.
        day: The day that a template is told that asks for the date.
        tools: Definitions of tools.
        seconds: Most processor time.
        options: Further arguments of transformers' `render_jinja_template`, such as the tokenizer's
            special tokens.

    Raises:
        TemplateRefusedError: The template raises an error, or its text is no UTF-8.
        InputError: The template breaks a limit.
    """
    request = {**options, "chat_template": template, "conversations": [messages], "tools": tools}
    asked = json.dumps([seconds, day.isoformat(), request], default=str).encode() + b"\n"
    with _lock:
        answer = json.loads(_ask(asked, seconds))
    if "refused" in answer:
        raise TemplateRefusedError(answer["refused"])
    return Rendered(answer["text"], tuple((start, end) for start, end in answer["spans"]))


_lock = Lock()
_running: list[ConfinedProcess] = []
"""The process that renders, once it was needed."""

os.register_at_fork(after_in_child=_running.clear)


def start_renderer() -> None:
    """Start the process, without waiting until it runs: it needs seconds to load transformers."""
    if _running and not _running[0].lives:
        with _running.pop():
            pass  # its pipes and the file of its errors are closed
    if not _running:
        _running.append(ConfinedProcess(_CHILD))


def _ask(request: bytes, seconds: float) -> bytes:
    start_renderer()
    process = _running[0]
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.flush()
        answer = process.stdout.readline()
    except BaseException:  # such as Ctrl-C: an answer that comes later is none to the next request
        _running.clear()
        with process:
            process.kill()
        raise
    if answer.endswith(b"\n"):
        return answer
    _running.clear()
    with process:
        reason = process.why_ended(seconds, MEMORY)
    raise InputError(f"the chat template {reason}, for one conversation. Use another template")
