"""Run a loop: collect, credit and train, again and again, from where it was interrupted.

Iteration n plays policy n and makes policy n + 1. Its stages call the same functions as the
commands, with the same arguments, so each stage can also be run by hand. A killed stage resumes
when it is called again. The line of an iteration is written last; an iteration that has a line is
skipped.
"""

import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.loop.config import LoopConfig
from graphcredit.loop.layout import Loop, link
from graphcredit.loop.open import open_loop
from graphcredit.loop.summary import Summary, summarise, what_to_do
from graphcredit.store.errors import InputError, NothingToTrainError, RecorderError
from graphcredit.store.files.atomic import atomic_path, remove_directory, remove_left_overs
from graphcredit.store.files.parse import parse_json
from graphcredit.store.progress import OnProgress, silent

if TYPE_CHECKING:
    from graphcredit.collector.environments.base import Task
    from graphcredit.collector.environments.prefix_cache import Environments
    from graphcredit.credit.iteration.report import CreditReport
    from graphcredit.trainer.engine.kept import KeptEngines

Line = dict[str, Any]
"""The results of one iteration. Keys that end in `_seconds` are wall-clock times of its stages;
only `cpu_seconds` is the CPU time of this process, all threads, without the evaluation."""

OnNotice = Callable[[str], None]
"""Called with oddities that do not stop the loop; the message names iteration and stage."""

_RESULT = ("num_updates", "num_kept", "dropped", "not_trained", "nothing_learnt")
"""Keys of the training's result that a line copies. `dropped` is missing if no step was dropped:
lines are read as tables, and an empty object has no table type."""

_SHOWN = ("entropy", "kl", "grad_norm")
"""Metrics of the training's last optimizer step that a line copies."""

_PLAIN: Mapping[str, Any] = {"allocation": None, "oracle": False}
"""Options of a collection that only evaluates."""

_NOT_MODEL = ("checkpoints", "logprobs")
"""Entries of a policy's directory that are removed once the next policy exists. They are several
times the size of a model."""


def run_loop(
    config: LoopConfig,
    *,
    on_progress: OnProgress = silent,
    on_notice: OnNotice = lambda notice: None,
) -> Generator[Line]:
    """Run a loop, or resume one that was interrupted; yield the line of each iteration.

    The lines of earlier iterations are yielded first.

    Args:
        config: The loop's configuration.
        on_progress: Called with the progress of each stage.
        on_notice: Called with the notices of the stages; with equal ones only once.

    Raises:
        InputError: The directory belongs to another loop or is in use by another process, or a
            stage refuses its input.
        RecorderError: A worker died.
        TrainingError: A gradient was not finite.
        MissingDependencyError: A required library is not installed.
    """
    from graphcredit.collector.environments.prefix_cache import Environments
    from graphcredit.trainer.engine.kept import KeptEngines

    path = config.out / "loop.jsonl"
    with (
        open_loop(config) as loop,
        closing(Environments()) as environments,
        closing(KeptEngines()) as engines,
    ):
        lines = _read_lines(path, loop.num_updates)
        yield from lines
        num_lines = loop.num_updates + loop.is_evaluated(loop.num_updates)
        stages = _Stages(
            loop=loop,
            environments=environments,
            engines=engines,
            on_progress=on_progress,
            on_notice=on_notice,
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
    """Return the lines of the file, without that of a last policy if it is now to be trained.

    That is so if the number of iterations was raised since.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = [parse_json(line) for line in text.splitlines()]
    return [line for line in lines if "train_seconds" in line or line["iteration"] >= num_updates]


def _check_policy(loop: Loop, number: int) -> None:
    """Raise InputError if the policy of the next iteration is missing."""
    model = loop.policy_dir(number) / "model"
    if not model.is_dir():
        raise InputError(
            f"iteration {number} needs {model}, the result of the previous one: found none. "
            "Put it back, or name another `out`"
        )


def _iterate(stages: "_Stages", number: int, num_before: int) -> Line:
    """Run an iteration and return its line; the last policy is only evaluated, not trained."""
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
    """The stages of an iteration."""

    loop: Loop
    environments: "Environments"
    """Shared by all iterations, with their cache of observations, if this process plays."""
    engines: "KeptEngines"
    """Of the trainings, from one iteration to the next."""
    on_progress: OnProgress
    on_notice: OnNotice
    told: set[str] = field(default_factory=set[str])
    """Notices that were passed on since the loop was started."""

    def collect(self, iteration: int) -> Summary:
        """Play the tasks to learn from, and return their statistics."""
        run_id = self.loop.config.run
        self._play("collect", iteration, self.loop.tasks_of(iteration), run=run_id)
        return summarise(self.loop.store, run_id, iteration)

    def evaluate(self, number: int) -> Line:
        """Play without learning; return success rates by sampling (greedy or not) and task list."""
        loop, evaluate = self.loop, self.loop.config.evaluate
        assert evaluate is not None
        lists = {"held_out": loop.held_out}
        if evaluate.on_training_games:
            lists["training"] = loop.tasks
        tasks = [task for members in lists.values() for task in members]
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
            for name, members in lists.items():
                if members:
                    summary = summarise(loop.store, run_id, number, [t.task_id for t in members])
                    line[f"{kind}_{name}_success_rate"] = summary.success_rate
        return line

    def _play(self, what: str, iteration: int, tasks: "Sequence[Task]", **changes: Any) -> None:
        from graphcredit.collector.collection import collect

        self.on_progress(what)
        options = self.loop.config.collect.options(
            policy=self.loop.policy(iteration), iteration=iteration, **changes
        )
        report = collect(
            self.loop.store,
            tasks,
            options,
            environments=None if options.workers else self.environments,
            on_progress=lambda _, *progress: self.on_progress(what, *progress),
        )
        self._tell(what, iteration, report.notes)
        if report.failures:
            raise RecorderError(
                f"{'; '.join(report.failures)}. The other rollouts are kept: "
                "give the same command again to play the missing ones and continue"
            )

    def assign_credit(self, iteration: int) -> "CreditReport":
        """Assign credit, even if it was done before: it takes little time and is deterministic."""
        from graphcredit.credit.iteration.report import merge_reports
        from graphcredit.credit.stage import assign_credit

        self.on_progress("credit")
        reports = assign_credit(
            self.loop.store,
            self.loop.credit_settings(),
            run_id=self.loop.config.run,
            iteration=iteration,
            on_progress=self.on_progress,
        )
        for report in reports.values():
            self._tell("credit", iteration, report.notices)
        return merge_reports(reports.values())

    def train(self, iteration: int) -> Mapping[str, Any]:
        """Train the next policy and return the result; without any signal it is a link to this."""
        from graphcredit.trainer.training import train

        if (policy := self.loop.policy_dir(iteration + 1)).is_symlink():
            policy.unlink()  # a kill kept the line from being written that says so
        try:
            result = train(
                self.loop.train_config(iteration),
                on_progress=self.on_progress,
                on_notice=lambda notice: self._tell("train", iteration, [notice]),
                kept=self.engines,
            )
        except NothingToTrainError as error:
            # Link to the directory itself, not to a link: a system follows at most some 40 links.
            made = self.loop.policy_dir(iteration).resolve().name
            link(policy, made)
            self._tell("train", iteration, [f"the policy stays as it is: {error}"])
            return {
                "num_updates": 0,
                "num_kept": 0,
                "not_trained": str(error),
                "nothing_learnt": "no step is left that has anything to teach",
            }
        return result or {}

    def advise(self, iteration: int, summary: Summary, credit: "CreditReport") -> None:
        """Report how to change the configuration if nothing was learnt."""
        advice = what_to_do(self.loop.config, summary, credit)
        self._tell("nothing was learnt", iteration, [advice])

    def let_go(self, iteration: int) -> None:
        """Remove files that only the training of the next policy needed."""
        before, after = (self.loop.policy_dir(n).resolve() for n in (iteration, iteration + 1))
        if before == after:
            return
        for name in _NOT_MODEL:
            remove_directory(before / name)
        # Temporary names that a killed removal left behind.
        remove_left_overs(before, _NOT_MODEL.__contains__)

    def _tell(self, what: str, iteration: int, notices: Iterable[str]) -> None:
        """Pass on new notices only: repeated in each iteration, they would bury the others."""
        for notice in notices:
            if notice not in self.told:
                self.told.add(notice)
                self.on_notice(f"iteration {iteration}, {what}: {notice}")
