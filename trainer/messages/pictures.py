"""The images of messages: their places in a text."""

from collections.abc import Mapping
from typing import Any

from graphcredit.trainer.messages.conversation import UnusableError, num_images

_PLACE = "\ufdd0"
"""Stands for an image in a text: a character that Unicode keeps out of texts."""


def flat(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose content is one text, with a place for each image.

    Raises:
        UnusableError: Its text has a place already.
    """
    content = message["content"]
    if not isinstance(content, str):
        content = "".join(part.get("text", _PLACE) for part in content)
    if content.count(_PLACE) != num_images(message):
        raise UnusableError("their messages have the character U+FDD0, which is of no text")
    return {**message, "content": content}


def with_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with parts in place of a text with images."""
    first, *others = message["content"].split(_PLACE)
    if not others:
        return dict(message)
    parts = [{"type": "text", "text": first}]
    for text in others:
        parts += [{"type": "image"}, {"type": "text", "text": text}]
    return {**message, "content": [part for part in parts if part.get("text") != ""]}
