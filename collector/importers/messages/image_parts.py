"""Parts of a message that are images, and what each names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from graphcredit.collector.importers.messages.values import fields_of

_IMAGE_TYPES = frozenset(
    {"image", "image_url", "input_image", "output_image", "image_file", "computer_screenshot"}
)
_INLINE = ("inline_data", "inlineData")
"""Gemini's fields for bytes of any kind."""

_BASE64 = frozenset({"bytes", "data", "base64", "content"})
_FIELDS = (
    *("image_url", "image_urls", "source", "image", *_INLINE),
    *("bytes", "url", "uri", "path", "data", "base64", "content"),
)
"""Fields that may have an image or name it; an object in one of them has these fields again."""

_MIME_TYPES = ("mime_type", "mimeType", "mediaType", "media_type")


def is_image(part: object) -> bool:
    """Return whether a part of a content is an image, or several."""
    fields = fields_of(part)
    kind = fields.get("type")
    if isinstance(kind, str) and kind in _IMAGE_TYPES:
        return True
    if kind is not None:  # a file, or bytes
        return fields.get("modality") == "image" or _is_image_type(fields)
    inline = next((fields_of(fields[name]) for name in _INLINE if name in fields), None)
    if inline is not None:
        return _is_image_type(inline)
    return len(fields) == 1 and "image" in fields  # Bedrock, and Qwen-Agent


def _is_image_type(fields: Mapping[str, Any]) -> bool:
    types = (fields.get(name) for name in _MIME_TYPES)
    return any(isinstance(mime, str) and mime.startswith("image/") for mime in types)


def single_images(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a part for each image of a part that is images."""
    urls = part.get("image_urls")
    if not isinstance(urls, list) or len(cast("list[Any]", urls)) < 2:
        return [part]
    return [{**part, "image_urls": [url]} for url in cast("list[Any]", urls)]


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
