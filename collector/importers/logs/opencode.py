"""Read opencode's storage: a session is a file, and so is each of its messages and their parts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record, RowError, parsed, too_long


def is_session(path: Path) -> bool:
    """Return whether a file is a session of a storage: `session/PROJECT/ID.json`."""
    folder = path.parent.parent
    return folder.name == "session" and folder.with_name("message").is_dir()


def sessions_of(path: Path, limit: int) -> Iterator[Record]:
    """Yield the session of a file as `opencode export` writes it.

    Args:
        path: The file; messages are in `message/ID`, the parts of each in a folder of `part`.
        limit: Most bytes of all these files.

    Raises:
        RowError: One of them is no JSON, or they have more bytes.
    """
    storage = path.parents[2]
    parts = {
        message: _files(storage / "part" / message.stem)
        for message in _files(storage / "message" / path.stem)
    }
    files = (path, *parts, *(part for of_one in parts.values() for part in of_one))
    if sum(file.stat().st_size for file in files) > limit:
        raise too_long(limit)
    messages = [
        {"info": _value(message), "parts": list(map(_value, of_one))}
        for message, of_one in parts.items()
    ]
    value = {"info": _value(path), "messages": messages}
    yield Record(path=path, place="", value=value, share=1.0)


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their ids, which is that of their times."""
    return sorted(path for path in folder.glob("*.json") if path.is_file())


def _value(path: Path) -> Any:
    value = parsed(path.read_bytes())
    if isinstance(value, RowError):
        raise RowError(f"{path.parent.name}/{path.name}: {value}")
    return value
