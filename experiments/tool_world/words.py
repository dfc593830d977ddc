"""The texts of the service: results as tools log them, and a user who words things anew.

What is said anew depends on all calls so far, so that a task played again says the same.
"""

import hashlib
import json
from random import Random
from typing import Any, cast

from experiments.tool_world.service import Order, Result, Service

_HELLO = ("Hello,", "Hi there,", "Good day,", "Hey,")
_ASK = {
    "cancel": ("please cancel the {}.", "I no longer want the {}.", "the {} can be cancelled."),
    "return": ("I want to send the {} back.", "please take the {} back.", "a return of the {}."),
    "address": (
        "the {} should go to {}.",
        "please send the {} to {} instead.",
        "I have moved: the {} goes to {} now.",
    ),
}
_THAT_IS_ALL = ("That is all.", "Nothing else, thanks.", "No, that was it.")


def varied(history: tuple[str, ...]) -> Random:
    """Return what decides the words after some calls."""
    return Random(hashlib.sha256("\n".join(history).encode()).digest())


def opening(service: Service) -> str:
    """Return the first message of the user."""
    random = varied((service.customer_id,))
    wish = _wish(service, service.wishes[0], random)
    return f"{random.choice(_HELLO)} I am {service.customer} ({service.email}). And {wish}"


def told(service: Service, num_told: int, is_new: bool, random: Random) -> str:
    """Return the answer of the user who is asked for more."""
    if not is_new:
        return random.choice(_THAT_IS_ALL)
    return f"{random.choice(('Yes,', 'Also,', 'One more thing:'))} " + _wish(
        service, service.wishes[num_told - 1], random
    )


def logged(result: Result, random: Random, num_calls: int) -> str:
    """Return a result as tools write it: with an id, a time, and its lists in any order."""
    stamps = {"request_id": f"req_{random.getrandbits(40):010x}"}
    stamps |= {"timestamp": f"2026-03-01T10:{num_calls % 60:02}:{random.randrange(60):02}Z"}
    return json.dumps(_shuffled(result | stamps, random))


def _wish(service: Service, order: Order, random: Random) -> str:
    assert order.wish is not None
    return random.choice(_ASK[order.wish]).format(order.item, service.streets[1])


def _shuffled(value: Any, random: Random) -> Any:
    if isinstance(value, dict):
        fields = [(k, _shuffled(v, random)) for k, v in cast("dict[str, Any]", value).items()]
        random.shuffle(fields)
        return dict(fields)
    if isinstance(value, list):
        parts = [_shuffled(part, random) for part in cast("list[Any]", value)]
        random.shuffle(parts)
        return parts
    return value
