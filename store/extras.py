"""The command that installs an optional extra, for however this package was installed itself."""

import json
from contextlib import suppress
from typing import Any


def how_to_install(extra: str) -> str:
    """Return a command of pip that works from a clone, from a wheel, and from an index."""
    from importlib import metadata

    source: dict[str, Any] = {}
    with suppress(metadata.PackageNotFoundError):
        # Where pip says that the package came from (PEP 610).
        text = metadata.distribution("graphcredit").read_text("direct_url.json")
        source = json.loads(text or "{}")
    place = str(source.get("url", ""))
    if source.get("dir_info", {}).get("editable"):
        return f"pip install -e '{place.removeprefix('file://')}[{extra}]'"
    if place:
        return f"pip install 'graphcredit[{extra}] @ {place}'"
    return f"pip install 'graphcredit[{extra}]'"
