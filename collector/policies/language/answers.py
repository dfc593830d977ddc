"""What a language model's answer says: a thought and an action, or nothing that can be done."""

import re
from typing import NamedTuple

_TAG = re.compile(r"</?(?:think|action)>")


class Answer(NamedTuple):
    """A thought and an action."""

    thought: str | None
    """What came before the action; None where the form of answer has no thoughts."""
    action: str
    """What to do; the whole answer where it is malformed."""
    is_malformed: bool
    """Whether there is no action in it."""


def parse_answer(text: str, form: str) -> Answer:
    """Return what an answer says.

    "plain": the whole answer is the action. "tags": `<think>…</think><action>…</action>`, each
    once, with nothing around them but white space; the first tag may be missing, because some chat
    templates end the prompt with it. Anything else is malformed, and so is an empty action.

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
    """Return the answer that says this: the inverse of `parse_answer`."""
    if form == "plain":
        return action
    return f"<think>{thought or ''}</think><action>{action}</action>"
