"""The images in a message's content: which parts are images, and what each part names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

_TYPES = frozenset(
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageAddress:
    """What a part has for its image."""

    given: object = None
    """The value within the part that names the image or is its content."""
    address: str | bytes | None = None
    """A URL (also of data), a path, or the content; None if the part has none of them."""


def is_image(part: object) -> bool:
    """Return whether a part of a content is an image, or several."""
    if not isinstance(part, Mapping):
        return False
    mapping = cast("Mapping[str, Any]", part)
    kind = mapping.get("type")
    if kind is not None:
        return isinstance(kind, str) and kind in _TYPES
    inline = next((mapping[name] for name in _INLINE if name in mapping), None)
    if not isinstance(inline, Mapping):
        return False
    types = (cast("Mapping[str, Any]", inline).get(name) for name in ("mime_type", "mimeType"))
    return any(isinstance(mime, str) and mime.startswith("image/") for mime in types)


def single_images(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
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
        if is_image(part):
            yield from single_images(cast("Mapping[str, Any]", part))
        elif isinstance(part, Mapping):
            result = cast("Mapping[str, Any]", part)
            if result.get("type") == "tool_result":
                yield from images_of(result.get("content"))


def address_of(part: Mapping[str, Any]) -> ImageAddress:
    """Return what a part has for its image."""
    for name in _FIELDS:
        found = _address(part.get(name), is_base64=name in _BASE64)
        if found.address is not None:
            return found
    return ImageAddress()


def _address(value: object, *, is_base64: bool) -> ImageAddress:
    if isinstance(value, bytes) and value:
        return ImageAddress(given=value, address=value)
    if isinstance(value, str) and value:
        is_bare = is_base64 and not value.startswith("data:")
        return ImageAddress(given=value, address=f"data:;base64,{value}" if is_bare else value)
    if isinstance(value, list) and value:
        return _address(cast("list[object]", value)[0], is_base64=False)
    if isinstance(value, Mapping):
        found = address_of(cast("Mapping[str, Any]", value))
        is_name = isinstance(found.given, str) and found.address is found.given
        return found if is_name or found.address is None else replace(found, given=value)
    return ImageAddress()
