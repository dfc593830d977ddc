"""How a chat template ends a turn: which token the policy says last, and what follows by itself."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graphcredit.store.errors import library_errors
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.regular import read_regular
from graphcredit.trainer.messages.plain import ASK, called_with, with_text

Shown = Callable[[Sequence[Mapping[str, Any]]], str | None]
"""Returns the text of messages; None if the template refuses them."""

MODEL_FILES = ("generation_config.json", "config.json")
"""Files of a model that say at which tokens samplers stop."""


class Tail(NamedTuple):
    """What a template writes behind each answer of a kind."""

    text: str
    end: str
    """What of it the policy says: all to the token that ends its turn; empty without one."""


@dataclass(frozen=True, slots=True)
class TurnEnds:
    """The ends of turns."""

    of_text: Tail
    """Of an answer that says something."""
    of_calls: Tail
    """Of an answer that calls tools."""
    stops: Collection[str]
    """Tokens at which samplers of the model stop."""

    @classmethod
    def of_template(cls, tokenizer: Any, directory: Path, shown: Shown) -> "TurnEnds":
        """Return the ends of a template, found by what it makes of small conversations."""
        stops = _stops(tokenizer, directory)
        known = sorted(tokenizer.get_added_vocab(), key=len, reverse=True)
        token = re.compile("|".join(map(re.escape, known)) or r"(?!)")
        text = _common_tail(shown, with_text)
        end = _through(token.search(text), text)
        follows = {"role": "user", "content": "more"}
        of_text = Tail(text, end or _next_token(shown, with_text(1), follows, token, stops))
        text = _common_tail(shown, called_with)
        if of_text.text and text.endswith(of_text.text):
            return cls(of_text, of_text, stops)
        # The tags of a call are no end.
        at = max((m.start() for m in token.finditer(text) if m[0] in stops), default=len(text))
        end = _through(token.match(text[at:]), text[at:])
        follows = {"role": "tool", "content": "seen"}
        end = end or _next_token(shown, called_with(1), follows, token, stops)
        return cls(of_text, Tail(text[at:], end), stops)

    def ended(self, text: str, answer: Mapping[str, Any]) -> str:
        """Return a text to the token that ends its last message, an answer."""
        tail = self._tail(text, answer)
        return text.removesuffix(tail.text) + tail.end

    def without_end(self, text: str, answer: Mapping[str, Any]) -> str:
        """Return a text without what the template writes behind its last message, an answer."""
        return text.removesuffix(self._tail(text, answer).text)

    def notice(self) -> str | None:
        """Return what a policy does not learn of its ends, if anything."""
        ends = self.of_text.end.strip(), self.of_calls.end.strip()
        if not ends[0]:
            return "no token of the chat template ends an answer: the policy learns no end"
        if others := set(filter(None, ends)) - set(self.stops):
            return (
                f"answers end with {', '.join(sorted(others))}, but samplers of the model stop at "
                f"{', '.join(sorted(self.stops)) or 'no token'} (generation_config.json, the "
                "tokenizer): add it there, or they go on"
            )
        return None

    def _tail(self, text: str, answer: Mapping[str, Any]) -> Tail:
        tails = [self.of_text, self.of_calls]
        ordered = reversed(tails) if answer.get("tool_calls") else tails
        return next((tail for tail in ordered if text.endswith(tail.text)), Tail("", ""))


def _common_tail(shown: Shown, answer: Callable[[int], Mapping[str, Any]]) -> str:
    """Return what a template writes behind two answers that differ; empty if it refuses them."""
    one, other = shown([ASK, answer(1)]) or "", shown([ASK, answer(2)]) or ""
    pairs = enumerate(zip(reversed(one), reversed(other), strict=False))
    num = next((n for n, (a, b) in pairs if a != b), 0)
    return one[len(one) - num :]


def _through(match: re.Match[str] | None, text: str) -> str:
    return text[: match.end()] if match and match[0] else ""


def _next_token(
    shown: Shown,
    answer: Mapping[str, Any],
    follows: Mapping[str, Any],
    token: re.Pattern[str],
    stops: Collection[str],
) -> str:
    """Return the token that begins the next message, if samplers stop there, as GLM's do."""
    text, more = shown([ASK, answer]), shown([ASK, answer, follows])
    if text is None or more is None or not more.startswith(text):
        return ""
    rest = more[len(text) :]
    match = token.match(rest, len(rest) - len(rest.lstrip()))
    return _through(match, rest) if match and match[0] in stops else ""


def _stops(tokenizer: Any, directory: Path) -> set[str]:
    """Return the tokens that a model's files say end a text."""
    ids: set[Any] = {tokenizer.eos_token_id}
    with library_errors(f"eos_token_id of {directory}'s files must be the numbers of tokens"):
        for path in filter(Path.exists, map(directory.joinpath, MODEL_FILES)):
            known = parse_json(read_regular(path)).get("eos_token_id")
            ids |= set(known if isinstance(known, list) else [known])
        return set(filter(None, map(tokenizer.convert_ids_to_tokens, sorted(ids - {None}))))
