"""Inputs that only some estimators need. A new one is a folder and a row; see `StepBatch.input`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphcredit.credit.inputs.analogies.untried_actions import find_analogies
from graphcredit.credit.inputs.entities.mentions import find_mentions
from graphcredit.credit.inputs.material import Constant, InputProvider, Material, Opening
from graphcredit.credit.inputs.run_history.timeline import open_history
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One row of the table."""

    name: str
    """What `StepBatch.input` calls it."""
    reads: tuple[str, ...]
    """Step columns it is built of, beyond `complete.COLUMNS`."""
    build: Callable[[Material], Any]
    """Returns it."""
    sources: tuple[str, ...] = ()
    """What it is built of besides the steps of the iteration, rows of `store/provenance`'s
    `SOURCES`: when one of them changes, the credit is stale."""
    open: Callable[[Opening], InputProvider] | None = None
    """Opens what the batches do not contain."""


def _open_entities(opening: Opening) -> InputProvider:
    if opening.stored is not None:
        return Constant(value=opening.stored.sources.er_graph)
    if opening.given.get("mentions") is None:
        raise InputError("the entities of each task must be known: give er_graph")
    return Constant(value=opening.given["mentions"])


ANALOGIES = Input(
    name="analogies",
    reads=("admissible_actions",),
    build=lambda material: find_analogies(
        material.steps,
        material.nodes,
        material.texts(),
        material.table["admissible_actions"],
        material.table["terminated"],
    ),
)
PAST = Input(
    name="past",
    reads=("logged_at",),
    sources=("earlier",),
    open=open_history,
    build=lambda material: material.provided["past"].of_batch(material),
)
MENTIONS = Input(
    name="mentions",
    reads=("thought",),
    sources=("entities",),
    open=_open_entities,
    build=lambda material: find_mentions(
        material.provided["mentions"], material.steps, material.table["thought"]
    ),
)


def open_inputs(inputs: Iterable[Input], opening: Opening) -> dict[str, InputProvider]:
    """Open what inputs are built of for a run; those that need nothing are left out.

    Raises:
        InputError: It is not there.
    """
    return {row.name: row.open(opening) for row in inputs if row.open is not None}
