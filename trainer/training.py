"""Train a policy on the steps of an iteration, weighted by their credit."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store, open_store
from graphcredit.store.options import options_as_json
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.batching.reader import read_prefix_order
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import IndexReport, read_index
from graphcredit.trainer.data.validation import signal_notices
from graphcredit.trainer.engine.distributed import (
    choose_device,
    destroy_process_group,
    is_first_rank,
)
from graphcredit.trainer.engine.nodes import require_common
from graphcredit.trainer.engine.opening import compute_dtype, join, open_engine
from graphcredit.trainer.fingerprint import Identity, hash_model
from graphcredit.trainer.loss.registry import configure_objective, objective_named
from graphcredit.trainer.model.context_check import check_context
from graphcredit.trainer.model.image_check import check_images
from graphcredit.trainer.model.source import find_model, load_experts
from graphcredit.trainer.output.directory import effective_config, open_output
from graphcredit.trainer.output.metrics_log import find_tracker
from graphcredit.trainer.training_run import TrainingRun


def _unheard(notice: str) -> None:
    """Ignore a notice; it is in the result too."""


def train(
    config: TrainConfig,
    *,
    restart: bool = False,
    on_progress: OnProgress = silent,
    on_notice: Callable[[str], None] = _unheard,
) -> dict[str, Any] | None:
    """Train a policy, or resume a training that was killed.

    Args:
        config: The options.
        restart: Start over if all checkpoints of an interrupted training are damaged.
        on_progress: Called for every pass and update.
        on_notice: Called with each warning as it is found.

    Returns:
        The summary that `result.json` holds; None on every rank but the first.

    Raises:
        InputError: The data, the model or the output directory cannot be used; nothing was
            trained.
        TrainingError: A gradient was not finite; the last checkpoint is kept. Or all checkpoints
            are damaged.
        MissingDependencyError: A tracker is not installed.
    """
    is_first = is_first_rank()
    on_progress = on_progress if is_first else silent
    on_progress("read the steps")
    config, store, plan, report = plan_training(config)
    identity = _identity(config, plan)
    with open_output(config, is_first_rank=is_first) as output:
        result = output.result()
        if result is not None:
            identity.refuse_other(result["identity"], output.result_path)
        else:
            report = heed_signal(config, plan, report)
            require_tracker(config)
            require_common(join(config), output.root, identity.as_json())
            on_progress("load the model")
            training = TrainingRun(
                config=config,
                store=store,
                output=output,
                engine=open_engine(config.model, config),
                plan=plan,
                report=report,
                identity=identity,
                may_restart=restart,
                tell=on_notice,
            )
            result = training.run(on_progress)
    # Not after an error: the other processes may never get here.
    destroy_process_group()
    return result if is_first else None


def plan_training(config: TrainConfig) -> tuple[TrainConfig, Store, TrainingPlan, IndexReport]:
    """Return the effective configuration, the store, the plan, and the counts of the steps.

    Raises:
        InputError: The steps or their credit cannot be used, or the model in this way.
    """
    config = _effective(config)
    other = config.reference if config.kl_coefficient else None
    check_context([config.model, *([other] if other else [])], config.context_parallel)
    store = open_store(config.store)
    run_id, iteration = which_iteration(store, config)
    index, report = read_index(
        store, run_id, iteration, column=config.column, filters=_filters(config)
    )
    check_images(
        index,
        config.model,
        other,
        shares_prefixes=config.share_prefixes,
    )
    plan = make_plan(
        index,
        seed=config.seed,
        epochs=config.epochs,
        batch_size=config.batch_size,
        max_tokens=config.max_tokens,
        aggregation=config.aggregation,
        response_length=config.response_length,
        prefixes=read_prefix_order(index) if config.share_prefixes else None,
    )
    return config.changed(run=run_id, iteration=iteration), store, plan, report


def heed_signal(config: TrainConfig, plan: TrainingPlan, report: IndexReport) -> IndexReport:
    """Return the report with a notice if all advantages are 0.

    Raises:
        NothingToTrainError: All are, and nothing else is learnt.
    """
    notices = signal_notices(
        plan.index.advantage, config.column, teaches_without=config.teaches_without_advantage
    )
    return replace(report, notices=(*report.notices, *notices))


def require_tracker(config: TrainConfig) -> None:
    """Raise MissingDependencyError if a tracker is asked for and not installed."""
    if config.tracker and is_first_rank():
        find_tracker(config.tracker)


def _effective(config: TrainConfig) -> TrainConfig:
    """Return the configuration to save: absolute paths, all options of the objective, the run."""
    objective = configure_objective(config.objective, config.objective_options)
    config = config.resolved().changed(objective_options=options_as_json(objective))
    return _with_router_loss(effective_config(config))


def _with_router_loss(config: TrainConfig) -> TrainConfig:
    """Return the configuration with the model's own weight of the balance of experts.

    Raises:
        InputError: A weight is given, and the model has no such loss.
    """
    experts = load_experts(config.model)
    coefficient = experts and experts.coefficient
    if config.router_loss and coefficient is None:
        raise InputError(
            "router_loss needs a mixture of experts whose configuration has router_aux_loss_coef: "
            f"{config.model} " + ("has other means" if experts else "has no experts")
        )
    return config if config.router_loss is not None else config.changed(router_loss=coefficient)


def _identity(config: TrainConfig, plan: TrainingPlan) -> Identity:
    options = config.decisive_text().encode()
    reference = config.reference if config.kl_coefficient else None
    return Identity(
        plan=plan.hash,
        configuration=hashlib.sha256(options).hexdigest(),
        model=hash_model(find_model(config.model)),
        reference=hash_model(find_model(reference)) if reference else "",
        arithmetic=compute_dtype(config, choose_device(config.device)),
    )


def which_iteration(store: Store, config: TrainConfig) -> tuple[str, int]:
    """Return the run and the iteration to train on; by default the only run, the newest iteration.

    Raises:
        InputError: There is no run, no iteration, or more than one run to choose from.
    """
    runs = store.runs()
    if config.run is None and len(runs) != 1:
        raise InputError(
            f"{store.root} has {len(runs)} runs ({', '.join(runs) or 'none'}): say which by --run"
        )
    run_id = config.run or runs[0]
    if config.iteration is not None:
        return run_id, config.iteration
    iterations = store.iterations(run_id)
    if not iterations:
        raise InputError(
            f"{store.root} has no steps of run {run_id!r}; its runs: {', '.join(runs) or 'none'}"
        )
    return run_id, iterations[-1]


def _filters(config: TrainConfig) -> Filters:
    uses_behaviour = (
        config.old_logprobs == "behaviour" and objective_named(config.objective).uses_old
    )
    return Filters(
        max_tokens=min(config.max_tokens, config.max_step_tokens or config.max_tokens),
        policy_version=config.policy_version,
        max_staleness=config.max_staleness,
        is_corrected=config.corrects != "none" or uses_behaviour,
        drop_zero_advantage=config.drops_zero_advantage,
        drop_degenerate_groups=config.drop_degenerate_groups,
        allow_truncated_sampling=config.allow_truncated_sampling,
        whiten_advantages=config.whiten_advantages,
        advantage_clip=config.advantage_clip,
    )
