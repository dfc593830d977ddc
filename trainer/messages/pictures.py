"""The images of messages: their places in a text."""

from collections.abc import Mapping
from typing import Any

_PLACE = "\udfff"
"""Stands for an image in a text: no text in UTF-8 has it."""


def num_images(message: Mapping[str, Any]) -> int:
    """Return how many images a chat message has."""
    return flat(message)["content"].count(_PLACE)


def flat(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose content is one text, with a place for each image."""
    parts = message["content"]
    texts = [parts] if isinstance(parts, str) else [part.get("text", _PLACE) for part in parts]
    return {**message, "content": "".join(texts)}


def with_parts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message with parts in place of a text with images."""
    first, *others = message["content"].split(_PLACE)
    parts = [{"type": "text", "text": first}] if first else []
    for text in others:
        parts += [{"type": "image"}, *([{"type": "text", "text": text}] if text else [])]
    return {**message, "content": parts} if others else message
