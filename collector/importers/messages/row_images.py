"""Rows whose images are in a field beside their messages, as verl, TRL and LLaMA-Factory have them.

The messages have a place for each: a part `{"type": "image"}`, or `<image>` in a text. Without any
place, the images come before the first message of the user, as in TRL.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.importers.messages.image_parts import address_of, is_image
from graphcredit.collector.importers.messages.values import fields_of

_FIELDS = ("images", "image")
_PLACE = "<image>"
_NAME = re.compile(r"(?i)data:|.*\.(png|jpe?g|gif|webp|bmp|tiff?|svg)([?#].*)?")
"""What a text must begin with to name an image: `images` may be those of containers."""


def with_images_placed(
    row: Mapping[str, Any], lists: Mapping[str, list[Any]]
) -> tuple[Mapping[str, Any], int]:
    """Return a row whose messages have its images, and how many images have no place in them.

    Args:
        row: A row.
        lists: Fields of it that have messages, in their order.
    """
    name = next((name for name in _FIELDS if _is_images(row.get(name))), None)
    if name is None or not lists:
        return row, 0
    given = cast("list[Any]", row[name])
    images = iter(given)
    placed = {
        field: [_placed(message, images) for message in messages]
        for field, messages in lists.items()
    }
    left = list(images)
    if len(left) == len(given):
        field = next((field for field in placed if any(map(_is_user, placed[field]))), None)
        if field is not None:
            placed[field] = _before_user(placed[field], left)
            left = []
    return {**{k: v for k, v in row.items() if k != name}, **placed}, len(left)


def _is_images(value: object) -> bool:
    images = cast("list[object]", value) if isinstance(value, list) else []
    return bool(images) and all(map(_may_be_image, images))


def _may_be_image(value: object) -> bool:
    if isinstance(value, str):
        return bool(_NAME.match(value))
    return isinstance(value, bytes) or address_of(value).address is not None


def _placed(message: Any, images: Iterator[Any]) -> Any:
    """Return a message with images in the places that it has."""
    fields = fields_of(message)
    name = next((name for name in ("content", "value") if fields.get(name) is not None), "")
    content = fields.get(name)
    if isinstance(content, str) and _PLACE in content:
        return {**fields, name: list(_parts_of_text(content, images))}
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return {**fields, name: [_part_placed(part, images) for part in parts]}
    return message


def _parts_of_text(text: str, images: Iterator[Any]) -> Iterator[dict[str, Any]]:
    for number, said in enumerate(text.split(_PLACE)):
        if number:
            yield {"type": "image", "image": next(images, None)}
        if said.strip():
            yield {"type": "text", "text": said.strip("\n")}


def _part_placed(part: Any, images: Iterator[Any]) -> Any:
    is_place = is_image(part) and address_of(part).address is None
    image = next(images, None) if is_place else None
    return part if image is None else {"type": "image", "image": image}


def _is_user(message: Any) -> bool:
    fields = fields_of(message)
    return fields.get("role", fields.get("from")) in ("user", "human")


def _before_user(messages: list[Any], images: Sequence[Any]) -> list[Any]:
    """Return messages with images before what the user says first."""
    first = next(n for n, message in enumerate(messages) if _is_user(message))
    message = messages[first]
    name = "content" if "content" in message else "value"
    said = message.get(name)
    parts = said if isinstance(said, list) else [{"type": "text", "text": said or ""}]
    shown = [{"type": "image", "image": image} for image in images]
    return [*messages[:first], {**message, name: [*shown, *parts]}, *messages[first + 1 :]]
