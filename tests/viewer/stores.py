"""Stores to look at."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from tests.worlds import trajectory, worked_example, write_store

Rows: TypeAlias = Callable[[], list[dict[str, Any]]]
"""Makes the steps of a store."""

Shared: TypeAlias = Callable[..., Store]
"""Gives the store of some `Rows` with credit by the named estimators, graphgpo by default."""

HOSTILE = (
    "<script>alert(1)</script> ![x](https://example.org/x.png) [l](https://example.org) "
    ":material/home: $x^2$ \x1b[2J\x1b[31mred\u202egnp.exe" + "A" * 3000
)
"""Text that a page must neither obey nor fetch."""


def credited(
    root: Path,
    *shards: Iterable[dict[str, Any]],
    names: tuple[str, ...] = ("graphgpo",),
    run_id: str = "r0",
    iteration: int = 0,
) -> Store:
    """Write a store, or more of one, and assign credit to the iteration."""
    store = write_store(root, *shards, run_id=run_id, iteration=iteration)
    settings = CreditSettings(estimators=configure(names, ()))
    assign_credit(store, settings, run_id=run_id, iteration=iteration)
    return store


def two_tasks() -> list[dict[str, Any]]:
    """Return the worked example, and a task of two equal failures."""
    lost = [row for name in ("p", "q") for row in trajectory(name, "A a B a A", task_id="t1")]
    return [*worked_example(), *lost]


def hostile() -> list[dict[str, Any]]:
    """Return the worked example with text in every place that tries to be more than text."""
    return [
        {**row, "task_id": HOSTILE, "trajectory_id": row["trajectory_id"] + HOSTILE}
        | {name: row[name] + HOSTILE for name in ("state", "next_state", "action")}
        # A terminal's text is no Markdown; a thought without its codes is.
        | {"thought": HOSTILE.replace("\x1b[", ""), "observation": HOSTILE}
        for row in worked_example()
    ]


def corridors() -> list[dict[str, Any]]:
    """Return walks through two long corridors, of which one leads to the goal, and a door between.

    Room `left 9` has two ways out and room `right 9` has two ways in; all others have one.
    """
    left = [f"left {number}" for number in range(24)]
    right = [f"right {number}" for number in range(20)]
    return [
        *_walk("won", ["gate", *left, "won"], success=True),
        *_walk("lost", ["gate", *right, "pit"]),
        *_walk("across", ["gate", *left[:10], *right[9:], "pit"]),
    ]


def learned() -> list[dict[str, Any]]:
    """Return later walks through the same corridors: one finds a short cut, nobody goes right."""
    left = [f"left {number}" for number in range(24)]
    return [
        *_walk("short", ["gate", *left[:5], *left[20:], "won"], success=True),
        *_walk("won", ["gate", *left, "won"], success=True),
    ]


def house() -> list[dict[str, Any]]:
    """Return walks along a hall; four of them look around in a room of nine places beside it."""
    hall = [f"hall {number}" for number in range(8)]
    rows = _walk("won", [*hall, "won"], success=True)
    for number in (1, 3, 5, 7):
        inside = [f"room {number}, place {place}" for place in range(9)]
        ways = [*inside, *inside[-2::-2], inside[4], inside[0]]
        rows += _walk(f"lost in {number}", [*hall[: number + 1], *ways, hall[number]])
    return rows


def _walk(name: str, rooms: list[str], *, success: bool = False) -> list[dict[str, Any]]:
    path = [rooms[0]]
    for room in rooms[1:]:
        path += [f"to {room}", room]
    rewards = [0.0] * (len(rooms) - 2) + [float(success)]
    return trajectory(name, path, rewards=rewards, success=success)
