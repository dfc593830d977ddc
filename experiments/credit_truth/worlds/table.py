"""The worlds by name. Adding one is a function and a row here."""

from collections.abc import Callable, Mapping
from functools import cache, partial

from experiments.credit_truth.world import World
from experiments.credit_truth.worlds.chance import ladder, lift, rabbit
from experiments.credit_truth.worlds.design_grids import crate, fog, lake, mirrors, road, slippery
from experiments.credit_truth.worlds.design_long import approach, inbox, pipeline, record, setup
from experiments.credit_truth.worlds.design_mixed import bugs, desk, shops
from experiments.credit_truth.worlds.design_tasks import (
    blocks,
    farm,
    flat,
    letter,
    lever,
    pump,
    puzzle,
)
from experiments.credit_truth.worlds.graded import basket, errands, program, quiz
from experiments.credit_truth.worlds.grids import cliff, maze, push, vault
from experiments.credit_truth.worlds.judging_long import (
    migration,
    refactor,
    release,
    research,
    ticket,
    voyage,
)
from experiments.credit_truth.worlds.judging_mixed import intakes, queries, trips
from experiments.credit_truth.worlds.service import service
from experiments.credit_truth.worlds.tasks import brew, office, safe, shop


def _by_name(*worlds: Callable[[], World]) -> Mapping[str, Callable[[], World]]:
    return {world.__name__: world for world in worlds}


WORLDS = _by_name(push, cliff, maze, vault, safe, brew, office, shop, rabbit, lift, ladder)
"""The worlds that judge."""

DESIGN_WORLDS = _by_name(
    *(lake, slippery, crate, road, fog, mirrors), *(puzzle, blocks, flat, farm, pump, lever, letter)
)
"""The worlds that estimators may be designed on."""

GRADED_WORLDS = _by_name(errands, program, quiz, basket)
"""Worlds for design whose episodes have scores."""

JUDGING_LONG = _by_name(migration, research, release, ticket, refactor, voyage)
"""Worlds of long ways that judge."""

JUDGING_MIXED = _by_name(queries, trips, intakes)
"""Batches of tasks of mixed difficulty that judge."""

DESIGN_LONG = _by_name(approach, record, setup, pipeline, inbox)
"""Worlds of long ways that estimators may be designed on."""

DESIGN_MIXED = _by_name(bugs, desk, shops)
"""Batches of tasks of mixed difficulty that estimators may be designed on."""


def _services(*specs: str) -> Mapping[str, Callable[[], World]]:
    return {spec: partial(service, spec) for spec in specs}


TOOL_WORLDS = _services("w1-s3", "w1-s8", "w2-s5", "w2-s6", "w2-s12", "w2-s16")
"""Tasks of the service with tools that judge."""

DESIGN_TOOL_WORLDS = _services("w1-s1", "w1-s2", "w2-s0", "w2-s2", "w2-s4")
"""Tasks of the service that rules for states may be designed on."""


@cache
def world_named(name: str) -> World:
    """Return a world, of those that judge or of those for design; it is enumerated once."""
    long = {**JUDGING_LONG, **DESIGN_LONG, **JUDGING_MIXED, **DESIGN_MIXED}
    graded = {**GRADED_WORLDS, **TOOL_WORLDS, **DESIGN_TOOL_WORLDS}
    return {**WORLDS, **DESIGN_WORLDS, **long, **graded}[name]()
