"""Names that are like one that is not there, for errors that propose them."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 3


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question with the nearest names, or nothing; it begins with a blank.

    Names that contain the given one, or are contained in it, come first.
    """
    known = sorted(set(names))
    inside = [each for each in known if name and (name in each or each in name)]
    alike = get_close_matches(name, known, n=_MOST, cutoff=0.6)
    nearest = list(dict.fromkeys([*inside, *alike]))[:_MOST]
    return f" Did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""


def must_be_one_of(what: str, names: Iterable[str], got: str) -> str:
    """Return the sentence for a value that is none of some names, with the nearest."""
    known = tuple(names)
    nearest = did_you_mean(got, known)
    return f"{what} must be one of {', '.join(known)}: got {got!r}" + f".{nearest}" * bool(nearest)
