"""Rows whose images are in a field beside their messages, as verl, TRL and LLaMA-Factory have them.

The messages have a place for each: a part `{"type": "image"}`, or `<image>` in a text. Without any
place, the images come before the first message of the user, as in TRL.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.importers.logs.image_parts import address_of, is_image

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
    placed = {field: _placed(messages, images) for field, messages in lists.items()}
    left = list(images)
    if len(left) == len(given):
        number = next((n for n, field in enumerate(placed) if _has_user(placed[field])), None)
        if number is not None:
            field = list(placed)[number]
            placed[field] = _before_user(placed[field], left)
            left = []
    return {**{k: v for k, v in row.items() if k != name}, **placed}, len(left)


def _is_images(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(map(_may_be_image, cast("list[object]", value)))


def _may_be_image(value: object) -> bool:
    if isinstance(value, Mapping):
        return address_of(cast("Mapping[str, Any]", value)).address is not None
    return isinstance(value, bytes) or (isinstance(value, str) and bool(_NAME.match(value)))


def _placed(messages: list[Any], images: Iterator[Any]) -> list[Any]:
    """Return messages with images in the places that they have."""
    return [_message_placed(message, images) for message in messages]


def _message_placed(message: Any, images: Iterator[Any]) -> Any:
    if not isinstance(message, Mapping):
        return message
    fields = cast("Mapping[str, Any]", message)
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
    if is_image(part) and address_of(cast("Mapping[str, Any]", part)).address is None:
        image = next(images, None)
        return part if image is None else {"type": "image", "image": image}
    return part


def _has_user(messages: list[Any]) -> bool:
    return any(map(_is_user, messages))


def _is_user(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    fields = cast("Mapping[str, Any]", message)
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
