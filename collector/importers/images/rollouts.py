"""Put the images of a rollout in the place of what its messages have for them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.importers.images.beside import ImageFolder
from graphcredit.collector.importers.images.kept import KeptImage, keep_image, shown
from graphcredit.collector.importers.images.lost import ImageError, LostImage
from graphcredit.collector.importers.logs.image_parts import address_of
from graphcredit.collector.importers.logs.messages import LoggedRollout, Message
from graphcredit.collector.importers.logs.values import text_of_content


def with_images(
    rollout: LoggedRollout, folder: ImageFolder
) -> tuple[LoggedRollout, tuple[LostImage, ...]]:
    """Return a rollout whose messages have their images, and the images that cannot be kept.

    Args:
        rollout: As its format reads it.
        folder: Where its images may be.
    """
    if not any(message.image_parts for message in rollout.messages):
        return rollout, ()
    lost: list[LostImage] = []
    messages = tuple(
        _with_images(message, folder, lost) if message.image_parts else message
        for message in rollout.messages
    )
    return replace(rollout, messages=messages), tuple(lost)


def _with_images(message: Message, folder: ImageFolder, lost: list[LostImage]) -> Message:
    text, images = message.text, list[KeptImage]()
    instead: dict[int, str] = {}
    for part in message.image_parts:
        found = address_of(part)
        try:
            image = keep_image(found, folder)
        except ImageError as error:
            named = f"{shown(found.address)}: {error.lost.detail}"
            lost.append(replace(error.lost, detail=named))
            if isinstance(found.address, bytes):  # JSON has no bytes
                instead[id(found.given)] = f"({shown(found.address)} that are not kept)"
            continue
        images.append(image)
        instead[id(found.given)] = image.path
        text = text.replace(text_of_content(part), image.mark)
    source = _replaced(message.source, instead) if instead else message.source
    return replace(message, text=text, images=tuple(images), source=source)


def _replaced(value: Any, instead: Mapping[int, str]) -> Any:
    """Return a JSON value with other texts in the place of some of its parts."""
    if id(value) in instead:
        return instead[id(value)]
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _replaced(item, instead) for name, item in items}
    if isinstance(value, list | tuple):
        return [_replaced(item, instead) for item in cast("list[Any]", value)]
    return value
