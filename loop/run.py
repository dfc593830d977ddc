"""The stages of a loop, in their order; each does only what is left to do.

Iteration n plays policy n and makes policy n + 1. Its stages call what the commands call, with the
same arguments, so they may as well be typed by hand. A stage that was killed is called again and
goes on by itself; the line of an iteration is written last, and an iteration that has a line is
passed over.
"""

import json
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.loop.advice import what_to_do
from graphcredit.loop.config import LoopConfig
from graphcredit.loop.layout import Loop, link
from graphcredit.loop.open import open_loop
from graphcredit.loop.summary import Summary, summarise
from graphcredit.store.errors import InputError, NothingToTrainError, RecorderError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_path, remove_directory

if TYPE_CHECKING:
    from graphcredit.collector.environments.base import Task
    from graphcredit.collector.environments.prefix_cache import Environments
    from graphcredit.credit.iteration.report import CreditReport

Line = dict[str, Any]
"""What an iteration came to. Names that end in `_seconds` are how long its stages took; only
`cpu_seconds` is how long this process was at work, on all its threads, without the evaluation."""

OnProgress = Callable[[str, float, int], None]
"""Told what is being done, how much of it is done, and of how much; 0 where that is not known."""

OnNotice = Callable[[str], None]
"""Told what is odd but no reason to stop, and of which iteration and stage it is."""

_RESULT = ("num_updates", "num_kept", "dropped", "not_trained", "nothing_learnt")
"""What a line has of a training's result, by the same names. No key is there where no step was
dropped: lines are read as tables, whose columns must have fields."""

_SHOWN = ("entropy", "kl", "grad_norm")
"""Metrics of a training's last optimizer step that a line has."""

_PLAIN: Mapping[str, Any] = {"allocation": None, "resample_degenerate": 0, "oracle": False}
"""Options of a collection that only evaluates."""

_NOT_MODEL = ("checkpoints", "logprobs")
"""What is let go once the next policy is there; it is several times the size of a model."""


def run_loop(
    config: LoopConfig,
    *,
    environments: "Environments | None" = None,
    on_progress: OnProgress = lambda what, done, total: None,
    on_notice: OnNotice = lambda notice: None,
) -> Generator[Line]:
    """Run a loop, or go on with one that was interrupted; yield the line of each iteration.

    Lines that are there already are yielded first.

    Args:
        config: What to do.
        environments: Where to play if this process plays: what other loops saw in them need not be
            seen again. The caller closes them.
        on_progress: Told how far each stage is.
        on_notice: Told what the stages notice; what one iteration after the other would say in the
            same words is told of the first.

    Raises:
        InputError: What is there is of another loop or is run by another process, or a stage
            refuses what it is given.
        RecorderError: A worker died.
        TrainingError: A gradient was not finite.
        MissingDependencyError: A library that is needed is not installed.
    """
    from graphcredit.collector.environments.prefix_cache import Environments

    path = config.out / "loop.jsonl"
    own = closing(Environments()) if environments is None else nullcontext(environments)
    with open_loop(config) as loop, own as known:
        lines = _read_lines(path, loop.num_updates)
        yield from lines
        num_lines = loop.num_updates + loop.is_evaluated(loop.num_updates)
        stages = _Stages(
            loop=loop, environments=known, on_progress=on_progress, on_notice=on_notice
        )
        if len(lines) < num_lines:
            _check_policy(loop, len(lines))
        for number in range(len(lines), num_lines):
            lines.append(_iterate(stages, number, lines[-1]["env_steps"] if lines else 0))
            with atomic_path(path) as temporary:
                text = "".join(json.dumps(line) + "\n" for line in lines)
                temporary.write_text(text, encoding="utf-8")
            yield lines[-1]


def _read_lines(path: Path, num_updates: int) -> list[Line]:
    """Return the lines there are; that of a last policy does not count if it is to be trained."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if "train_seconds" in line or line["iteration"] >= num_updates]


def _check_policy(loop: Loop, number: int) -> None:
    """Raise InputError where the policy of the next iteration is gone."""
    model = loop.policy_dir(number) / "model"
    if not model.is_dir():
        raise InputError(
            f"iteration {number} must begin with {model}, which the one before it made: found "
            "none. Put it back, or name another `out`"
        )


def _iterate(stages: "_Stages", number: int, num_before: int) -> Line:
    """Return the line of an iteration, or of the last policy, from which nothing is learnt."""
    loop = stages.loop
    line: Line = {"iteration": number, "env_steps": num_before}
    if loop.is_evaluated(number):
        with _timed(line, "evaluate"):
            line |= stages.evaluate(number)
    if number == loop.num_updates:
        return line
    started = time.process_time()
    with _timed(line, "collect"):
        summary = stages.collect(number)
    with _timed(line, "credit"):
        credit = stages.assign_credit(number)
    with _timed(line, "train"):
        result = stages.train(number)
        stages.let_go(number)
    if "nothing_learnt" in result:
        stages.advise(number, summary, credit)
    line["env_steps"] += summary.num_env_steps
    return {
        **line,
        "success_rate": summary.success_rate,
        "mean_return": summary.mean_return,
        "mean_length": summary.mean_length,
        "valid_share": summary.valid_share,
        "num_groups": credit.num_groups,
        "num_degenerate_groups": credit.num_degenerate_groups,
        **{name: result[name] for name in _RESULT if result.get(name, {}) != {}},
        **{name: result.get("last", {}).get(name) for name in _SHOWN},
        "cpu_seconds": round(time.process_time() - started, 3),
    }


@contextmanager
def _timed(line: Line, stage: str) -> Generator[None]:
    started = time.perf_counter()
    yield
    line[f"{stage}_seconds"] = round(time.perf_counter() - started, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stages:
    """What is done in an iteration."""

    loop: Loop
    environments: "Environments"
    """What was seen in them is known to later iterations too, if this process plays."""
    on_progress: OnProgress
    on_notice: OnNotice
    told: set[str] = field(default_factory=set[str])
    """What was noticed since the loop was started."""

    def collect(self, iteration: int) -> Summary:
        """Play what is learnt from."""
        run_id = self.loop.config.run
        self._play("collect", iteration, self.loop.tasks_of(iteration), run=run_id)
        return summarise(self.loop.store, run_id, iteration)

    def evaluate(self, number: int) -> Line:
        """Play without learning; return success rates by how and what was played."""
        loop, evaluate = self.loop, self.loop.config.evaluate
        assert evaluate is not None
        parts = {"held_out": loop.held_out}
        if evaluate.on_training_games:
            parts["training"] = loop.tasks
        tasks = [task for members in parts.values() for task in members]
        line: Line = {}
        for kind, temperature, count in (
            ("greedy", 0.0, int(evaluate.greedy)),
            ("sampled", 1.0, evaluate.samples),
        ):
            if not count or not tasks:
                continue
            run_id = f"{loop.config.run}-{kind}"
            self._play(
                f"evaluate, {kind}",
                number,
                tasks,
                run=run_id,
                group_size=count,
                temperature=temperature,
                seed=evaluate.seed,
                **_PLAIN,
            )
            for part, members in parts.items():
                if members:
                    found = summarise(loop.store, run_id, number, [t.task_id for t in members])
                    line[f"{kind}_{part}_success_rate"] = found.success_rate
        return line

    def _play(self, what: str, iteration: int, tasks: "Sequence[Task]", **changes: Any) -> None:
        from graphcredit.collector.collect import collect

        self.on_progress(what, 0, 0)
        options = self.loop.config.collect.options(
            policy=self.loop.policy(iteration), iteration=iteration, **changes
        )
        report = collect(
            self.loop.store,
            tasks,
            options,
            environments=None if options.workers else self.environments,
            on_progress=lambda done, total: self.on_progress(what, done, total),
        )
        self._tell(what, iteration, report.notes)
        if report.casualties:
            raise RecorderError(
                f"{'; '.join(report.casualties)}. What the others played is kept: the same command "
                "plays what is missing and goes on"
            )

    def assign_credit(self, iteration: int) -> "CreditReport":
        """Assign credit, again if need be: that takes little time, and gives the same bytes."""
        from graphcredit.credit.iteration.report import merge_reports
        from graphcredit.credit.stage import assign_credit

        self.on_progress("credit", 0, 0)
        reports = assign_credit(
            self.loop.store,
            self.loop.credit_settings(),
            run_id=self.loop.config.run,
            iteration=iteration,
            on_progress=lambda done, total: self.on_progress("credit", done, total),
        )
        for report in reports.values():
            self._tell("credit", iteration, report.notices)
        return merge_reports(reports.values())

    def train(self, iteration: int) -> Mapping[str, Any]:
        """Make the next policy and return what came of it; without any signal it is this one."""
        from graphcredit.trainer.train import train

        try:
            result = train(
                self.loop.train_config(iteration),
                on_progress=lambda what, done, total, _: self.on_progress(what, done, total),
                on_notice=lambda notice: self._tell("train", iteration, [notice]),
            )
        except NothingToTrainError as error:
            # To what made it: a system follows no more than some 40 links, one after the other.
            made = self.loop.policy_dir(iteration).resolve().name
            link(self.loop.policy_dir(iteration + 1), made)
            self._tell("train", iteration, [f"the policy stays as it is: {error}"])
            return {
                "num_updates": 0,
                "num_kept": 0,
                "not_trained": str(error),
                "nothing_learnt": "no step is left that has anything to teach",
            }
        return result or {}

    def advise(self, iteration: int, summary: Summary, credit: "CreditReport") -> None:
        """Say what to do where nothing was learnt."""
        advice = what_to_do(self.loop.config, summary, credit)
        self._tell("nothing was learnt", iteration, [advice])

    def let_go(self, iteration: int) -> None:
        """Remove what only the training of the next policy needed."""
        before, after = (self.loop.policy_dir(n).resolve() for n in (iteration, iteration + 1))
        if before == after:
            return
        for name in _NOT_MODEL:
            remove_directory(before / name)
        # What a removal that was killed has put aside.
        for path in before.glob(f"*{TEMPORARY_SUFFIX}"):
            shutil.rmtree(path)

    def _tell(self, what: str, iteration: int, notices: Iterable[str]) -> None:
        """Pass on what was not told before; the same in each iteration would bury all else."""
        for notice in notices:
            if notice not in self.told:
                self.told.add(notice)
                self.on_notice(f"iteration {iteration}, {what}: {notice}")
