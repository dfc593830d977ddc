"""The worlds that judge. Adding one is a function and a row here."""

from collections.abc import Callable, Mapping
from functools import cache

from experiments.credit_truth.world import World
from experiments.credit_truth.worlds.chance import ladder, lift, rabbit
from experiments.credit_truth.worlds.design.table import DESIGN_WORLDS
from experiments.credit_truth.worlds.grids import cliff, maze, push, vault
from experiments.credit_truth.worlds.tasks import brew, office, safe, shop

WORLDS: Mapping[str, Callable[[], World]] = {
    "push": push,
    "cliff": cliff,
    "maze": maze,
    "vault": vault,
    "safe": safe,
    "brew": brew,
    "office": office,
    "shop": shop,
    "rabbit": rabbit,
    "lift": lift,
    "ladder": ladder,
}


@cache
def world_named(name: str) -> World:
    """Return a world, of those that judge or of those for design; it is enumerated once."""
    return {**WORLDS, **DESIGN_WORLDS}[name]()
