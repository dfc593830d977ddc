"""A collection by a language model, and what the trainer makes of its log-probabilities."""

from pathlib import Path
from typing import Any

import numpy as np

from graphcredit.collector.collection import CollectReport, collect
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.sampler_check import SamplerAgreement, measure_agreement

TASKS = ENVIRONMENTS["search"].list_tasks("2hop", num_tasks=2, seed=0)


def play(
    store: Path,
    policy: str,
    environments: Environments | None = None,
    on_progress: OnProgress = silent,
    **options: Any,
) -> CollectReport:
    """Play three trajectories of four steps of each task, in float32 as the trainer computes."""
    settings: dict[str, Any] = {
        "template": "tiny",
        "group_size": 3,
        "max_steps": 4,
        "max_new_tokens": 5,
    }
    settings |= {"workers": 0, "dtype": "float32"}
    return collect(
        store,
        TASKS,
        CollectOptions(policy=policy, **{**settings, **options}),
        environments=environments,
        on_progress=on_progress,
    )


def agreement(root: Path, model: str) -> SamplerAgreement:
    """Return how far the trainer's log-probabilities are from those in a sound store."""
    store = open_store(root)
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    assert check_store(store).violations == ()
    filters = Filters(max_tokens=2048)
    index, _ = read_index([RunIteration(store, "r0", 0)], column="grpo_advantage", filters=filters)
    config = TrainConfig(model=model, store=store.root, out=root.parent / "out", device="cpu")
    steps = np.arange(len(index.length))
    return measure_agreement(
        open_engine(model, config), BatchReader(index), index, steps, max_tokens=2048
    )
