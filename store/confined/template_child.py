"""The child process of `templates.py`: it renders chat templates until its stdin ends."""

import json
import random
import sys
from datetime import date, datetime, time
from typing import Any

from transformers.utils import chat_template_utils

from graphcredit.store.confined.limits import MIB, TOO_LARGE, limit_process, limit_time
from graphcredit.store.confined.templates import MEMORY

_MOST_CHARACTERS = MEMORY // 8


class _Clock:
    """The time as templates see it: the day that the parent names."""

    day = date.min

    @classmethod
    def now(cls) -> datetime:
        """Return the beginning of that day."""
        return datetime.combine(cls.day, time())


def main() -> None:
    """Answer each request, a line of JSON on stdin, by a line on stdout.

    Exit with `TOO_LARGE` if memory runs out.
    """
    chat_template_utils.__dict__["datetime"] = _Clock
    limit_process(MEMORY)
    for line in sys.stdin.buffer:
        seconds, day, request = json.loads(line)
        limit_time(seconds)
        try:
            answer = _answer(date.fromisoformat(day), request)
        except MemoryError:
            raise SystemExit(TOO_LARGE) from None
        limit_time(0)
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _answer(day: date, request: dict[str, Any]) -> bytes:
    _Clock.day = day
    random.seed(0)  # a template must write the same text each time
    try:
        render: Any = chat_template_utils.render_jinja_template
        texts, spans = render(**request)
        if len(texts[0]) > _MOST_CHARACTERS:
            raise MemoryError
        # Strict: half of a surrogate pair is no text.
        answer: dict[str, Any] = {"text": texts[0], "spans": spans[0] if spans else []}
        return json.dumps(answer, ensure_ascii=False).encode()
    except MemoryError:
        raise
    except Exception as error:  # whatever a template makes Python raise
        reason = str(error) or type(error).__name__
        return json.dumps({"refused": reason[:MIB]}).encode()


if __name__ == "__main__":
    main()
