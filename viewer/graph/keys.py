"""Keys of states and transitions in a drawing, and in the address of a page."""

from graphcredit.viewer.graph.shading import Ends


def node_key(state_id: int) -> str:
    """Return the key of a state in the drawing."""
    return f"n{state_id}"


def edge_key(ends: Ends) -> str:
    """Return the key of a transition in the drawing."""
    return f"e{ends[0]}-{ends[1]}"


def fold_key(first: int) -> str:
    """Return the key of a closed fold, by its first state; it is no state and no transition."""
    return f"c{first}"


def parse_key(key: str) -> int | Ends | None:
    """Return the state, or the ends of the transition, of a key; None if the key is invalid."""
    numbers = key[1:].split("-")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    match key[:1], [int(number) for number in numbers]:
        case "n", [state_id]:
            return state_id
        case "e", [source, target]:
            return source, target
        case _:
            return None
