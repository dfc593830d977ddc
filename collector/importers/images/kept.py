"""Images that are kept: content that was checked, under a path that is made of it.

They stand in a rollout in the place of what its messages have for them.
"""

import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import unquote, unquote_to_bytes

from graphcredit.collector.importers.images.image_types import (
    BROKEN,
    ELSEWHERE,
    MISSING,
    MOST_BYTES,
    NOT_FOLLOWED,
    ImageError,
)
from graphcredit.collector.importers.images.neighbour_files import (
    ImageFolder,
    KeptImage,
    path_of,
    read_file,
)
from graphcredit.collector.importers.messages.image_parts import address_of
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Message

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_BASE64_BEGINS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How the base64 of an image may begin, where nothing says that it is base64."""
_SHORTEST_BASE64 = 60

_SHOWN = 60
"""Characters of an address that a message shows."""


def with_images(
    rollout: LoggedRollout, folder: ImageFolder
) -> tuple[LoggedRollout, tuple[ImageError, ...]]:
    """Return a rollout whose messages have their images, and the images that cannot be kept.

    Args:
        rollout: As its format reads it.
        folder: Where its images may be.
    """
    if not any(message.image_parts for message in rollout.messages):
        return rollout, ()
    lost: list[ImageError] = []
    messages = tuple(
        _with_images(message, folder, lost) if message.image_parts else message
        for message in rollout.messages
    )
    return replace(rollout, messages=messages), tuple(lost)


def _with_images(message: Message, folder: ImageFolder, lost: list[ImageError]) -> Message:
    text, images = message.text, list[KeptImage]()
    instead: dict[int, str] = {}
    for part in message.image_parts:
        named = address_of(part)
        address = _shown(named.address)
        try:
            image = keep_image(named.address, folder)
        except ImageError as error:
            lost.append(ImageError(error.reason, f"{address}: {error.detail}"))
            if isinstance(named.address, bytes):  # JSON has no bytes
                instead[id(named.given)] = f"({address} that are not kept)"
            continue
        images.append(image)
        instead[id(named.given)] = image.path
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


def keep_image(address: str | bytes | None, folder: ImageFolder) -> KeptImage:
    """Return the image at an address."""
    if address is None:
        raise ImageError(MISSING, "an image must have bytes, a path or a URL: it has none of them")
    if isinstance(address, bytes):
        content = address
    elif address.startswith("data:"):
        content = _of_data_url(address)
    elif len(address) > _SHORTEST_BASE64 and address.startswith(_BASE64_BEGINS):
        content = _decoded(address)
    else:
        path = folder.find(_file_name(address))
        return KeptImage(path=path_of(read_file(path)), content=path)
    return KeptImage(path=path_of(content), content=content)


def _shown(address: str | bytes | None) -> str:
    """Return the beginning of an address, for a message."""
    if not isinstance(address, str):
        return "no address" if address is None else f"{len(address):,} bytes"
    return address if len(address) <= _SHOWN else f"{address[:_SHOWN]}…"


def _file_name(address: str) -> str:
    """Return the path of an address that may name a file."""
    match = _SCHEME.match(address)
    scheme = match[1].lower() if match else ""
    if scheme == "attachment":
        raise ImageError(MISSING, "the log must have its attachments: this one is not among them")
    if scheme not in ("", "file"):
        raise ImageError(ELSEWHERE, f"addresses of {scheme} are not fetched")
    if not scheme:
        return address
    host, slash, path = address.partition("://")[2].partition("/")
    if host not in ("", "localhost"):
        raise ImageError(NOT_FOLLOWED, f"a file must be on this machine: it is on {host}")
    return slash + unquote(path)


def _of_data_url(url: str) -> bytes:
    head, comma, data = url.partition(",")
    if not comma:
        raise ImageError(BROKEN, "a data URL must have a comma before its data")
    if len(data) > 4 * MOST_BYTES:
        raise ImageError(BROKEN, f"an image must have at most {MOST_BYTES >> 20} MiB")
    return _decoded(data) if head.endswith(";base64") else unquote_to_bytes(data)


def _decoded(data: str) -> bytes:
    try:
        return binascii.a2b_base64("".join(data.split()), strict_mode=True)
    except ValueError as error:  # also of characters that are not ASCII
        raise ImageError(BROKEN, f"its base64 cannot be decoded: {error}") from None
