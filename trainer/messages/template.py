"""The chat template of a model: where in its text an answer begins and ends."""

import re
from collections.abc import Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from transformers.models.auto.tokenization_auto import AutoTokenizer

from graphcredit.store.chat import Chat
from graphcredit.store.confined.templates import TemplateRefusedError, render_chat, start_renderer
from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.messages.conversation import UnusableError
from graphcredit.trainer.messages.encoding import encode_parts
from graphcredit.trainer.messages.ends import TurnEnds
from graphcredit.trainer.messages.pictures import flat, num_images, with_parts
from graphcredit.trainer.messages.plain import ASK, CALLS, CHANGES, Messages
from graphcredit.trainer.messages.said import inline_thinking, refuse_loss, up_to_cut
from graphcredit.trainer.messages.tools import NO_DESCRIPTION, PLAIN_TOOL, described
from graphcredit.trainer.model.source import load_image_reader
from graphcredit.trainer.model.vision import FAMILIES, ImageReader

_MARK = re.compile(r"\{%-?\s*generation\s*-?%\}")
_THINKING = re.compile(r"\s*(<think(ing)?>)?\s*(</think(ing)?>)?\s*")
"""What a template may begin every answer with: reasoning that is empty is the policy's, too."""

_REASONING = ("reasoning_content", "reasoning", "thinking")
"""What templates call the reasoning of a message, the most frequent name first."""

_TRL = {"<|channel|>": "gptoss", "<｜Assistant｜>": "deepseekv3"}

BLIND = (
    "their messages have images, for which --model must be a vision-language model of the families "
    f"{', '.join(sorted(FAMILIES))}"
)


class AnsweredChat(NamedTuple):
    """A conversation as text, to the end of its last message, which is an answer."""

    text: str
    start: int
    """Where the answer begins."""
    lacks_reasoning: bool = False
    """Whether the template leaves out the reasoning of the answer."""


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
        self._templates: dict[bool, str] = {}
        self._probed: set[str] = set()
        self._changes = self._needed_changes(calls_as_text)
        self.changes: dict[str, None] = {}
        """What the template does not take, and it is told in another form."""
        self.refuses_calls = False
        """Whether it has refused a conversation with calls, or left out a part of one."""

    @cached_property
    def image_reader(self) -> ImageReader | None:
        """Return what makes patches of images; None if the model takes none."""
        return load_image_reader(str(self.directory))

    @cached_property
    def ends(self) -> TurnEnds:
        """Return how the template ends a turn."""
        return TurnEnds.of_template(self._tokenizer, self.directory, self._shown)

    @property
    def remedy(self) -> str:
        """Return what helps where the template does not tell the answer."""
        names = [name for mark, name in _TRL.items() if mark in self._template(None)]
        which = f"{names[0]}_training.jinja" if names else "NAME_training.jinja of its family"
        return (
            "Put {% generation %} and {% endgeneration %} around the answer in a copy of the "
            f"template (TRL's package has such copies: trl/chat_templates/{which}), and name it by "
            "--chat-template, or train on a log with token ids"
        )

    def has_marks(self, tools: Chat | None = None) -> bool:
        """Return whether the template marks answers by {% generation %}."""
        return bool(_MARK.search(self._template(tools)))

    def answered(
        self, messages: Messages, tools: Chat | None, *, is_cut: bool = False
    ) -> AnsweredChat:
        """Return the text of a conversation, and where its last message begins in it.

        Args:
            messages: The last one is an answer of the policy.
            tools: Definitions of the tools.
            is_cut: Whether a limit cut the answer: its policy did not say the end of the turn.

        Raises:
            UnusableError: The template refuses these messages, or leaves a part of the answer out.
            InputError: The template does not tell what of the text is the answer.
        """
        try:
            return self._answered(messages, tools, is_cut=is_cut)
        except UnusableError:
            has_calls = any(m.get("tool_calls") or m["role"] == "tool" for m in messages)
            self.refuses_calls = self.refuses_calls or has_calls
            raise

    def ended(self, messages: Messages, tools: Chat | None, *, is_cut: bool = False) -> str:
        """Return the text of a conversation to the end of its last answer.

        Raises:
            UnusableError: The template refuses these messages.
        """
        messages, tools = self._changed(messages, tools)
        marked = self.has_marks(tools)
        text, spans = self._render(messages, tools, return_assistant_tokens_mask=marked)
        if is_cut:
            return up_to_cut(text, messages[-1], self.ends)
        return text[: spans[-1][1]] if spans else self.ends.ended(text, messages[-1])

    def _answered(self, messages: Messages, tools: Chat | None, *, is_cut: bool) -> AnsweredChat:
        num = sum(map(num_images, messages))
        if num and self.image_reader is None:
            raise UnusableError(BLIND)
        if num_images(messages[-1]):
            raise UnusableError("their answer has images")
        messages, tools = self._changed(messages, tools)
        answer = messages[-1]
        if is_cut and inline_thinking(answer) is None and "<think>" in answer["content"]:
            return self._cut_thinking(messages, tools)
        text, start = (self._marked if self.has_marks(tools) else self._compared)(messages, tools)
        if num and self.image_reader:
            place = self._tokenizer.convert_ids_to_tokens(self.image_reader.token) or "\0"
            if text[:start].count(place) != num:
                raise UnusableError(f"the chat template shows not one {place} for each image")
        if not is_cut:
            refuse_loss(answer, text[start:])
        elif len(text := up_to_cut(text, answer, self.ends)) <= start:
            raise UnusableError("nothing was said before their answer was cut")
        reasoning = str(answer.get(self._reasoning) or inline_thinking(answer) or "")
        return AnsweredChat(text, start, reasoning.strip() not in text[start:])

    def _changed(
        self, messages: Messages, tools: Chat | None
    ) -> tuple[Sequence[dict[str, Any]], Chat | None]:
        """Return messages as the template takes them, a place in their texts for each image."""
        chat = [self._with_reasoning(flat(message)) for message in messages]
        for what in self._changes:
            changed = CHANGES[what].apply(chat, tools)
            if changed != chat:
                self.changes[what] = None
            chat = changed
            tools = None if what == CALLS else tools
        if (
            tools
            and (shown := list(map(described, tools))) != tools
            and not self._takes_plain_tools
        ):
            self.changes[NO_DESCRIPTION] = None
            tools = shown
        return chat, tools

    @cached_property
    def _takes_plain_tools(self) -> bool:
        """Return whether the template takes a tool without a description."""
        return self._shown([ASK], [PLAIN_TOOL]) is not None

    @cached_property
    def _reasoning(self) -> str:
        """Return what the template calls the reasoning of a message."""
        text = self._template(None)
        found = (name for name in _REASONING if re.search(rf"""[."']{name}\b""", text))
        return next(found, _REASONING[0])

    def _with_reasoning(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message whose reasoning has the name that the template knows."""
        values = [message.pop(name) for name in _REASONING if name in message]
        return {**message, self._reasoning: values[0]} if values else message

    def _needed_changes(self, calls_as_text: bool) -> list[str]:
        """Return the changes without which the template does not show what it is given."""
        needed: list[str] = []
        for what, change in CHANGES.items():
            shown: Chat = change.shown
            for each in needed:
                shown = CHANGES[each].apply(shown, None)
            is_lacking = not self._takes(shown, change.texts)
            is_asked = calls_as_text and what == CALLS
            if is_asked or (is_lacking and self._takes(change.apply(shown, None), change.texts)):
                needed.append(what)
        return needed

    def _takes(self, messages: Messages, texts: Sequence[str]) -> bool:
        """Return whether the template shows some texts of a conversation."""
        shown = self._shown(messages)
        return shown is not None and all(text in shown for text in texts)

    def _shown(self, messages: Messages, tools: Chat | None = None) -> str | None:
        """Return the text of some messages; None if the template refuses them."""
        try:
            return self._render(messages, tools)[0]
        except UnusableError:
            return None

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts that follow each other; see `encode_parts`."""
        return encode_parts(self._tokenizer, texts, str(self.directory))

    def _template(self, tools: Chat | None) -> str:
        if bool(tools) not in self._templates:
            with library_errors(
                f"{self.directory} must have a chat template, as transformers takes it"
            ):
                template = self._tokenizer.get_chat_template(None, tools)
                if not isinstance(template, str):
                    raise TypeError(f"it is a {type(template).__name__}")
            self._templates[bool(tools)] = template
        return self._templates[bool(tools)]

    def _render(
        self, messages: Messages, tools: Chat | None, **options: Any
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

    def _cut_thinking(self, messages: Messages, tools: Chat | None) -> AnsweredChat:
        """Return an answer that was cut while it thought: templates would close its tag."""
        prompt = self._prompt(messages[:-1], tools)
        said = messages[-1]["content"]
        if prompt.rstrip().endswith("<think>"):
            said = said.partition("<think>")[2].lstrip()
        return AnsweredChat(prompt + said, len(prompt))

    def _marked(self, messages: Messages, tools: Chat | None) -> tuple[str, int]:
        marked = {"return_assistant_tokens_mask": True}
        text, spans = self._render(messages, tools, **marked)
        before = list(messages[:-1])
        if before and before[-1]["role"] == "assistant":
            before.append(ASK)  # else Phi's marks the end of the text there, too
        num = len(self._render(before, tools, **marked)[1]) if before else 0
        mine = [(start, end) for start, end in spans[num:] if end > start]
        gaps = [text[one[1] : two[0]] for one, two in pairwise(mine)]
        if not mine or any(gaps):
            raise InputError(
                "a chat template with {% generation %} must mark each answer as one text: "
                f"{self.name} marks {len(mine)} in an answer. {self.remedy}"
            )
        return text[: mine[-1][1]], mine[0][0]

    def _compared(self, messages: Messages, tools: Chat | None) -> tuple[str, int]:
        prompt = self._prompt(messages[:-1], tools)
        self._probe(messages[:-1], tools, prompt)
        text, _ = self._render(messages, tools)
        if not text.startswith(prompt):
            text = self._after_rewriting(messages, tools, prompt, text)
        if not text.startswith(prompt):
            raise UnusableError(
                f"{self.name} does not append their answer to its "
                "generation prompt (as where the prompt opens <think>, and the answer has no "
                f"reasoning). {self.remedy}"
            )
        return self.ends.ended(text, messages[-1]), len(prompt)

    def _after_rewriting(
        self, messages: Messages, tools: Chat | None, prompt: str, text: str
    ) -> str:
        """Return a prompt with the answer that a template shows after another past.

        So does that of gpt-oss, which leaves the reasoning of calls out once there is an answer,
        and Qwen3's, whose last answer alone has empty reasoning. The policy was given the prompt.
        If the answer cannot be told, return the text.
        """
        for before in (messages[:-2], messages[:-1]):
            past = self._render(before, tools)[0] if before else ""
            last = prompt.removeprefix(past)
            if last not in ("", prompt) and text.count(last) == prompt.count(last):
                return prompt + text.rpartition(last)[2]
        return text

    def _prompt(self, messages: Messages, tools: Chat | None) -> str:
        if not messages:
            raise UnusableError("their answer follows no message")
        return self._render(messages, tools, add_generation_prompt=True)[0]

    def _probe(self, messages: Messages, tools: Chat | None, prompt: str) -> None:
        """Refuse a template that begins an answer with a text that is not the policy's.

        What stands between a generation prompt and every answer is said by the policy, such as the
        channel of gpt-oss. Without a generation prompt nobody knows who says it.
        """
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
        differs = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        constant = one[len(prompt) : next(differs, len(one))]
        is_prompted = prompt != self._render(messages, tools)[0]
        is_said = is_prompted or bool(_THINKING.fullmatch(constant))
        if one.startswith(prompt) and not is_said:
            raise InputError(
                f"{self.name} does not tell what of a text is the "
                "answer: its generation prompt must end with what begins all answers after a "
                f"message of {role}, {constant!r}. {self.remedy}"
            )
        self._probed.add(role)
