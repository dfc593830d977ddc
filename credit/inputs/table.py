"""Inputs that only some estimators need. A new one is a folder, a row, a field of `StepBatch`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from graphcredit.credit.inputs.analogies.untried_actions import find_analogies
from graphcredit.credit.inputs.entities.mentions import Mentions, find_mentions
from graphcredit.credit.inputs.run_history.before import Past
from graphcredit.credit.merging.recognise import Identify
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.er_graph import ErGraph

Source: TypeAlias = Literal["read_past", "er_graph"]
"""A field of `InputSources`."""

ReadPast: TypeAlias = Callable[[pa.Table, Steps, Nodes, Identify | None], Past]
"""Returns the past of a batch: of its table, its steps, its nodes, and their identities."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSources:
    """Where inputs come from that the steps of a batch do not contain."""

    read_past: ReadPast | None = None
    """Returns what had happened in the run before."""
    er_graph: ErGraph | None = None
    """The entities and relations of the tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """A batch whose inputs are yet to be built."""

    table: pa.Table
    """The rows that the steps came from, with the columns that the inputs read."""
    steps: Steps
    """Complete trajectories."""
    nodes: Nodes
    """Nodes of their states."""
    identify: Identify | None
    """Returns what the nodes are recognised by in other iterations; None where that is the text."""
    sources: InputSources
    """Where the rest comes from."""

    def texts(self) -> pa.Array:
        """Return [num_nodes] what the text of each state says; null at a goal.

        It is the first text seen there. Where texts became one state, it is without what the merge
        took for noise.
        """
        text, is_goal = self.nodes.text_of_node, self.nodes.text_of_node < 0
        if self.identify is None or (self.nodes.num_texts <= 1).all():
            return self.steps.state_texts.take(pa.array(text, mask=is_goal))
        return pa.array(np.array(self.identify().texts, object), pa.string(), mask=is_goal)


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One row of the table."""

    name: str
    """Field of `StepBatch` that holds it."""
    reads: tuple[str, ...]
    """Step columns it is built of, beyond `complete.COLUMNS`."""
    build: Callable[[Material], Any]
    """Returns the value of the field."""
    source: Source | None = None
    """What it is built from besides the steps of the batch."""
    of_window: bool = False
    """Whether it is built of the steps of earlier iterations too, where the graph is."""


def _past(material: Material) -> Past:
    read_past = material.sources.read_past
    if read_past is None:
        raise InputError("the history of the run must be known: give read_past")
    return read_past(material.table, material.steps, material.nodes, material.identify)


def _mentions(material: Material) -> Mentions:
    er_graph = material.sources.er_graph
    if er_graph is None:
        raise InputError("the entities of each task must be known: give er_graph")
    return find_mentions(er_graph, material.steps, material.table["thought"])


INPUTS: tuple[Input, ...] = (
    Input(
        name="analogies",
        reads=("admissible_actions",),
        of_window=True,
        build=lambda material: find_analogies(
            material.steps,
            material.nodes,
            material.texts(),
            material.table["admissible_actions"],
            material.table["terminated"],
        ),
    ),
    Input(name="past", reads=("logged_at",), source="read_past", build=_past),
    Input(name="mentions", reads=("thought",), source="er_graph", build=_mentions),
)

INPUT_NAMED = {row.name: row for row in INPUTS}
