"""Make a tiny model to start a loop from: learn a vocabulary, play at random, imitate, play.

Each stage runs once; finished stages are listed in OUT/warmup.json.

OUT/
  warmup.json   the options, and the figures of each finished stage
  store/        the runs `text` (random play, from which the vocabulary is learnt), `clone` (random
                play, which the model imitates) and `warm` (the model's own play)
  letters/      a model whose tokenizer has one token per byte
  init/         the untrained model and its tokenizer
  model/        the trained model
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from graphcredit.collector.options import CollectOptions, GameOptions
from graphcredit.loop.summary import summarise
from graphcredit.store import Store, create_store
from graphcredit.store.errors import EngineError, OptionError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.lock import alone_in
from graphcredit.store.files.parse import parse_json
from graphcredit.store.options import AtLeastOne, Count, PathOption
from graphcredit.store.progress import OnProgress

if TYPE_CHECKING:
    from graphcredit.collector.environments.base import Task

_TEXT_EPISODES = 10
"""Most episodes of each task from which the vocabulary is learnt: they show most of the words."""

_OWN_EPISODES = 8
"""Episodes of each task that the trained model plays."""


class WarmupOptions(GameOptions):
    """The options of a warm-up."""

    owner: ClassVar[str] = "warmup"

    directory: PathOption
    """OUT: the directory of the model and of everything it is made from."""
    tasks: AtLeastOne = 12
    """Number of tasks."""
    episodes: AtLeastOne = 100
    """Random episodes of each task."""
    max_steps: AtLeastOne = 20
    """Steps after which an episode is truncated."""
    vocabulary: Annotated[int, Field(ge=257)] = 1024
    """Tokens of the tokenizer, at most; with 257 it knows no words."""
    steps: AtLeastOne = 400
    """Optimizer steps of the cloning."""
    template: str = "tiny"
    """Prompts of the model: tiny, or a TOML file."""
    seed: Count = 0
    """Seed of the games, the episodes, the weights and the order of the batches."""
    workers: Count = 2
    """Processes that play; 0 plays in this one. Does not change the result."""
    games_dir: PathOption | None = None
    """Directory of games; by default the user's cache, for ALFWorld $ALFWORLD_DATA."""

    def list_tasks(self) -> "list[Task]":
        """Return the tasks to play."""
        from graphcredit.collector.environments.registry import environment_kind

        kind = environment_kind(self.env)
        return kind.list_tasks(
            self.games, num_tasks=self.tasks, seed=self.seed, games_dir=self.games_dir
        )

    def check(self) -> None:
        """Raise OptionError or MissingDependencyError if the warm-up cannot run."""
        from graphcredit.collector.policies.engines.registry import require_engine

        if self.directory.exists() and not self.directory.is_dir():
            raise OptionError(f"OUT must be a directory: {self.directory} is a file")
        self.list_tasks()
        require_engine("hf")

    def decisive(self) -> dict[str, Any]:
        """Return the options that change the result, as a JSON object."""
        from graphcredit.collector.policies.language.prompts import load_template

        return {
            "environment": self.env,
            "games": self.games,
            "num_tasks": self.tasks,
            "num_episodes": self.episodes,
            "max_steps": self.max_steps,
            "num_tokens": self.vocabulary,
            "num_updates": self.steps,
            "template": load_template(self.template).fingerprint,
            "seed": self.seed,
        }


def run_warmup(
    plan: WarmupOptions, *, on_progress: OnProgress, with_own_play: bool = True
) -> dict[str, dict[str, Any]]:
    """Run the stages of a warm-up that are not done yet.

    Args:
        plan: The options.
        on_progress: Called after every episode and optimizer step.
        with_own_play: Whether the trained model plays in the end. It only measures the model.

    Returns:
        The figures of each stage, `seconds` among them.

    Raises:
        InputError: The directory has a warm-up with other options or is in use by another process,
            or an option is out of range.
        MissingDependencyError: A required library is not installed.
        EngineError: A worker process died.
    """
    plan.check()
    options = plan.decisive()
    refusal = (
        f"only one process at a time may run a warm-up in {plan.directory}, and another one does: "
        "wait for it, end it, or name another directory"
    )
    with alone_in(plan.directory, refusal):
        path = plan.directory / "warmup.json"
        done = _read(path, options)
        _write(path, options, done)
        for name, stage in _STAGES.items():
            if name not in done and (with_own_play or name != "warm"):
                started = time.perf_counter()
                on_progress(name)
                figures = stage(plan, on_progress)
                done[name] = {**figures, "seconds": time.perf_counter() - started}
                _write(path, options, done)
    return done


def _letters(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Make a byte-level tokenizer and model, so that random play can be recorded as tokens."""
    from graphcredit.collector.policies.train_tokenizer import NUM_LETTERS

    return _make_model(plan, "letters", (), NUM_LETTERS)


def _text(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Play at random, to collect text for the vocabulary."""
    number = min(plan.episodes, _TEXT_EPISODES)
    return _play(plan, "text", "tutor:letters", number, on_progress)


def _init(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Train the tokenizer, and make an untrained model with its vocabulary."""
    from graphcredit.collector.policies.train_tokenizer import recorded_texts

    texts = recorded_texts(_store(plan), "text", plan.directory / "letters")
    return _make_model(plan, "init", texts, plan.vocabulary)


def _clone(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Play at random, recorded in the tokens of the model."""
    return _play(plan, "clone", "tutor:init", plan.episodes, on_progress)


def _model(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Train the model to imitate the random play."""
    from graphcredit.trainer.cloning.clone import CloneConfig, clone

    config = CloneConfig(
        store=_store(plan).root,
        run="clone",
        model=plan.directory / "init",
        out=plan.directory / "model",
        steps=plan.steps,
        seed=plan.seed,
    )
    return clone(config, on_progress=on_progress)


def _warm(plan: WarmupOptions, on_progress: OnProgress) -> dict[str, Any]:
    """Play with the trained model."""
    longest = _read(plan.directory / "warmup.json", plan.decisive())["model"]["longest_response"]
    return _play(plan, "warm", "hf:model", _OWN_EPISODES, on_progress, max_new_tokens=longest)


_STAGES: dict[str, Callable[[WarmupOptions, OnProgress], dict[str, Any]]] = {
    "letters": _letters,
    "text": _text,
    "init": _init,
    "clone": _clone,
    "model": _model,
    "warm": _warm,
}


def _store(plan: WarmupOptions) -> Store:
    return create_store(plan.directory / "store")


def _make_model(
    plan: WarmupOptions, name: str, texts: Iterable[str], num_tokens: int
) -> dict[str, Any]:
    from graphcredit.collector.policies.train_tokenizer import train_tokenizer
    from graphcredit.trainer.cloning.tiny_model import save_random_model

    with TemporaryDirectory(dir=plan.directory) as folder:
        tokenizer = Path(folder) / "tokenizer"
        num_learnt = train_tokenizer(tokenizer, texts, num_tokens=num_tokens)
        num_weights = save_random_model(plan.directory / name, tokenizer, seed=plan.seed)
    return {"num_tokens": num_learnt, "num_weights": num_weights}


def _play(
    plan: WarmupOptions,
    run_id: str,
    policy: str,
    num_episodes: int,
    on_progress: OnProgress,
    max_new_tokens: int = 512,
) -> dict[str, Any]:
    """Play every task, and return statistics of the run."""
    from graphcredit.collector.collection import collect

    kind, _, model = policy.partition(":")
    options = CollectOptions(
        policy=f"{kind}:{plan.directory / model}",
        template=plan.template,
        group_size=num_episodes,
        max_steps=plan.max_steps,
        seed=plan.seed,
        workers=plan.workers,
        run=run_id,
        games_dir=plan.games_dir,
        max_new_tokens=max_new_tokens,
    )
    report = collect(
        _store(plan),
        plan.list_tasks(),
        options,
        on_progress=lambda what, *progress: on_progress(f"play: {run_id}", *progress),
    )
    if report.failures:
        raise EngineError(
            f"every episode must end, but {'; '.join(report.failures)}. "
            "Give the same command again to play the missing ones"
        )
    summary = summarise(_store(plan), run_id, iteration=0)
    return {
        "num_trajectories": summary.num_trajectories,
        "num_steps": summary.num_env_steps,
        "success_rate": summary.success_rate,
        "valid_share": summary.valid_share,
    }


def _read(path: Path, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures of the finished stages."""
    if not path.exists():
        return {}
    try:
        saved = parse_json(path.read_text(encoding="utf-8"))
        known, stages = dict(saved["options"]), dict(saved["stages"])
    except (ValueError, TypeError, KeyError) as error:
        raise OptionError(
            f"OUT must be a new directory, or one of a warm-up to resume: {path} was not written "
            f"by a warm-up ({error!r})"
        ) from error
    if changed := [name for name in options if known.get(name) != options[name]]:
        name = changed[0]
        raise OptionError(
            f"{path} has a warm-up with other options ({name} was {known.get(name)!r}, is now "
            f"{options[name]!r}): give the same options to resume it, or name another directory"
        )
    return stages


def _write(path: Path, options: Mapping[str, Any], stages: Mapping[str, Any]) -> None:
    with atomic_path(path) as temporary:
        text = json.dumps({"options": options, "stages": stages}, indent=2)
        temporary.write_text(f"{text}\n", encoding="utf-8")
