"""Renamed values of options, so that a saved configuration keeps its meaning.

Version 1 (files without a version): `correction = "sequence-*"` was the geometric mean of a
response's ratios. Version 2: that is `geometric-*`, and `sequence-*` is their product, as in TRL
and verl.
"""

from collections.abc import Mapping
from typing import Any

from graphcredit.store.errors import OptionError

VERSION_KEY = "options_version"
"""Key of the version in a saved configuration."""

VERSION = 2
"""The present version, and that of every configuration that a user writes."""

FIRST_VERSION = 1
"""Version of a saved configuration without `VERSION_KEY`."""

_FIRST_CALLED = {"geometric": "sequence", "sequence": "product"}
"""Level of a correction to its name in fingerprints. It is the name of version 1, so that older
trainings are recognised. The product had no name in version 1 and gets a new one."""


def in_words_of_today(values: Mapping[str, Any], version: int = VERSION) -> dict[str, Any]:
    """Return the options of a training under their present names, without the version.

    Args:
        values: Options by name; `VERSION_KEY` may give their version.
        version: Version of the options without `VERSION_KEY`.

    Raises:
        OptionError: The version is unknown.
    """
    options = dict(values)
    found = options.pop(VERSION_KEY, version)
    if found not in range(FIRST_VERSION, VERSION + 1):
        raise OptionError(
            f"{VERSION_KEY} must be a whole number from {FIRST_VERSION} to {VERSION}: got "
            f"{found!r}. A newer version wrote this configuration, or nobody did: leave it out"
        )
    correction = options.get("correction")
    if found < VERSION and isinstance(correction, str):
        options["correction"] = correction.replace("sequence-", "geometric-")
    return options


def in_first_words(correction: Any) -> Any:
    """Return the name of a correction in fingerprints."""
    if correction is None:
        return None
    level, dash, limit = correction.partition("-")
    return f"{_FIRST_CALLED.get(level, level)}{dash}{limit}"


def renaming(asked: str | None, saved: str | None) -> str:
    """Return a hint if a correction differs from the saved one because of the renaming."""
    if (asked or "").startswith("sequence-") and (saved or "").startswith("geometric-"):
        return (
            " (what was sequence-* before is geometric-* now, the geometric mean of a response's "
            "ratios, and sequence-* is their product, as in TRL and verl: to go on as it was "
            f"begun, give {saved!r})"
        )
    return ""
