"""Steps in memory as a batch, with the inputs that estimators need."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from graphcredit.credit.inputs.material import Opening
from graphcredit.credit.inputs.table import Input, open_inputs
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.store.parquet.er_graph import ErGraph


def assembled(
    table: pa.Table, inputs: Sequence[Input], er_graph: ErGraph | None = None, **options: Any
) -> Assembly:
    """Return the batch of a table, the first of its run."""
    opened = open_inputs(inputs, Opening(options={}, given={"mentions": er_graph}))
    provided = {name: provider.enter(None) for name, provider in opened.items()}
    return assemble(table, inputs=inputs, provided=provided, **options)
