"""Training examples of behaviour cloning: the distinct pairs of prompt and response of a log.

A log has many equal steps. Two equal steps teach the same as one step that counts twice, so each
pair of prompt and response is kept once, with its count.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import read_steps
from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample, pack_samples
from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_columns import read_columns

_Key = tuple[bytes, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """n distinct pairs of a prompt and a response."""

    prompts: tuple[NDArray[np.int32], ...]
    """Token ids of each prompt."""
    responses: tuple[NDArray[np.int32], ...]
    """Token ids of each response."""
    count: Ints
    """[n] how many steps of the log have this pair."""

    @property
    def response_length(self) -> Ints:
        """[n] tokens of each response."""
        return np.array([len(ids) for ids in self.responses], np.int64)

    @property
    def length(self) -> Ints:
        """[n] tokens of prompt and response together."""
        return np.array([len(ids) for ids in self.prompts], np.int64) + self.response_length

    def chosen(self, numbers: Ints) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(
            prompts=tuple(self.prompts[n] for n in numbers),
            responses=tuple(self.responses[n] for n in numbers),
            count=self.count[numbers],
        )

    def packed(self, numbers: Ints, weight: Floats) -> PackedBatch:
        """Return some pairs as one packed batch, to be scored at temperature 1."""
        samples = [
            Sample(
                prompt=self.prompts[n],
                response=self.responses[n],
                logprob=np.zeros(len(self.responses[n]), np.float32),
                temperature=1.0,
            )
            for n in numbers.tolist()
        ]
        return pack_samples(samples, advantage=np.ones(len(numbers)), weight=weight, steps=numbers)


def read_pairs(store: Store, run_id: str) -> Pairs:
    """Return the distinct pairs of a run, in an order that does not depend on the recorders.

    Trajectories that a dead worker left without an end are skipped, because they were played again.

    Raises:
        InputError: No step of the run has token ids.
        SchemaError: A shard cannot be read.
    """
    counts = Counter(_keys(store, run_id))
    if not counts:
        raise InputError(
            f"complete trajectories of run {run_id!r} must have prompt_ids and response_ids: none "
            f"in {store.root} has. Record them with a policy that has a tokenizer, as tutor:PATH"
        )
    keys = sorted(counts)
    return Pairs(
        prompts=tuple(np.frombuffer(prompt, np.int32) for prompt, _ in keys),
        responses=tuple(np.frombuffer(answer, np.int32) for _, answer in keys),
        count=np.array([counts[key] for key in keys]),
    )


def held_out(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """Split pairs by prompt into those to learn from and those held out for validation.

    Raises:
        InputError: There are fewer than two prompts.
    """
    prompts = [ids.tobytes() for ids in pairs.prompts]
    distinct, prompt = np.unique(np.array(prompts, object), return_inverse=True)
    if len(distinct) < 2:
        raise InputError(
            "learning needs one prompt and validation another: the steps have one prompt in all. "
            "Record more of them"
        )
    number = min(max(1, round(share * len(distinct))), len(distinct) - 1)
    chosen = np.random.default_rng(seed).choice(len(distinct), number, replace=False)
    is_held_out = np.isin(prompt, chosen)
    return pairs.chosen(np.flatnonzero(~is_held_out)), pairs.chosen(np.flatnonzero(is_held_out))


def shuffled(pairs: Pairs, batch_size: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield batches of the log's steps without end, as distinct pairs with their counts.

    Every epoch draws each step at most once. It leaves out the last steps if they do not fill a
    batch.
    """
    random = np.random.default_rng(seed)
    steps = np.repeat(np.arange(len(pairs.count)), pairs.count)
    size = min(batch_size, len(steps))
    while True:
        order = random.permutation(steps)
        for start in range(0, len(order) - size + 1, size):
            yield np.unique(order[start : start + size], return_counts=True)


def _keys(store: Store, run_id: str) -> Iterator[_Key]:
    ended = {number: _ended(store, run_id, number) for number in store.iterations(run_id)}
    for shard in store.shards(run_id):
        for steps in read_columns(shard.path):
            prompt, response = steps.tokens.prompt, steps.tokens.response
            if steps.tokens.images is not None:
                raise InputError(
                    "a model is cloned from steps without images, because cloning reads tokens "
                    f"only: {steps.path} has images. Train on them with `graphcredit train`"
                )
            for row, trajectory in enumerate(steps.keys["trajectory_id"].to_pylist()):
                if (
                    trajectory in ended[shard.iteration]
                    and prompt.lengths[row]
                    and response.lengths[row]
                ):
                    yield prompt[row].tobytes(), response[row].tobytes()


def _ended(store: Store, run_id: str, iteration: int) -> set[str]:
    """Return the trajectories of an iteration that have an end."""
    columns = ["trajectory_id", "success"]
    tables = read_steps(store, columns=columns, run_id=run_id, iteration=iteration)
    last = (table.filter(table["success"].is_valid()) for table in tables)
    return {trajectory for table in last for trajectory in table["trajectory_id"].to_pylist()}
