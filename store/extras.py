"""The command that installs an optional extra, for however this package was installed itself."""

import json
from importlib import metadata


def how_to_install(extra: str) -> str:
    """Return a command of pip that works from a clone, from a wheel, and from an index."""
    source = _source()
    place = str(source.get("url", ""))
    if source.get("dir_info", {}).get("editable"):
        return f"pip install -e '{place.removeprefix('file://')}[{extra}]'"
    if place:
        return f"pip install 'graphcredit[{extra}] @ {place}'"
    return f"pip install 'graphcredit[{extra}]'"


def _source() -> dict[str, dict[str, bool]]:
    """Return where pip says that the package came from (PEP 610); nothing if from an index."""
    try:
        return json.loads(metadata.distribution("graphcredit").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return {}
