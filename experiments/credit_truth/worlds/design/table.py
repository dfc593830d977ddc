"""The worlds that estimators may be designed on. Adding one is a function and a row here."""

from collections.abc import Callable, Mapping

from experiments.credit_truth.world import World
from experiments.credit_truth.worlds.design.grids import crate, fog, lake, mirrors, road, slippery
from experiments.credit_truth.worlds.design.tasks import (
    blocks,
    farm,
    flat,
    letter,
    lever,
    pump,
    puzzle,
)

DESIGN_WORLDS: Mapping[str, Callable[[], World]] = {
    "lake": lake,
    "slippery": slippery,
    "crate": crate,
    "road": road,
    "fog": fog,
    "mirrors": mirrors,
    "puzzle": puzzle,
    "blocks": blocks,
    "flat": flat,
    "farm": farm,
    "pump": pump,
    "lever": lever,
    "letter": letter,
}
