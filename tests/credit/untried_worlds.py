"""A kitchen, a carrot and a hall: the world in which analogies are worked by hand."""

from typing import Any

from tests.worlds import trajectory

KITCHEN, CARROT, HALL = "a kitchen", "a kitchen carrot", "the hall"
POSSIBLE = {KITCHEN: ["east", "take", "look"], CARROT: ["east", "drop", "look"], HALL: ["win"]}
EVERYTHING = sorted({action for actions in POSSIBLE.values() for action in actions})


def example(*, success: bool = True, **columns: Any) -> list[dict[str, Any]]:
    """Return a win by the hall, and a failure that took the carrot and looked at it.

    KITCHEN and CARROT share 2 of 4 actions and 2 of 3 words: they are 1/3 alike.
    """
    to_hall = [KITCHEN, "east", HALL, "win", "won"] if success else [KITCHEN, "east", HALL]
    rows = [
        *trajectory("x", to_hall, success=success, **columns),
        *trajectory("y", [KITCHEN, "take", CARROT, "look", CARROT], **columns),
    ]
    return [row | {"admissible_actions": POSSIBLE[row["state"]]} for row in rows]
