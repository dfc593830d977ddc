"""Train a policy on the steps of an iteration, weighted by their credit."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.options import options_as_json
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.batching.reader import BatchReader, read_prefix_order
from graphcredit.trainer.card import refuse_small_card
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.parts import chosen_parts, unmet
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import IndexReport, StepIndex, read_index
from graphcredit.trainer.data.validation import signal_notices
from graphcredit.trainer.engine.distributed import choose_device, is_first_rank
from graphcredit.trainer.engine.kept import KeptEngines
from graphcredit.trainer.engine.opening import compute_dtype
from graphcredit.trainer.fingerprint import Identity, hash_model
from graphcredit.trainer.loss.registry import configure_objective, objective_named
from graphcredit.trainer.messages.tokens import open_tokens
from graphcredit.trainer.model.source import find_model, load_image_reader
from graphcredit.trainer.model.vision import FAMILIES
from graphcredit.trainer.options import SFT
from graphcredit.trainer.output.directory import Output, effective_config, open_output
from graphcredit.trainer.training_run import TrainingRun

_MUCH = 1.5
"""Tokens for each distinct one from which a notice says what sends less."""

_AT_ONCE = 256
"""Steps whose images are in memory together."""


def _unheard(notice: str) -> None:
    """Ignore a notice; it is in the result too."""


def train(
    config: TrainConfig,
    *,
    on_progress: OnProgress = silent,
    on_notice: Callable[[str], None] = _unheard,
    kept: KeptEngines | None = None,
) -> dict[str, Any] | None:
    """Train a policy, or resume a training that was killed.

    Args:
        config: What to train, and how.
        on_progress: Called with what is done.
        on_notice: Called with oddities that do not stop it.
        kept: Engines of earlier trainings with the same options, in this process; by default the
            model is loaded, and nothing is kept.

    Returns:
        The summary that `result.json` holds; None on every rank but the first.

    Raises:
        InputError: The data, the model, the card or the output directory cannot be used; nothing
            was trained.
        TrainingError: A gradient was not finite; the last checkpoint is kept. Or all checkpoints
            are damaged.
        MissingDependencyError: TensorBoard is not installed.
    """
    is_first, engines = is_first_rank(), kept or KeptEngines(most=0)
    on_progress = on_progress if is_first else silent
    on_progress("read the steps")
    output = Output(config.out)
    if is_first:
        output.refuse_foreign()
    config, plan, report = plan_training(config, on_progress)
    identity = _identity(config, plan)
    with open_output(config, is_first_rank=is_first) as output:
        result = output.result()
        if result is not None:
            identity.refuse_other(result["identity"], output.result_path)
        else:
            report = heed_signal(config, plan, report)
            if not engines.goes_on(config):
                refuse_small_card(config, plan, choose_device(config.device))
            on_progress("load the model")
            engine, has_optimizer = engines.policy(config)
            training = TrainingRun(
                config=config,
                output=output,
                engines=engines,
                engine=engine,
                has_optimizer=has_optimizer,
                plan=plan,
                report=report,
                identity=identity,
                tell=on_notice,
            )
            result = training.run(on_progress)
            engines.keep(engine, config.out)
    if kept is None:  # not after an error: the other processes may never get here
        engines.close()
    return result if is_first else None


def plan_training(
    config: TrainConfig, on_progress: OnProgress = silent
) -> tuple[TrainConfig, TrainingPlan, IndexReport]:
    """Return the effective configuration, the plan, and the counts of the steps.

    The configuration has absolute paths, all options of the objective, the run and the iteration.
    Without log-probabilities of the sampler it has no correction.

    Raises:
        InputError: The steps or their credit cannot be used, or the model in this way.
    """
    objective = configure_objective(config.objective, config.objective_options)
    config = config.resolved().changed(objective_options=options_as_json(objective))
    config = effective_config(config)
    parts = chosen_parts(config)
    shards = [shard for part in parts for shard in part.shards()]
    source = open_tokens(shards, config.model, on_progress, template=config.chat_template)
    if not source.has_logprobs:
        config = _without_sampler(config)
    left_out = {path: rows for part in parts for path, rows in unmet(part, config.filter).items()}
    filters = replace(_filters(config), unmet=left_out)
    index, report = read_index(parts, column=config.column, filters=filters, source=source)
    if config.one_sequence is None:
        config = config.changed(one_sequence=source.appends and not index.has_images)
    instead = (
        "those of the model at the start stand for them"
        if config.compares_with_start
        else f"{config.objective} takes none"
    )
    lack = f"no step has log-probabilities of its sampler: {instead}, and there is no correction"
    without = () if source.has_logprobs else (lack,)
    report = replace(report, notices=(*source.notices, *without, *report.notices))
    _check_images(index, config)
    plan = make_plan(
        index,
        seed=config.seed,
        epochs=config.epochs,
        batch_size=config.batch_size,
        max_tokens=config.max_tokens,
        aggregation=config.aggregation,
        prefixes=read_prefix_order(index) if config.shares_prefixes else None,
        whole_trajectories=bool(config.one_sequence),
        max_steps=config.max_steps,
    )
    report = replace(report, notices=(*report.notices, *_sent(plan)))
    run_ids, numbers = ({str(part[n]): None for part in parts} for n in (1, 2))
    config = config.changed(run=",".join(run_ids), iteration=config.iteration or min(numbers))
    return config, plan, report


def _sent(plan: TrainingPlan) -> list[str]:
    """Return a notice of the tokens that go through the model: of messages, or if far too many."""
    num, distinct = plan.num_tokens(), num_distinct_tokens(plan)
    is_much = num > _MUCH * distinct and not plan.index.has_images
    if plan.index.source.made is None and not is_much:
        return []
    hint = "; --one-sequence and --share-prefixes send equal beginnings once" if is_much else ""
    return [f"{num:,} tokens go through the model, {distinct:,} of them distinct{hint}"]


def num_distinct_tokens(plan: TrainingPlan) -> int:
    """Return the tokens of all updates, those that steps of an update begin with in common once.

    Steps with images share none.
    """
    is_known = plan.shares_prefixes or plan.index.has_images
    order = plan.prefixes if is_known else read_prefix_order(plan.index)
    return sum(int(order.runs(steps).new.sum()) for steps in plan.updates)


def heed_signal(config: TrainConfig, plan: TrainingPlan, report: IndexReport) -> IndexReport:
    """Return the report with a notice if all advantages are 0.

    Raises:
        NothingToTrainError: All are, and nothing else is learnt.
    """
    notices = signal_notices(
        plan.index.advantage, config.column, teaches_without=config.teaches_without_advantage
    )
    return replace(report, notices=(*report.notices, *notices))


def _identity(config: TrainConfig, plan: TrainingPlan) -> Identity:
    options = config.decisive_text().encode()
    reference = config.reference
    return Identity(
        plan=plan.hash,
        configuration=hashlib.sha256(options).hexdigest(),
        model=hash_model(find_model(config.model)),
        reference=hash_model(find_model(reference)) if reference else "",
        arithmetic=compute_dtype(config, choose_device(config.device)),
    )


def _without_sampler(config: TrainConfig) -> TrainConfig:
    """Return a configuration that takes no log-probabilities of the sampler.

    Raises:
        OptionError: It takes ratios to them and nothing else.
    """
    if config.bypasses:
        raise OptionError(
            "correction bypass takes ratios to the log-probabilities of the sampler, but no step "
            "of the log has any: leave --correction out, and ratios are to the model at the start"
        )
    return config.changed(correction="none")


def _filters(config: TrainConfig) -> Filters:
    return Filters(
        max_tokens=config.max_tokens,
        max_staleness=config.max_staleness,
        is_corrected=config.correction not in ("none", "bypass")
        or (config.bypasses and objective_named(config.objective).uses_old),
        drop_zero_advantage=config.drops_zero_advantage,
        drop_negative_advantage=config.objective == SFT,
    )


def _check_images(index: StepIndex, config: TrainConfig) -> None:
    """Check the images of all steps, and those that their tokens ask for, before a model is loaded.

    Raises:
        InputError: A model is blind to them, prefixes are shared, an image cannot be read, or the
            tokens of a step do not fit its images.
        MissingDependencyError: There are images, and Pillow is not installed.
    """
    if index.has_images:
        _refuse_blind(index, config.model)
        if config.reference is not None:
            _refuse_blind(index, config.reference)
        if config.shares_prefixes:
            raise InputError(
                "steps with images share no prefixes, because equal tokens may stand for different "
                "images: train without share_prefixes and one_sequence"
            )
    images = load_image_reader(config.model)
    if images is None:
        return
    reader = BatchReader(index)
    for steps in np.array_split(np.arange(len(index)), -(-len(index) // _AT_ONCE)):
        for step, sample in zip(steps.tolist(), reader.samples(steps), strict=True):
            images.check(sample, index.where(step))


def _refuse_blind(index: StepIndex, name: str) -> None:
    if load_image_reader(name) is None:
        raise InputError(
            "steps with images are trained on with a vision-language model of the families "
            f"{', '.join(sorted(FAMILIES))}: {int((index.num_images > 0).sum())} of {len(index)} "
            f"steps have images, and {name} is of another family"
        )
