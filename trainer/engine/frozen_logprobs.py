"""Log-probabilities under frozen policies: computed once before the first update, and cached.

The policy at the start is the denominator of the ratios; the reference policy is that of the KL
divergence. Each rank scores the micro-batches that it will train on, packed in the same way, so
that in exact arithmetic the first ratio is 1. Then every rank reads the results of all ranks.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.numbers import arrow_of, numpy_of
from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.batching.plan import TrainingPlan
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.data.ragged import Singles
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.fingerprint import Identity, describe

_COMPLETE = "complete.json"
_SCHEMA = pa.schema([("step", pa.int64()), ("logprobs", pa.list_(pa.float32()))])


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenLogprobs:
    """The log-probability of every response token under one frozen policy."""

    start: NDArray[np.int64]
    """[num_steps + 1] where each step's tokens begin in `values`."""
    values: Singles
    """[response tokens of all steps]"""

    def of_batch(self, batch: PackedBatch) -> Singles:
        """Return [R] values in the order of a batch's response tokens."""
        return np.concatenate([self.values[self.start[s] : self.start[s + 1]] for s in batch.steps])


def frozen_logprobs(
    directory: Path,
    process: Process,
    identity: Identity,
    open_scorer: Callable[[], TrainingEngine],
    plan: TrainingPlan,
    reader: BatchReader,
    on_progress: Callable[[float], None] = lambda share: None,
) -> tuple[FrozenLogprobs, list[str]]:
    """Return the log-probabilities under a policy, from the cache if it has them.

    Args:
        directory: The cache.
        process: This one among the ranks.
        identity: The training's fingerprint; log-probabilities of another one are not used.
        open_scorer: Returns an engine with the weights of the policy; called by all ranks if the
            cache cannot be used.
        plan: Its steps are scored.
        reader: Reads the micro-batches.
        on_progress: Called with the share that is done.

    Returns:
        The log-probabilities, and a notice if the cache could not be used.
    """
    fault = process.broadcast(_fault(directory, identity))
    if fault is not None:
        engine = open_scorer()
        table = _score(engine, plan, reader, on_progress)
        write_table(table, directory / _parts(process.world_size)[process.rank])
        process.barrier()
        if process.rank == 0:
            parts = {name: describe(directory / name) for name in _parts(process.world_size)}
            with atomic_path(directory / _COMPLETE) as temporary:
                text = json.dumps({"identity": identity.as_json(), "parts": parts}, indent=2)
                temporary.write_text(text + "\n", encoding="utf-8")
        process.barrier()
    return _load(directory, plan), [fault] if fault else []


def _parts(count: int) -> list[str]:
    return [f"part-{number}-of-{count}.parquet" for number in range(count)]


def _fault(directory: Path, identity: Identity) -> str | None:
    """Return why the cache cannot be used ("" if it does not exist), or None if it can."""
    if not (directory / _COMPLETE).exists():
        return ""
    try:
        complete = parse_json((directory / _COMPLETE).read_text(encoding="utf-8"))
        damaged = [n for n, was in complete["parts"].items() if describe(directory / n) != was]
        is_other = not identity.is_of(complete["identity"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{directory} cannot be read ({error}): its log-probabilities were computed again"
    if is_other:
        return f"{directory} is of another training: its log-probabilities were computed again"
    if damaged:
        return f"{directory / damaged[0]} is damaged: its log-probabilities were computed again"
    return None


def _score(
    engine: TrainingEngine,
    plan: TrainingPlan,
    reader: BatchReader,
    on_progress: Callable[[float], None],
) -> pa.Table:
    num_updates = min(plan.updates_per_epoch, len(plan.updates))
    mine = [plan.micro_batches(n, engine.world_size)[engine.rank] for n in range(num_updates)]
    micro_batches = [micro for update in mine for micro in update]
    steps: list[NDArray[np.int64]] = []
    lists: list[pa.Array] = []
    with engine.frozen():
        for number, batch in enumerate(reader.ahead(micro_batches)):
            logprobs = engine.score(batch).logprob.cpu().numpy()
            if not micro_batches[number].is_dummy:
                counts = np.bincount(batch.segment, minlength=len(batch.steps))
                offsets = arrow_of(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
                lists.append(pa.ListArray.from_arrays(offsets, arrow_of(logprobs)))
                steps.append(batch.steps)
            on_progress((number + 1) / len(micro_batches))
    if not steps:
        return _SCHEMA.empty_table()
    chunks = pa.chunked_array(lists, _SCHEMA.field("logprobs").type)
    return pa.table([arrow_of(np.concatenate(steps)), chunks], schema=_SCHEMA)


def _load(directory: Path, plan: TrainingPlan) -> FrozenLogprobs:
    complete = parse_json((directory / _COMPLETE).read_text(encoding="utf-8"))
    files = [pq.ParquetFile(directory / name) for name in complete["parts"]]
    table = pa.concat_tables(file.read() for file in files).sort_by("step")
    lengths = np.zeros_like(plan.index.response_length)  # of steps beyond --max-steps
    steps = numpy_of(table["step"])
    lengths[steps] = plan.index.response_length[steps]
    values = numpy_of(table["logprobs"].combine_chunks().flatten(), float("nan"))
    start = np.concatenate([[0], np.cumsum(lengths)])
    return FrozenLogprobs(start=start, values=values)
