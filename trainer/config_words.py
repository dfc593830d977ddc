"""What the words of a configuration meant when it was saved, in those of today.

Version 1, of files that name none: `correction = "sequence-*"` was the geometric mean of a
response's ratios. Version 2: that is `geometric-*`, and `sequence-*` is their product, as in TRL
and verl.
"""

from collections.abc import Mapping
from typing import Any

from graphcredit.store.errors import OptionError

VERSION_KEY = "options_version"
"""Key of a saved configuration, beside its options."""

VERSION = 2
"""Of the words of today, and of every configuration that a user writes."""

FIRST_VERSION = 1
"""Of a saved configuration that does not say."""

_FIRST_CALLED = {"geometric": "sequence", "sequence": "product"}
"""Levels of a correction, and what a hash takes them for: the names of version 1 where it had them,
so that what was made then is recognised; no name of then for what it did not have."""


def in_words_of_today(values: Mapping[str, Any], version: int = VERSION) -> dict[str, Any]:
    """Return the options of a training as they are called today, without the version.

    Args:
        values: Options by name; `VERSION_KEY` may say what words they are in.
        version: Of their words, where they do not say.

    Raises:
        OptionError: They are in the words of a version that is not known here.
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
    """Return what a correction is called where a configuration is hashed."""
    if correction is None:
        return None
    level, dash, limit = correction.partition("-")
    return f"{_FIRST_CALLED.get(level, level)}{dash}{limit}"


def renaming(asked: str | None, saved: str | None) -> str:
    """Return what to say of a correction that differs from a saved one, where it was renamed."""
    if (asked or "").startswith("sequence-") and (saved or "").startswith("geometric-"):
        return (
            " (what was sequence-* before is geometric-* now, the geometric mean of a response's "
            "ratios, and sequence-* is their product, as in TRL and verl: to go on as it was "
            f"begun, give {saved!r})"
        )
    return ""
