"""One training from its last checkpoint to the saved policy."""

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphcredit.store.layout import Store
from graphcredit.store.progress import OnProgress
from graphcredit.trainer.batching.plan import TrainingPlan
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.step_index import IndexReport
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.frozen_logprobs import FrozenLogprobs, frozen_logprobs
from graphcredit.trainer.engine.kept import KeptEngines
from graphcredit.trainer.engine.optimizer_step import FrozenPolicies, Unchanged, Updater
from graphcredit.trainer.engine.sampler_check import check_agreement
from graphcredit.trainer.fingerprint import Identity
from graphcredit.trainer.loss.registry import configure_objective
from graphcredit.trainer.model.source import find_model, load_image_reader, tokenizer_notices
from graphcredit.trainer.output.checkpoint import (
    Progress,
    latest_checkpoint,
    newest_of_all,
    save_checkpoint,
)
from graphcredit.trainer.output.directory import Output
from graphcredit.trainer.output.metrics_log import TrainingLog, training_path

_SHOWN = ("loss", "kl", "entropy", "approx_kl", "grad_norm", "tokens_per_second", "mfu")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRun:
    """A training whose data is read and whose model is loaded."""

    config: TrainConfig
    output: Output
    engines: KeptEngines
    engine: TrainingEngine
    has_optimizer: bool
    """Whether the engine has the optimizer that an earlier training ended with."""
    plan: TrainingPlan
    report: IndexReport
    identity: Identity
    tell: Callable[[str], None]

    def run(self, on_progress: OnProgress) -> dict[str, Any]:
        """Train from the last checkpoint, if any, to the end, and save the policy."""
        config, engine = self.config, self.engine
        checkpoint, damaged = latest_checkpoint(engine, self.output.checkpoint_dir, self.identity)
        tokenizer = tokenizer_notices(find_model(config.model), engine.num_ids)
        self._notice([*self.report.notices, *tokenizer, *damaged])
        num_done = checkpoint.progress.update if checkpoint else 0
        engine.check_lengths(self.plan.index)
        engine.check_token_id(self.report.largest_token_id, self.report.largest_token_id_at)
        is_new = checkpoint is None and not self.has_optimizer
        if is_new and config.continue_from is not None:
            self._take_over_optimizer(Output(config.continue_from))
        reader = BatchReader(self.plan.index, images=load_image_reader(config.model))
        with closing(self._open_log(num_done)) as log:
            if checkpoint is None and self.plan.index.source.has_logprobs:
                self._notice(check_agreement(engine, reader, self.plan.index, config))
            objective = configure_objective(config.objective, config.objective_options)
            policies = self._frozen_policies(reader, on_progress)
            if checkpoint is not None:
                engine.load_state(checkpoint)
            updater = Updater(config, engine, self.plan, reader, objective, policies)
            self._learn(updater, num_done, log, on_progress)
        nothing = _why_nothing_was_learnt(log.rows)
        self._notice([] if nothing is None else [f"nothing was learnt: {nothing}"])
        on_progress("save the policy")
        engine.save_pretrained(self.output.model_dir, self.plan.index.source.chat_template)
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
            self.engine.load_optimizer(newest_of_all(self.engine, earlier.checkpoint_dir))

    def _notice(self, notices: Sequence[str]) -> None:
        """Report notices, and record them for the result."""
        if self.engine.rank == 0:
            for notice in notices:
                self.tell(notice)
                self.output.keep_notice(notice)

    def _learn(
        self, updater: Updater, num_done: int, log: TrainingLog, on_progress: OnProgress
    ) -> None:
        """Make the remaining updates."""
        total = len(self.plan.updates)
        newest: Mapping[str, Any] = {}

        def tell(done: float) -> None:
            on_progress("train", done, total, _note(newest))

        for number, newest in updater.run(num_done, tell):
            num_done = number + 1
            log.write(number, newest)
            tell(num_done)
            if num_done == total or num_done % self.config.checkpoint_every == 0:
                log.keep()
                save_checkpoint(
                    self.engine,
                    self.output.checkpoint_dir,
                    self.engine.state(),
                    Progress(update=num_done, identity=self.identity.as_json()),
                )

    def _frozen_policies(self, reader: BatchReader, on_progress: OnProgress) -> FrozenPolicies:
        """Return the frozen policies; the engine must still have its initial weights."""
        config = self.config
        start = self._start(reader, on_progress) if config.compares_with_start else None
        other = None
        if (name := config.reference) is not None:
            opened = partial(self.engines.reference, name, config)
            other = self._score("reference", opened, reader, on_progress)
            # Its modules refer to each other, and would keep its shards.
            gc.collect()
        return FrozenPolicies(
            old=None if config.bypasses else start,
            reference=(other or start) if config.kl_coefficient > 0 else None,
        )

    def _start(self, reader: BatchReader, on_progress: OnProgress) -> FrozenLogprobs | Unchanged:
        """Return the policy at the start. A single update needs no pass of its own for it."""
        if not self.config.takes_start_pass(len(self.plan.updates)):
            return Unchanged()
        return self._score("start", lambda: self.engine, reader, on_progress)

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

    def _open_log(self, num_done: int) -> TrainingLog:
        newest = self.plan.index.shards[-1]
        store = Store(newest.root)
        path = training_path(store, newest.run_id, newest.iteration, self.config.out)
        return TrainingLog(self.output, path, num_done, is_writing=self.engine.rank == 0)

    def _result(self, rows: Sequence[Mapping[str, Any]], nothing: str | None) -> dict[str, Any]:
        last = {name: rows[-1].get(name) for name in _SHOWN} if rows else {}
        return {
            "model": str(self.output.model_dir),
            "run_id": self.config.run,
            "iteration": as_number(self.config.iteration),
            "column": self.config.column,
            "num_updates": rows[-1]["update"] + 1 if rows else 0,
            **self.report.as_json(),
            **sources_of(self.config, self.plan),
            "staleness": {str(gap): count for gap, count in self.report.staleness.items()},
            "notices": self.output.notices(),
            "identity": self.identity.as_json(),
            "last": {name: value for name, value in last.items() if value is not None},
            **({} if nothing is None else {"nothing_learnt": nothing}),
        }


def as_number(text: str | None) -> int | str | None:
    """Return an iteration as a number, several as their text."""
    return int(text) if text and text.isdigit() else text


def sources_of(config: TrainConfig, plan: TrainingPlan) -> dict[str, str]:
    """Return where the tokens are from, and the log-probabilities that ratios are taken against."""
    source = plan.index.source
    ratios = "start" if config.compares_with_start else "none"
    return {
        "tokens": "log" if source.made is None else "messages",
        "logprobs": "log" if source.has_logprobs else ratios,
    }


def _why_nothing_was_learnt(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why the policy learnt nothing, or None if it learnt something.

    Even if all advantages are 0, a divergence or an entropy bonus may have changed the weights.
    """
    if not rows:
        return "no update was made"
    reasons = {
        ("advantage_zero", 1.0): "all advantages are 0",
        ("learning_rate", 0.0): "the learning rate was 0",
        ("correction_mean", 0.0): "the correction gave every token the weight 0",
        ("grad_norm", 0.0): "the gradient was 0 in every update",
    }
    return next(
        (why for (name, value), why in reasons.items() if all(r.get(name) == value for r in rows)),
        None,
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
