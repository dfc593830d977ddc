"""The content of a message: its text and its images."""

from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.messages.parts import CALL, THOUGHT, pieces_of, result_text


def text_of_content(content: object) -> str:
    """Return the text of a message's content: text, a list of parts, or data.

    An image, or another part without text, becomes a mark with a digest, so that two are two.
    Reasoning and calls are read elsewhere.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        pieces = pieces_of(content)
        return "\n".join(p.text for p in pieces if p.text and p.kind not in (THOUGHT, CALL))
    return result_text(content)


def images_of(content: object) -> tuple[Mapping[str, Any], ...]:
    """Return the images of a message's content in their order, those in results of tools too."""
    if content is None or isinstance(content, str):
        return ()
    return tuple(image for piece in pieces_of(content) for image in piece.images)
