"""What a training would do: its steps, its plan, its memory and its metrics. Nothing is written."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from graphcredit.trainer.batching.plan import TrainingPlan
from graphcredit.trainer.batching.reader import read_prefix_order
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.context_group import num_data_processes
from graphcredit.trainer.engine.distributed import choose_device
from graphcredit.trainer.engine.opening import compute_dtype, computes_in_shards
from graphcredit.trainer.engine.sharded_loading import whole_notices
from graphcredit.trainer.engine.sharded_tensors import FILE_BYTES
from graphcredit.trainer.engine.sharding import shards_of_each
from graphcredit.trainer.loss.importance import correction_of
from graphcredit.trainer.loss.inputs import TokenInputs
from graphcredit.trainer.loss.masks import masks_of
from graphcredit.trainer.loss.policy_loss import averages, policy_loss
from graphcredit.trainer.loss.registry import configure_objective
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.memory import MemoryEstimate, estimate_memory
from graphcredit.trainer.model.source import find_model
from graphcredit.trainer.output.directory import Output
from graphcredit.trainer.output.metrics_log import training_path
from graphcredit.trainer.training import heed_signal, plan_training, require_tracker


def preview(config: TrainConfig, *, num_processes: int) -> dict[str, Any]:
    """Return what `train` would do with a configuration, without the model's weights.

    Args:
        config: The options.
        num_processes: Processes that would share the training.

    Returns:
        JSON values: `steps`, `plan`, `passes`, `memory` (bytes of each process), `metrics`,
        `destinations` and `notices`.

    Raises:
        InputError: The data or the model cannot be used. What only the weights show is not found:
            a log of another policy, log-probabilities that cannot be reproduced.
        MissingDependencyError: A tracker is not installed.
    """
    config, store, plan, report = plan_training(config)
    report = heed_signal(config, plan, report)
    require_tracker(config)
    output = Output(config.out)
    watchers = [str(output.root / "tensorboard")] if config.tensorboard else []
    shapes = load_shapes(config.model, config)
    memory = _memory(config, plan, shapes, num_processes)
    path = training_path(store, config.run or "", config.iteration or 0, config.out)
    return {
        "run_id": config.run,
        "iteration": config.iteration,
        "column": config.column,
        "out": str(output.root),
        "has_begun": output.has_begun(),
        "steps": {
            "num_steps": report.num_steps,
            "num_kept": report.num_kept,
            "dropped": {why: count for why, count in report.dropped.items() if count},
            "num_masked_tokens": report.num_masked_tokens,
            "num_images": int(plan.index.num_images.sum()),
            "advantage_mean": report.advantage_mean,
            "advantage_std": report.advantage_std,
            "advantage_zero_share": report.advantage_zero_share,
        },
        "plan": {
            **_of_plan(plan, num_data_processes(config, num_processes)),
            "num_processes": num_processes,
            "context_parallel": config.context_parallel,
            "num_distinct_tokens": _num_distinct_tokens(config, plan),
        },
        "passes": _passes(config, plan),
        "memory": {**asdict(memory), "on_device": memory.on_device, "on_cpu": memory.on_cpu},
        "metrics": _metric_names(config),
        "destinations": [
            str(output.metrics_path),
            str(path),
            *watchers,
            *([config.tracker] if config.tracker else []),
        ],
        "notices": [*report.notices, *_loading_notices(config, shapes, num_processes)],
    }


def _of_plan(plan: TrainingPlan, data_size: int) -> dict[str, Any]:
    each = [plan.statistics(number, data_size) for number in range(len(plan.updates))]
    return {
        "num_updates": len(plan.updates),
        "epochs": plan.epochs,
        "steps_per_update": max(map(len, plan.updates)),
        "num_micro_batches": sum(found.num_micro_batches for found in each),
        "num_dummies": sum(found.num_dummies for found in each),
        "num_tokens": sum(found.num_tokens for found in each),
        "num_logged_tokens": plan.epochs * int(plan.index.length.sum()),
        "num_response_tokens": plan.epochs * int(plan.index.response_length.sum()),
        "fill": float(np.mean([found.fill for found in each])),
        "rank_imbalance": max(found.imbalance for found in each),
    }


def _num_distinct_tokens(config: TrainConfig, plan: TrainingPlan) -> int:
    """Return the tokens of all updates, those that steps of an update begin with in common once.

    Steps with images share none.
    """
    is_known = config.share_prefixes or plan.index.has_images
    order = plan.prefixes if is_known else read_prefix_order(plan.index)
    return sum(int(order.runs(steps).new.sum()) for steps in plan.updates)


def _passes(config: TrainConfig, plan: TrainingPlan) -> list[str]:
    """Return the passes before the first update: of which policy log-probabilities are computed."""
    start = ["start"] if config.takes_start_pass(len(plan.updates)) else []
    return [*start, *([config.reference] if config.reference else [])]


def _loading_notices(config: TrainConfig, shapes: Scorer, num_processes: int) -> list[str]:
    is_sharded = num_processes > 1 or computes_in_shards(config, choose_device(config.device))
    return whole_notices(find_model(config.model), shapes.causal_lm) if is_sharded else []


def _memory(
    config: TrainConfig, plan: TrainingPlan, shapes: Scorer, num_processes: int
) -> MemoryEstimate:
    data_size = num_data_processes(config, num_processes)
    most = max(len(plan.micro_batches(number, data_size)[0]) for number in range(len(plan.updates)))
    return estimate_memory(
        shapes,
        plan.sizes(),
        num_processes=num_processes,
        num_shards=shards_of_each(config, num_processes),
        dtype=compute_dtype(config, choose_device(config.device)),
        moments=config.moments,
        sums_gradients=most > 1 and config.reduce_gradients == "update",
        offloads=config.offload,
        in_background=config.background_checkpoints,
        file_bytes=FILE_BYTES,
        reference=load_shapes(config.reference, config.changed(lora_rank=0))
        if config.reference
        else None,
        has_images=plan.index.has_images,
        context_size=config.context_parallel,
    )


def _metric_names(config: TrainConfig) -> list[str]:
    """Return the metrics of the loss: those of a token that nothing has changed."""
    one = torch.zeros(1)
    loss = policy_loss(
        TokenInputs(
            logprob=one,
            old=one,
            behaviour=one,
            start=one,
            reference=one if config.kl_coefficient else None,
            advantage=one,
            weight=one + 1,
            is_scored=torch.ones(1, dtype=torch.bool),
            segment=torch.zeros(1, dtype=torch.int64),
            num_segments=1,
            entropy=one,
        ),
        objective=configure_objective(config.objective, config.objective_options),
        correction=correction_of(config),
        masks=masks_of(config),
        kl_coefficient=config.kl_coefficient,
        kl_estimator=config.kl_estimator,
        entropy_coefficient=config.entropy_coefficient,
        router_loss=one.sum() if config.router_loss else None,
    )
    sums: Mapping[str, float] = {name: float(value) for name, value in loss.sums.items()}
    return [*averages(sums), *loss.maxima]
