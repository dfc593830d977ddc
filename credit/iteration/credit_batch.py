"""One batch: from the steps that were read to every column and table that is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.table import (
    Estimator,
    NodeValue,
    all_estimators,
    options_as_made,
)
from graphcredit.credit.iteration.columns import scatter
from graphcredit.credit.iteration.credit_steps import credit_steps
from graphcredit.credit.iteration.graph_tables import edge_table, node_table
from graphcredit.credit.iteration.kept_columns import PreviousCredit
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import Merger
from graphcredit.credit.steps.arrays import Floats
from graphcredit.credit.steps.batches import Plan, ShardPart
from graphcredit.store.layout import Shard


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditedBatch:
    """The credit, the graph tables and the report of one batch."""

    columns: Mapping[str, NDArray[np.generic]]
    edges: pa.Table
    nodes: pa.Table
    report: CreditReport


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchWork:
    """One iteration, ready to be credited batch by batch, in any order and by any process."""

    shards: Sequence[Shard]
    plan: Plan
    previous: PreviousCredit
    settings: CreditSettings
    merger: Merger
    provided: Mapping[str, Any]
    """Input to what its provider gives for the iteration."""

    def credit_batch(self, number: int, pieces: Sequence[ShardPart]) -> CreditedBatch:
        """Build the graph of a batch, and compute every column and table."""
        table = pa.concat_tables([piece.steps for piece in pieces])
        credited = credit_steps(
            table, self.settings, merger=self.merger, provided=self.provided, number=number
        )
        assembly = credited.assembly
        kept = self.previous.read(self.shards, pieces)
        columns = credited.columns
        columns |= {name: values[assembly.steps.row] for name, values in kept.items()}
        return CreditedBatch(
            columns={name: scatter(assembly, values) for name, values in columns.items()},
            edges=edge_table(assembly, columns),
            nodes=node_table(assembly, self._node_values(assembly.batch)),
            report=credited.report,
        )

    def _node_values(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the node columns of the estimators whose columns are made or kept."""
        columns: dict[str, Floats] = {}
        for row in all_estimators().values():
            for value in row.node_values:
                if options := self._options(row, value):
                    columns[value.column] = value.of(options, batch)
        return columns

    def _options(self, row: Estimator, value: NodeValue) -> Any:
        """Return an estimator's options as its columns were or will be made; None without any."""
        asked_for = self.settings.estimators.get(row.name)
        made_by = self.previous.configuration.get(row.name, {})
        return asked_for or options_as_made(row, made_by, value.options)
