"""The chat template of a model: where in its text an answer begins and ends."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from transformers import AutoTokenizer

from graphcredit.store.chat import Chat
from graphcredit.store.confined.templates import (
    TemplateRefusedError,
    render_chat,
    start_renderer,
)
from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.messages.conversation import UnusableError
from graphcredit.trainer.messages.pictures import flat, num_images, with_parts
from graphcredit.trainer.messages.plain import CALLS, CHANGES
from graphcredit.trainer.model.source import load_eyes
from graphcredit.trainer.model.vision import FAMILIES, ImageReader

_MARK = re.compile(r"\{%-?\s*generation\s*-?%\}")
_THINKING = re.compile(r"\s*(<think(ing)?>)?\s*(</think(ing)?>)?\s*")
"""What a template may begin every answer with: reasoning that is empty is the policy's, too."""

REMEDY = (
    "Put {% generation %} and {% endgeneration %} around the answer in a copy of the template, and "
    "name it by --chat-template, or train on a log with token ids"
)

BLIND = (
    "their messages have images, for which --model must be a vision-language model of the families "
    f"{', '.join(sorted(FAMILIES))}"
)


class Answered(NamedTuple):
    """A conversation as text, to the end of its last message, which is an answer."""

    text: str
    start: int
    """Where the answer begins."""


class ChatTemplate:
    """The tokenizer of a model, with its chat template."""

    def __init__(
        self, directory: Path, day: date, *, file: Path | None = None, calls_as_text: bool = False
    ) -> None:
        """Open the tokenizer.

        Args:
            directory: The model.
            day: What a template that asks for the date is told, so that it is the same tomorrow.
            file: A chat template in place of the model's.
            calls_as_text: Whether calls of tools are texts, even if the template takes calls.

        Raises:
            InputError: There is none, it has no template, or no fast implementation, or the file
                cannot be read.
        """
        self.directory, self._day = directory, day
        self.name = f"the chat template {'of ' if file is None else ''}{file or directory}"
        """What notices and errors call the template."""
        start_renderer()
        with library_errors(f"{directory} must hold a tokenizer that transformers knows"):
            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False
            )
        self.text: str | None = None
        """The template of the file, if there is one."""
        if file is not None:
            with library_errors("a chat template must be a file with a Jinja template"):
                self.text = self._tokenizer.chat_template = file.read_text(encoding="utf-8")
        if not self._tokenizer.chat_template:
            raise InputError(
                "steps without token ids are tokenised by the chat template of the model: "
                f"{file or directory} has none. Name a file with one by --chat-template, or train "
                "on a log with token ids"
            )
        if not self._tokenizer.is_fast:
            raise InputError(
                f"the tokenizer of {directory} must be a fast one (tokenizer.json), to tell which "
                "tokens are an answer's"
            )
        self._ends = tuple(self._tokenizer.get_added_vocab())
        self._eos = self._tokenizer.eos_token or ""
        self._probed: set[str] = set()
        self._lacking = {
            what: CHANGES[what]
            for what in CHANGES
            if (calls_as_text and what == CALLS) or not self._takes(what)
        }
        self.changes: dict[str, None] = {}
        """What the template does not take, and it is told in another form."""
        self.refuses_calls = False
        """Whether it has refused a conversation with calls, or left out a part of one."""
        self.num_without_reasoning = 0
        """Answers whose reasoning the template has left out."""

    @cached_property
    def eyes(self) -> ImageReader | None:
        """Return the eyes of the model; None if it has none."""
        return load_eyes(str(self.directory))

    def has_marks(self, tools: Chat | None = None) -> bool:
        """Return whether the template marks answers by {% generation %}."""
        return bool(_MARK.search(self._template(tools)))

    def answered(self, messages: Sequence[Mapping[str, Any]], tools: Chat | None) -> Answered:
        """Return the text of a conversation, and where its last message begins in it.

        Args:
            messages: The last one is an answer of the policy.
            tools: Definitions of the tools.

        Raises:
            UnusableError: The template refuses these messages, or leaves a part of the answer out.
            InputError: The template does not tell what of the text is the answer.
        """
        try:
            return self._answered(messages, tools)
        except UnusableError:
            has_calls = any(m.get("tool_calls") or m["role"] == "tool" for m in messages)
            self.refuses_calls = self.refuses_calls or has_calls
            raise

    def _answered(self, messages: Sequence[Mapping[str, Any]], tools: Chat | None) -> Answered:
        num = sum(map(num_images, messages))
        if num and self.eyes is None:
            raise UnusableError(BLIND)
        if num_images(messages[-1]):
            raise UnusableError("their answer has images")
        messages = [flat(message) for message in messages]
        for what, change in self._lacking.items():
            changed = change.apply(messages, tools)
            if changed != messages:
                self.changes[what] = None
            messages = changed
            tools = None if what == CALLS else tools
        read = self._marked if self.has_marks(tools) else self._compared
        answered = read(messages, tools)
        if num and self.eyes:
            place = self._tokenizer.convert_ids_to_tokens(self.eyes.token) or "\0"
            if answered.text[: answered.start].count(place) != num:
                raise UnusableError(f"the chat template shows not one {place} for each image")
        answer, message = answered.text[answered.start :], messages[-1]
        _refuse_loss(message, answer)
        reasoning = str(message.get("reasoning_content") or message.get("reasoning") or "")
        self.num_without_reasoning += reasoning.strip() not in answer
        return answered

    def _takes(self, what: str) -> bool:
        """Return whether the template shows all texts of a conversation."""
        try:
            shown, _ = self._render(CHANGES[what].shown, None)
        except UnusableError:
            return False
        return all(text in shown for text in CHANGES[what].texts)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts that follow each other.

        Each is tokenised alone, as the sampler had the prompt before it sampled the answer. That
        must be a tokenisation of the whole, too.

        Raises:
            InputError: It is not: the tokenizer adds something to a text that it begins with.
        """
        each = self._ids(texts)
        (whole,) = self._ids(["".join(texts)])
        joined = [token for ids in each for token in ids]
        if joined == whole or self._decoded(joined) == self._decoded(whole):
            return each
        return self._cut("".join(texts), texts)

    def _cut(self, whole: str, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of a text, cut where the parts begin."""
        encoded = self._tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        parts: list[list[int]] = []
        position = token = 0
        for text in texts:
            position, first = position + len(text), token
            while token < len(ids) and offsets[token][0] < position:
                token += 1
            if token > first and offsets[token - 1][1] > position:
                raise InputError(
                    f"the tokenizer of {self.directory} makes one token of the end of a prompt and "
                    f"the beginning of its answer ({whole[offsets[token - 1][0] : position + 9]!r})"
                    ", and other tokens of both apart: nobody knows what was sampled. Train on a "
                    "log with token ids"
                )
            parts.append(ids[first:token])
        return parts

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        # Without a warning that a text is longer than the model: the filters count such steps.
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return encoded["input_ids"]

    def _decoded(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _template(self, tools: Chat | None) -> str:
        with library_errors(
            f"{self.directory} must have a chat template, as transformers takes it"
        ):
            template = self._tokenizer.get_chat_template(None, tools)
            if not isinstance(template, str):
                raise TypeError(f"it is a {type(template).__name__}")
        return template

    def _render(
        self, messages: Sequence[Mapping[str, Any]], tools: Chat | None, **options: Any
    ) -> tuple[str, Sequence[tuple[int, int]]]:
        """Return the text of messages, and the spans that are marked in it."""
        try:
            rendered = render_chat(
                self._template(tools),
                [with_parts(message) for message in messages],
                day=self._day,
                tools=tools,
                **options,
                **self._tokenizer.special_tokens_map,
            )
        except TemplateRefusedError as error:
            raise UnusableError(f"the chat template refuses their messages ({error})") from error
        return rendered.text, rendered.spans

    def _marked(self, messages: Sequence[Mapping[str, Any]], tools: Chat | None) -> Answered:
        marked = {"return_assistant_tokens_mask": True}
        text, spans = self._render(messages, tools, **marked)
        before = self._render(messages[:-1], tools, **marked)[1] if messages[:-1] else []
        mine = [(start, end) for start, end in spans[len(before) :] if end > start]
        gaps = [text[one[1] : two[0]] for one, two in pairwise(mine)]
        if not mine or any(gaps):
            raise InputError(
                "a chat template with {% generation %} must mark each answer as one text: "
                f"{self.name} marks {len(mine)} in an answer. {REMEDY}"
            )
        return Answered(text[: mine[-1][1]], mine[0][0])

    def _compared(self, messages: Sequence[Mapping[str, Any]], tools: Chat | None) -> Answered:
        prompt = self._prompt(messages[:-1], tools)
        self._probe(messages[:-1], tools, prompt)
        text, _ = self._render(messages, tools)
        if not text.startswith(prompt):
            raise UnusableError(
                f"{self.name} does not append their answer to its "
                "generation prompt (as where the prompt opens <think>, and the answer has no "
                f"reasoning). {REMEDY}"
            )
        return Answered(self._ended(text), len(prompt))

    def _ended(self, text: str) -> str:
        """Return a text up to the token that ends its last answer.

        A line break after it is the template's, and so is a token after that which ends all texts.
        """
        ended = text.rstrip()
        earlier = ended.removesuffix(self._eos).rstrip()
        if earlier.endswith(self._ends) and ended != earlier + self._eos:
            return earlier
        return ended if ended.endswith(self._ends) else text

    def _prompt(self, messages: Sequence[Mapping[str, Any]], tools: Chat | None) -> str:
        if not messages:
            raise UnusableError("their answer follows no message")
        return self._render(messages, tools, add_generation_prompt=True)[0]

    def _probe(
        self, messages: Sequence[Mapping[str, Any]], tools: Chat | None, prompt: str
    ) -> None:
        """Refuse a template that begins an answer with a text that is not the policy's."""
        # After a result of a tool, a template may go on in another way than after a user's words.
        role = messages[-1]["role"]
        if role in self._probed:
            return
        one, other = (
            self._render([*messages, {"role": "assistant", "content": text}], tools)[0]
            for text in ("1", "2")
        )
        if one == other:  # the text is left out: no answer passes then
            return
        constant = one[len(prompt) : _num_common(one, other)]
        if one.startswith(prompt) and not _THINKING.fullmatch(constant):
            raise InputError(
                f"{self.name} does not tell what of a text is the "
                "answer: its generation prompt must end with what begins all answers after a "
                f"message of {role}, {constant!r}. {REMEDY}"
            )
        self._probed.add(role)


def _refuse_loss(message: Mapping[str, Any], answer: str) -> None:
    """Raise UnusableError if an answer lacks the text or a call of its message."""
    said = message["content"].rpartition("</think>")[2].strip()
    if said not in answer:
        raise UnusableError("the chat template leaves out the text of their answer")
    names = [call["function"]["name"] for call in message.get("tool_calls", ())]
    if not all(name in answer for name in names):
        raise UnusableError("the chat template leaves out calls of tools")


def _num_common(one: str, other: str) -> int:
    """Return how many first characters two texts have in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
