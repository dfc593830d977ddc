"""The names of things in ALFWorld: `Pen_bar__minus_00_dot_93…` is shown as `pen 2`."""

from collections import Counter
from collections.abc import Iterable

_PLACE = "_bar_"
"""What separates the parts of an id: the kind of thing, and where it stands."""


def shown_names(ids: Iterable[str]) -> dict[str, str]:
    """Return the shown name of each thing: its kind, and a number among the things of that kind.

    The numbers are those of ALFWorld: they count down in the order of the ids. A basin is a kind of
    its own: the one of a sink is called `sinkbasin`.

    Args:
        ids: Ids of all things of a game, in lower case. An id without a place is its own name.
    """
    kinds = {thing: _kind(thing) for thing in sorted(set(ids))}
    left = Counter(kind for kind in kinds.values() if kind is not None)
    names: dict[str, str] = {}
    for thing, kind in kinds.items():
        if kind is None:
            names[thing] = thing
        else:
            names[thing] = f"{kind} {left[kind]}"
            left[kind] -= 1
    return names


def _kind(thing: str) -> str | None:
    kind, placed, _ = thing.partition(_PLACE)
    if not placed:
        return None
    return f"{kind}basin" if "basin" in thing else kind
