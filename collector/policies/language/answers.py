"""Parse a language model's answer into a thought and an action."""

import re
from typing import NamedTuple

_TAG = re.compile(r"</?(?:think|action)>")


class Answer(NamedTuple):
    """A thought and an action."""

    thought: str | None
    """The reasoning before the action; None if the form has no thoughts."""
    action: str
    """The action; the whole answer if it is malformed."""
    is_malformed: bool
    """Whether the answer has no action."""


def parse_answer(text: str, form: str) -> Answer:
    """Return the thought and the action of an answer.

    In the form "plain", the whole answer is the action. In the form "tags", the answer is
    `<think>…</think><action>…</action>`, each once, surrounded only by white space. The first tag
    may be missing, because some chat templates end the prompt with it. Any other answer is
    malformed, and so is an empty action.

    Args:
        text: The answer, without the token that ends it.
        form: "tags" or "plain".
    """
    if form == "plain":
        return Answer(thought=None, action=text.strip(), is_malformed=not text.strip())
    before, _, after = text.strip().removeprefix("<think>").partition("</think>")
    thought, tagged = before.strip(), after.lstrip()
    action = tagged.removeprefix("<action>").removesuffix("</action>").strip()
    is_tagged = tagged.startswith("<action>") and tagged.endswith("</action>")
    if not is_tagged or not action or _TAG.search(thought) or _TAG.search(action):
        return Answer(thought=None, action=text.strip(), is_malformed=True)
    return Answer(thought=thought, action=action, is_malformed=False)


def spoken(thought: str | None, action: str, form: str) -> str:
    """Return the answer with this thought and action: the inverse of `parse_answer`."""
    if form == "plain":
        return action
    return f"<think>{thought or ''}</think><action>{action}</action>"
