"""Log-probabilities under frozen policies: computed once, before the first update, and kept.

They are the ratio's denominator (the policy as it was at the start) and the reference of the
divergence. Each rank scores the micro-batches it will train on, packed as it will pack them, so
that in exact arithmetic the first ratio is 1; then every rank reads what all of them found.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphcredit.store.atomic import atomic_path, write_table
from graphcredit.trainer.batches import BatchReader, PackedBatch
from graphcredit.trainer.engine import Engine
from graphcredit.trainer.plan import Plan

Floats32 = NDArray[np.float32]

_SCHEMA = pa.schema([("step", pa.int64()), ("logprobs", pa.list_(pa.float32()))])


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenLogprobs:
    """The log-probability of every response token under one frozen policy."""

    start: NDArray[np.int64]
    """[num_steps + 1] where each step's tokens begin in `values`."""
    values: Floats32
    """[response tokens of all steps]"""

    def of_batch(self, batch: PackedBatch) -> Floats32:
        """Return [R] values in the order of a batch's response tokens."""
        return np.concatenate([self.values[self.start[s] : self.start[s + 1]] for s in batch.steps])


def frozen_logprobs(
    directory: Path,
    open_scorer: Callable[[], Engine],
    plan: Plan,
    num_updates: int,
    reader: BatchReader,
    on_progress: Callable[[float], None] = lambda share: None,
) -> FrozenLogprobs:
    """Return the log-probabilities under a policy, from disk where they are.

    Args:
        directory: Where they are kept.
        open_scorer: Returns an engine with the weights of the policy; called where they are not on
            disk. All ranks take part.
        plan: Whose steps are scored.
        num_updates: Optimizer steps of its first epoch.
        reader: Reads the micro-batches.
        on_progress: Called with the share that is done.
    """
    if not _is_complete(directory, plan):
        engine = open_scorer()
        name = f"part-{engine.rank}-of-{engine.world_size}.parquet"
        write_table(_score(engine, plan, num_updates, reader, on_progress), directory / name)
        engine.barrier()
        if engine.rank == 0:
            with atomic_path(directory / "complete.json") as temporary:
                made_of = {"plan": plan.hash, "num_parts": engine.world_size}
                temporary.write_text(json.dumps(made_of), encoding="utf-8")
        engine.barrier()
    return _load(directory, plan)


def _is_complete(directory: Path, plan: Plan) -> bool:
    """Return whether a directory holds the log-probabilities of every step of a plan."""
    path = directory / "complete.json"
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["plan"] == plan.hash


def _score(
    engine: Engine,
    plan: Plan,
    num_updates: int,
    reader: BatchReader,
    on_progress: Callable[[float], None],
) -> pa.Table:
    mine = [plan.micro_batches(n, engine.world_size)[engine.rank] for n in range(num_updates)]
    micro_batches = [micro for update in mine for micro in update]
    steps: list[NDArray[np.int64]] = []
    lists: list[pa.Array] = []
    with engine.frozen():
        for number, batch in enumerate(reader.ahead(micro_batches)):
            logprobs = engine.score(batch).logprob.cpu().numpy()
            if not micro_batches[number].is_dummy:
                counts = np.bincount(batch.segment, minlength=len(batch.steps))
                offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
                lists.append(pa.ListArray.from_arrays(offsets, pa.array(logprobs)))
                steps.append(batch.steps)
            on_progress((number + 1) / len(micro_batches))
    if not steps:
        return _SCHEMA.empty_table()
    chunks = pa.chunked_array(lists, _SCHEMA.field("logprobs").type)
    return pa.table([pa.array(np.concatenate(steps)), chunks], schema=_SCHEMA)


def _load(directory: Path, plan: Plan) -> FrozenLogprobs:
    complete = json.loads((directory / "complete.json").read_text(encoding="utf-8"))
    count = complete["num_parts"]
    parts = [pq.read_table(directory / f"part-{n}-of-{count}.parquet") for n in range(count)]
    table = pa.concat_tables(parts).sort_by("step")
    lengths = plan.index.response_length
    values = table["logprobs"].combine_chunks().flatten().to_numpy()
    start = np.concatenate([[0], np.cumsum(lengths)])
    return FrozenLogprobs(start=start, values=values)
