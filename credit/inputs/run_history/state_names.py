"""The names of a batch's nodes in the run: what 3SPO counts under."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.inputs.run_history.counts import RunHistory
from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.merging.recognise import NAME_SCHEMA, Identify, lasting, recognise
from graphcredit.credit.steps.arrays import Ints, factorise
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import arrow_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The states of a batch, by name; two of its nodes may be one state of an earlier iteration."""

    of_node: Ints
    """[num_nodes] row of `table`."""
    table: pa.Table
    """[num_names] `recognise.NAME_SCHEMA`; `state` is null at goals."""

    @classmethod
    def after(
        cls,
        history: RunHistory,
        steps: Steps,
        nodes: Nodes,
        identify: Identify | None,
    ) -> "Names":
        """Name the nodes of a batch.

        Args:
            history: The iterations before.
            steps: The steps of the batch.
            nodes: Their nodes.
            identify: Returns what the nodes are recognised by; None where that is the text.
        """
        group = nodes.group_of_node
        first_step = np.unique(nodes.group_of_step, return_index=True)[1]
        task_ids = steps.task_texts.take(arrow_of(steps.task[first_step][group]))
        texts = steps.state_texts.take(arrow_of(nodes.text_of_node, is_null=nodes.text_of_node < 0))
        if identify is None:
            nulls = (pa.nulls(len(group), type_) for type_ in (pa.string(), pa.int64()))
            table = pa.table([task_ids, texts, *nulls], schema=NAME_SCHEMA)
            return cls(of_node=np.arange(len(group)), table=table)
        identified = identify()
        known = history.known(task_ids.unique())
        earlier = recognise(known, identified, group=group, task_ids=task_ids, first_texts=texts)
        own_row = known.num_rows + np.arange(len(group))
        of_node, entry = factorise(np.where(earlier >= 0, earlier, own_row))
        identities = pa.array(identified.texts, pa.string(), mask=texts.is_null().to_numpy(False))
        signatures = pa.nulls(len(group), pa.int64())
        new = pa.table([task_ids, texts, identities, signatures], schema=NAME_SCHEMA)
        table = pa.concat_tables([known, new]).take(arrow_of(entry))
        return cls(of_node=of_node, table=_signed(table, of_node, identified.signature))


def _signed(table: pa.Table, of_node: Ints, signature: Ints) -> pa.Table:
    """Return the names; one without a signature takes that of its nodes."""
    of_nodes = np.full(table.num_rows, UNKNOWN)
    np.maximum.at(of_nodes, of_node, signature)
    before = lasting(table)
    after = np.where(before == UNKNOWN, of_nodes, before)
    column = arrow_of(after, is_null=after == UNKNOWN)
    return table.set_column(table.num_columns - 1, "signature", column)
