"""Many turns in one sequence: a mask, an advantage for each turn, and the gradient of the steps."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.batching.reader import BatchReader, read_prefix_order
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import StepIndex, read_index
from tests.trainer.indexes import index_of
from tests.trainer.logs import episode, token_store, turn
from tests.trainer.models import tiny_model
from tests.trainer.plain import packed

TURNS = {"a": [3, 2, 2], "b": [4], "c": [1, 3]}
"""Trajectory to the tokens of its answers; three tokens of the environment come before each."""


def index(root: Path) -> tuple[StepIndex, dict[str, list[tuple[int, int, float]]], dict[str, Any]]:
    """Return the steps, and of each trajectory its sequence and the spans of its answers."""
    random = np.random.default_rng(0)
    spans: dict[str, list[tuple[int, int, float]]] = {}
    sequences: dict[str, Any] = {}
    episodes = []
    for name, lengths in TURNS.items():
        ids: list[int] = []
        turns = []
        for number, length in enumerate(lengths):
            ids += random.integers(3, 90, 3 + length).tolist()
            start, advantage = len(ids) - length, float(number + 1 - 2.5 * (name == "c"))
            spans.setdefault(name, []).append((start, len(ids), advantage))
            turns.append(turn(ids[:start], ids[start:], advantage=advantage))
        sequences[name] = ids
        episodes.append(episode(name, *turns))
    store = token_store(root, episodes)
    kept, _ = read_index(
        [RunIteration(store, "r0", 0)], column="reach_advantage", filters=Filters(max_tokens=64)
    )
    return kept, spans, sequences


def plan_of(steps: StepIndex, **options: Any) -> TrainingPlan:
    common: dict[str, Any] = {"seed": 0, "epochs": 1, "batch_size": 6, "max_tokens": 64}
    return make_plan(steps, aggregation="token-mean", **{**common, **options})


def gradient(model: Any, loss: torch.Tensor) -> torch.Tensor:
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([slope.flatten() for slope in slopes])


def gradient_of_plan(model: Any, steps: StepIndex, plan: TrainingPlan) -> torch.Tensor:
    total = torch.zeros(())
    for micro in plan.micro_batches(0, 1)[0]:
        batch = BatchReader(steps).read(micro)
        logprob, _ = packed(model, batch, want_entropy=False)
        total = total - (torch.tensor(batch.weight * batch.advantage) * logprob).sum()
    return gradient(model, total)


def test_one_sequence_with_a_mask_has_the_gradient_of_the_separate_steps(tmp_path: Path):
    steps, spans, sequences = index(tmp_path / "s")
    together = plan_of(steps, prefixes=read_prefix_order(steps), whole_trajectories=True)
    assert together.statistics(0, 1).num_tokens == sum(map(len, sequences.values()))
    (micro,) = together.micro_batches(0, 1)[0]
    batch = BatchReader(steps).read(micro)
    assert batch.keys is None
    assert len(batch.cu_seqlens) == 1 + len(sequences)
    model = tiny_model()
    found = gradient_of_plan(model, steps, together)
    separate = gradient_of_plan(model, steps, plan_of(steps))
    # The sequences as TRL and verl train them: labels, a mask, an advantage for each token.
    model.set_attn_implementation("eager")
    num_tokens, total = sum(map(sum, TURNS.values())), torch.zeros(())
    for name, ids in sequences.items():
        advantage = torch.zeros(len(ids))
        for start, end, value in spans[name]:
            advantage[start:end] = value
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1].log_softmax(-1)
        logprob = logits.gather(1, torch.tensor(ids)[1:, None])[:, 0]
        total = total - (advantage[1:] * logprob).sum() / num_tokens
    expected = gradient(model, total)
    for each in (found, separate):
        assert float((each - expected).norm() / expected.norm()) < 1e-5


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=9),
    batch_size=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_a_trajectory_is_in_one_optimizer_step_of_each_epoch(
    lengths: list[int], batch_size: int, seed: int
):
    trajectory = np.repeat(np.arange(len(lengths)), lengths)
    steps = index_of([1] * len(trajectory), trajectory=trajectory.tolist())
    plan = plan_of(steps, batch_size=batch_size, seed=seed, epochs=2, whole_trajectories=True)
    num_updates = min(-(-len(trajectory) // batch_size), len(lengths))
    assert (len(plan.updates), plan.updates_per_epoch) == (2 * num_updates, num_updates)
    for epoch in (plan.updates[:num_updates], plan.updates[num_updates:]):
        assert sorted(np.concatenate(epoch)) == list(range(len(trajectory)))
        owners = [set(trajectory[update]) for update in epoch]
        assert sum(map(len, owners)) == len(lengths)
        assert all(owners)
