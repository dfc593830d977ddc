"""Train a policy on the steps of an iteration, weighted by their credit."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store, open_store
from graphcredit.store.options import options_as_json
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import IndexReport, read_index
from graphcredit.trainer.engine.distributed import (
    choose_device,
    destroy_process_group,
    is_first_rank,
)
from graphcredit.trainer.engine.engine import TrainingEngine, compute_dtype, open_engine
from graphcredit.trainer.engine.frozen_logprobs import FrozenLogprobs, frozen_logprobs
from graphcredit.trainer.engine.optimizer_step import FrozenPolicies, Updater
from graphcredit.trainer.engine.sampler_check import check_agreement
from graphcredit.trainer.fingerprint import Identity, hash_model
from graphcredit.trainer.loss.importance import correction_of, formula
from graphcredit.trainer.loss.registry import configure_objective, objective_named
from graphcredit.trainer.model.loading import find_model, tokenizer_notices
from graphcredit.trainer.output.checkpoint import (
    Progress,
    latest_checkpoint,
    read_optimizer,
    save_checkpoint,
)
from graphcredit.trainer.output.directory import Output, effective_config, open_output
from graphcredit.trainer.output.learning_signal import why_nothing_was_learnt
from graphcredit.trainer.output.metrics_log import TrainingLog, training_path


def _unheard(notice: str) -> None:
    """Ignore a notice; it is in the result too."""


_SHOWN = ("loss", "kl", "entropy", "approx_kl", "grad_norm", "tokens_per_second", "mfu")


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
    config = _effective(config)
    store = open_store(config.store)
    run_id, iteration = which_iteration(store, config)
    config = config.changed(run=run_id, iteration=iteration)
    is_first = is_first_rank()
    on_progress = on_progress if is_first else silent
    on_progress("read the steps")
    index, report = read_index(
        store, run_id, iteration, column=config.column, filters=_filters(config)
    )
    plan = make_plan(
        index,
        seed=config.seed,
        epochs=config.epochs,
        batch_size=config.batch_size,
        max_tokens=config.max_tokens,
        aggregation=config.aggregation,
        response_length=config.response_length,
    )
    identity = _identity(config, plan)
    with open_output(config, is_first_rank=is_first) as output:
        result = output.result()
        if result is not None:
            identity.refuse_other(result["identity"], output.result_path)
        else:
            on_progress("load the model")
            training = _Training(
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


def _effective(config: TrainConfig) -> TrainConfig:
    """Return the configuration to save: absolute paths, all options of the objective, the run."""
    objective = configure_objective(config.objective, config.objective_options)
    config = config.resolved().changed(objective_options=options_as_json(objective))
    return effective_config(config)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Training:
    """A training whose data is read and whose model is loaded."""

    config: TrainConfig
    store: Store
    output: Output
    engine: TrainingEngine
    plan: TrainingPlan
    report: IndexReport
    identity: Identity
    may_restart: bool
    tell: Callable[[str], None]

    def run(self, on_progress: OnProgress) -> dict[str, Any]:
        """Train from the last checkpoint, if any, to the end, and save the policy."""
        config, engine = self.config, self.engine
        checkpoint, damaged = latest_checkpoint(
            self.output.checkpoint_dir, self.identity, may_restart=self.may_restart
        )
        self._notice([*self.report.notices, *_start_notices(config, engine), *damaged])
        num_done = checkpoint.progress.update if checkpoint else 0
        engine.check_lengths(self.plan.index)
        engine.check_token_id(self.report.largest_token_id, self.report.largest_token_id_at)
        if checkpoint is None and config.continue_from is not None:
            self._take_over_optimizer(Output(config.continue_from))
        reader = BatchReader(self.plan.index)
        with closing(self._open_log(num_done)) as log:
            if checkpoint is None and config.mismatch_sample:
                self._notice(check_agreement(engine, reader, self.plan.index, config))
            policies = self._frozen_policies(reader, on_progress)
            if checkpoint is not None:
                engine.load_state(checkpoint.read())
            objective = configure_objective(config.objective, config.objective_options)
            updater = Updater(config, config, engine, self.plan, reader, objective, policies)
            self._learn(updater, num_done, log, on_progress)
        nothing = why_nothing_was_learnt(log.rows)
        self._notice([] if nothing is None else [f"nothing was learnt: {nothing}"])
        on_progress("save the policy")
        engine.save_pretrained(self.output.model_dir, dtype=config.save_dtype)
        result = self._result(log.rows, nothing)
        if engine.rank == 0:
            self.output.write_result(result)
        return result

    def _take_over_optimizer(self, earlier: Output) -> None:
        """Load the optimizer state of an earlier training, unless adapters are trained."""
        if self.engine.has_adapter:
            self._notice(
                [
                    f"continue_from: the optimizer of {earlier.root} is not taken over: an adapter "
                    "begins with an optimizer of its own, since the one before is merged into the "
                    "model"
                ]
            )
        else:
            self.engine.load_optimizer(read_optimizer(earlier.checkpoint_dir))

    def _notice(self, notices: Sequence[str]) -> None:
        """Report notices, and record them for the result."""
        if self.engine.rank == 0:
            for notice in notices:
                self.tell(notice)
                self.output.keep_notice(notice)

    def _learn(
        self, updater: Updater, num_done: int, log: TrainingLog, on_progress: OnProgress
    ) -> None:
        """Make the remaining updates, and stop early where approx_kl exceeds target_kl."""
        total = len(self.plan.updates)
        newest: Mapping[str, Any] = {}

        def tell(done: float) -> None:
            on_progress("train", done, total, _note(newest))

        for number, newest in updater.run(num_done, tell):
            num_done = number + 1
            log.write(number, newest)
            tell(num_done)
            if num_done == total or num_done % self.config.checkpoint_every == 0:
                self._save_checkpoint(num_done, log)
        if updater.excess is not None:
            self._notice(
                [
                    f"target_kl: training stopped after {num_done} of {total} updates: the next "
                    f"one found approx_kl {updater.excess:.3g}, above {self.config.target_kl:g}"
                ]
            )
            self._save_checkpoint(num_done, log)

    def _frozen_policies(self, reader: BatchReader, on_progress: OnProgress) -> FrozenPolicies:
        """Return the frozen policies; the engine must still have its initial weights."""
        config = self.config
        wants_old = config.old_logprobs == "recomputed"
        wants_reference = config.kl_coefficient > 0
        start = other = None
        if wants_old or (wants_reference and config.reference is None):
            start = self._score("start", lambda: self.engine, reader, on_progress)
        if wants_reference and config.reference is not None:
            name = config.reference
            other = self._score(
                "reference", lambda: open_engine(name, config, frozen=True), reader, on_progress
            )
        return FrozenPolicies(
            old=start if wants_old else None,
            reference=(other or start) if wants_reference else None,
        )

    def _score(
        self,
        what: str,
        scorer: Callable[[], TrainingEngine],
        reader: BatchReader,
        on_progress: OnProgress,
    ) -> FrozenLogprobs:
        logprobs, notices = frozen_logprobs(
            self.output.logprob_dir / what,
            self.engine,
            self.identity,
            scorer,
            self.plan,
            reader,
            lambda share: on_progress(f"log-probabilities: {what}", share, 1),
        )
        self._notice(notices)
        return logprobs

    def _save_checkpoint(self, num_done: int, log: TrainingLog) -> None:
        log.keep()
        state = self.engine.state()
        if self.engine.rank == 0:
            progress = Progress(update=num_done, identity=self.identity.as_json())
            save_checkpoint(
                self.output.checkpoint_dir, state, progress, keep=self.config.keep_checkpoints
            )
        self.engine.barrier()

    def _open_log(self, num_done: int) -> TrainingLog:
        run_id, iteration = self.config.run or "", self.config.iteration or 0
        path = training_path(self.store, run_id, iteration, self.config.out)
        return TrainingLog(
            self.config, self.output, path, num_done, is_writing=self.engine.rank == 0
        )

    def _result(self, rows: Sequence[Mapping[str, Any]], nothing: str | None) -> dict[str, Any]:
        report = self.report
        last = {name: rows[-1].get(name) for name in _SHOWN} if rows else {}
        return {
            "model": str(self.output.model_dir),
            "run_id": self.config.run,
            "iteration": self.config.iteration,
            "column": self.config.column,
            "num_updates": rows[-1]["update"] + 1 if rows else 0,
            "num_steps": report.num_steps,
            "num_kept": report.num_kept,
            "dropped": {reason: count for reason, count in report.dropped.items() if count},
            "num_masked_tokens": report.num_masked_tokens,
            "advantage_mean": report.advantage_mean,
            "advantage_std": report.advantage_std,
            "advantage_zero_share": report.advantage_zero_share,
            "staleness": {str(gap): count for gap, count in report.staleness.items()},
            "notices": self.output.notices(),
            "identity": self.identity.as_json(),
            "last": {name: value for name, value in last.items() if value is not None},
            **({} if nothing is None else {"nothing_learnt": nothing}),
        }


def _start_notices(config: TrainConfig, engine: TrainingEngine) -> list[str]:
    """Return the notices of a training that follow from its options and its model."""
    meaning = formula(correction_of(config))
    return [
        *_chain_notices(config),
        *tokenizer_notices(find_model(config.model), engine.num_ids),
        *([] if meaning is None else [meaning]),
    ]


def _chain_notices(config: TrainConfig) -> list[str]:
    """Return a notice if saved weights are rounded within a chain of trainings."""
    if config.continue_from is None or config.save_dtype == "float32":
        return []
    return [
        f"save_dtype = {config.save_dtype} with continue_from: a training that starts from the "
        "saved weights finds them rounded to 8 binary digits, so that a change of less than about "
        "1/500 of a weight is lost between trainings. Save float32 as long as training goes on"
    ]


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


def _note(metrics: Mapping[str, Any]) -> str:
    """Return the newest metrics, in short."""
    shown = [
        f"{label} {metrics[name]:.3g}"
        for name, label in (
            ("loss", "loss"),
            ("grad_norm", "norm"),
            ("approx_kl", "kl"),
            ("tokens_per_second", "tokens/s"),
        )
        if metrics.get(name) is not None
    ]
    return " ".join(shown)
