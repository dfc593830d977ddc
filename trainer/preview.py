"""The preview of a training: its steps, its plan and its memory. Nothing is written."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from graphcredit.trainer.batching.plan import TrainingPlan
from graphcredit.trainer.card import training_memory
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import choose_device
from graphcredit.trainer.engine.opening import compute_dtype
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.output.directory import Output
from graphcredit.trainer.training import heed_signal, num_distinct_tokens, plan_training
from graphcredit.trainer.training_run import as_number, sources_of


def preview(config: TrainConfig, *, num_processes: int) -> dict[str, Any]:
    """Return the steps, the plan and the memory of a training, without the model's weights.

    Returns:
        JSON values: `steps`, `plan`, `passes`, `memory` (bytes of each process, with the `device`
        and the `dtype` that they are for) and `notices`.

    Raises:
        InputError: The data or the model cannot be used. What only the weights show is not found:
            a log of another policy, log-probabilities that cannot be reproduced.
    """
    config, plan, report = plan_training(config)
    report = heed_signal(config, plan, report)
    output = Output(config.out)
    shapes = load_shapes(config.model, config)
    # A GPU is planned for on a machine that has none, too.
    is_gpu = config.device == "cuda"
    device = torch.device("cuda") if is_gpu else choose_device(config.device)
    dtype = compute_dtype(config, device)
    memory = training_memory(config, plan, shapes, num_processes, dtype)
    return {
        "run_id": config.run,
        "iteration": as_number(config.iteration),
        "column": config.column,
        "out": str(output.root),
        "has_begun": output.has_begun(),
        "steps": {
            **report.as_json(),
            "num_images": int(plan.index.num_images.sum()),
            **sources_of(config, plan),
        },
        "plan": {
            **_of_plan(plan, num_processes),
            "num_processes": num_processes,
            "num_distinct_tokens": num_distinct_tokens(plan),
        },
        "passes": _passes(config, plan),
        "memory": {
            "device": device.type,
            "dtype": dtype,
            **asdict(memory),
            "on_device": memory.on_device,
            "on_cpu": memory.on_cpu,
        },
        "notices": report.notices,
    }


def _of_plan(plan: TrainingPlan, num_processes: int) -> dict[str, Any]:
    each = [plan.statistics(number, num_processes) for number in range(len(plan.updates))]
    return {
        "num_updates": len(plan.updates),
        "epochs": plan.epochs,
        "steps_per_update": max(map(len, plan.updates)),
        "num_micro_batches": sum(one.num_micro_batches for one in each),
        "num_dummies": sum(one.num_dummies for one in each),
        "num_tokens": plan.num_tokens(),
        "num_logged_tokens": sum(int(plan.index.length[u].sum()) for u in plan.updates),
        "num_response_tokens": sum(int(plan.index.response_length[u].sum()) for u in plan.updates),
        "fill": float(np.mean([one.fill for one in each])),
        "rank_imbalance": max(one.imbalance for one in each),
    }


def _passes(config: TrainConfig, plan: TrainingPlan) -> list[str]:
    """Return the passes before the first update: of which policy log-probabilities are computed."""
    start = ["start"] if config.takes_start_pass(len(plan.updates)) else []
    return [*start, *([config.reference] if config.reference else [])]
