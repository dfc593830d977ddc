"""The content of a message: its text, its images, and what each image's part names."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from graphcredit.collector.importers.messages.values import canonical, fields_of

_IMAGE_TYPES = frozenset(
    {"image", "image_url", "input_image", "output_image", "image_file", "computer_screenshot"}
)
_INLINE = ("inline_data", "inlineData")
"""Gemini's fields for bytes of any kind."""

_BASE64 = frozenset({"bytes", "data", "base64"})
_FIELDS = (
    *("image_url", "image_urls", "source", "image", *_INLINE),
    *("bytes", "url", "path", "data", "base64"),
)
"""Fields that may have an image or name it; an object in one of them has these fields again."""

_NO_TEXTS = ("thinking", "redacted_thinking", "reasoning", "tool_use")
"""Parts that are read elsewhere, as reasoning or as calls."""


def text_of_content(content: object) -> str:
    """Return the text of a message's content: text, or a list of parts.

    An image, or another part without text, becomes a mark with a digest, so that two are two.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        parts = cast("list[object]", content)
        return "\n".join(text for part in parts if (text := _text_of_part(part)))
    return _text_of_part(content) if is_image(content) else canonical(content)


def _text_of_part(part: object) -> str:
    if not isinstance(part, Mapping):
        return text_of_content(part)
    fields = cast("Mapping[str, Any]", part)
    if is_image(part):
        return "\n".join(map(_mark, _single_images(fields)))
    for name in ("text", "refusal", "content"):
        if isinstance(fields.get(name), str):
            return fields[name]
    kind = str(fields.get("type", "part"))
    if kind == "tool_result":
        return text_of_content(fields.get("content"))
    return "" if kind in _NO_TEXTS else _mark(fields)


def _mark(part: Mapping[str, Any]) -> str:
    """Return a text for a part that has none; equal parts have equal ones."""
    digest = hashlib.sha256(canonical(part).encode("utf-8", "surrogatepass"))
    return f"[{part.get('type', 'part')} {digest.hexdigest()[:12]}]"


def is_image(part: object) -> bool:
    """Return whether a part of a content is an image, or several."""
    fields = fields_of(part)
    kind = fields.get("type")
    if kind is not None:
        return isinstance(kind, str) and kind in _IMAGE_TYPES
    inline = next((fields_of(fields[name]) for name in _INLINE if name in fields), {})
    types = (inline.get("mime_type"), inline.get("mimeType"))
    return any(isinstance(mime, str) and mime.startswith("image/") for mime in types)


def _single_images(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a part for each image of a part that is images."""
    urls = part.get("image_urls")
    if not isinstance(urls, list) or len(cast("list[Any]", urls)) < 2:
        return [part]
    return [{**part, "image_urls": [url]} for url in cast("list[Any]", urls)]


def images_of(content: object) -> tuple[Mapping[str, Any], ...]:
    """Return the images of a message's content in their order, those in results of tools too."""
    return () if content is None or isinstance(content, str) else tuple(_images(content))


def _images(content: object) -> Iterator[Mapping[str, Any]]:
    for part in cast("list[object]", content) if isinstance(content, list) else [content]:
        fields = fields_of(part)
        if is_image(part):
            yield from _single_images(fields)
        elif fields.get("type") == "tool_result":
            yield from images_of(fields.get("content"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageAddress:
    """What a part has for its image."""

    given: object = None
    """The value within the part that names the image or is its content."""
    address: str | bytes | None = None
    """A URL (also of data), a path, or the content; None if the part has none of them."""


def address_of(part: object) -> ImageAddress:
    """Return what a part has for its image."""
    fields = fields_of(part)
    for name in _FIELDS:
        address = _address(fields.get(name), is_base64=name in _BASE64)
        if address.address is not None:
            return address
    return ImageAddress()


def _address(value: object, *, is_base64: bool) -> ImageAddress:
    if isinstance(value, bytes) and value:
        return ImageAddress(given=value, address=value)
    if isinstance(value, str) and value:
        is_bare = is_base64 and not value.startswith("data:")
        return ImageAddress(given=value, address=f"data:;base64,{value}" if is_bare else value)
    if isinstance(value, list) and value:
        return _address(cast("list[object]", value)[0], is_base64=False)
    inner = address_of(value) if isinstance(value, Mapping) else ImageAddress()
    is_name = isinstance(inner.given, str) and inner.address is inner.given
    return inner if is_name or inner.address is None else replace(inner, given=value)
