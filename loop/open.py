"""Open a loop: all that can be checked is, and its directory is this loop's and no other's."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.loop.config import LoopConfig, loop_config
from graphcredit.loop.layout import Loop, link
from graphcredit.store import create_store
from graphcredit.store.errors import OptionError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.lock import alone_in
from graphcredit.store.files.parse import parse_json
from graphcredit.store.layout import check_name

if TYPE_CHECKING:
    from graphcredit.collector.environments.base import Task

_MAY_CHANGE = frozenset(
    {
        *("collect.workers", "collect.concurrency", "collect.games_dir", "collect.server"),
        "evaluate.every",
    }
)
"""Options that change neither the learning nor the evaluations."""

_HASHES = {"model_hash": "model", "template_hash": "template", "reference_hash": "train.reference"}
"""Keys of config.json, beside the options, and whose hash they have; a loop without a reference has
none of it."""


@contextmanager
def open_loop(config: LoopConfig) -> Generator[Loop]:
    """Make the directory of a loop, or compare an existing one with the loop; lock it.

    All that can be told before anything is played is checked before anything is written.

    Raises:
        InputError: An option is wrong, a game is both learnt from and held out, there is no model,
            the directory is not of this loop, or another process runs it.
        MissingDependencyError: The library of the environment or of the engine is not installed.
        EngineError: The server that samples does not run, or not with the options it needs.
    """
    # Whatever begins this name is a run's name too.
    check_name("loop.run, with -sampled after it,", f"{config.run}-sampled")
    tasks, held_out = _tasks(config)
    _check_seeds(config)
    loop = Loop(config=config, tasks=tuple(tasks), held_out=tuple(held_out))
    _check_credit(loop)
    _check_training(loop)
    _check_models(loop)
    if config.out.exists() and not config.out.is_dir():
        raise OptionError(f"`out` must be a directory: {config.out} is a file")
    refusal = (
        f"{config.out} must have one loop at a time, but another process runs one there: wait for "
        "it, end it, or name another `out`"
    )
    with alone_in(config.out, refusal):
        _claim(loop)
        create_store(loop.store.root)
        link(loop.policy_dir(0) / "model", config.model)
        yield loop


def _tasks(config: LoopConfig) -> tuple[Sequence["Task"], Sequence["Task"]]:
    """Return the tasks to learn from, and those that are held out."""
    from graphcredit.collector.environments.registry import environment_kind

    collect, evaluate = config.collect, config.evaluate
    kind = environment_kind(collect.env)
    tasks = kind.list_tasks(
        collect.games, num_tasks=collect.tasks, seed=collect.seed, games_dir=collect.games_dir
    )
    if evaluate is None or not evaluate.tasks:
        return tasks, ()
    games = collect.games if evaluate.games is None else evaluate.games
    held_out = kind.list_tasks(
        games, num_tasks=evaluate.tasks, seed=evaluate.seed, games_dir=collect.games_dir
    )
    learnt = {kind.world_of(task.spec): task.task_id for task in tasks}
    for task in held_out:
        if same := learnt.get(kind.world_of(task.spec)):
            raise OptionError(
                f"held-out games must not be learnt from: {task.task_id} of [evaluate] is the game "
                f"of {same} in [collect]. Name other games in [evaluate], or set its tasks to 0"
            )
    return tasks, held_out


def _check_seeds(config: LoopConfig) -> None:
    """Raise OptionError where an evaluation would be the rollouts that are learnt from."""
    evaluate, seed = config.evaluate, config.collect.seed
    if evaluate is None or not (evaluate.on_training_games and evaluate.samples):
        return
    if evaluate.seed == seed:
        raise OptionError(
            "evaluate.seed must differ from collect.seed where the training's tasks are evaluated, "
            f"or the same actions would be drawn for both: got {seed} twice. Give [evaluate] "
            "another seed, or set its on_training_games to false"
        )


def _check_credit(loop: Loop) -> None:
    """Raise an error where credit cannot be assigned, or lacks the advantage of the training."""
    from graphcredit.collector.environments.registry import environment_kind
    from graphcredit.credit.estimators.table import estimator_named
    from graphcredit.credit.merging.table import merge_named

    settings, training = loop.credit_settings(), loop.train_config(0)
    env = loop.config.collect.env
    about_entities = settings.needing("entities")
    if about_entities and environment_kind(env).er_graph is None:
        names = ", ".join(about_entities)
        raise OptionError(f"the estimator {names} needs tasks about entities: {env} has none")
    columns = [c for name in settings.estimators for c in estimator_named(name).columns]
    if training.column not in columns:
        raise OptionError(
            f"train.advantage must be what credit.estimators write: got {training.advantage!r}, "
            f"and they write {', '.join(columns)}"
        )
    merge_named(settings.merge.merge).check(settings.merge)


def _check_training(loop: Loop) -> None:
    """Raise an error where a policy cannot be trained, or not be trained again."""
    from graphcredit.trainer.engine.distributed import choose_device
    from graphcredit.trainer.loss.registry import configure_objective

    training = loop.train_config(0)
    configure_objective(training.objective, training.objective_options)
    choose_device(training.device)


def _check_models(loop: Loop) -> None:
    """Raise an error where a model cannot play or be trained, as far as its files tell."""
    from graphcredit.collector.policies.registry import parse_policy
    from graphcredit.trainer.model.loading import check_model
    from graphcredit.trainer.model.source import load_image_reader

    config, training = loop.config, loop.train_config(0)
    for name, directory in _models(config).items():
        for needed in ("config.json", "*.safetensors"):
            if not any(directory.glob(needed)):
                raise OptionError(
                    f"{name} must be the directory of a model: {directory} has no {needed}. "
                    "Name another one; where none can be downloaded, examples/warm_up.py makes one"
                )
        if load_image_reader(str(directory)) is not None:
            raise OptionError(
                f"{name} must be a language model, because environments show text: {directory} is "
                "a vision-language model. Record its steps with a program of your own, and train "
                "it with `graphcredit train`"
            )
        # An adapter is trained on the model; a reference is scored as it is.
        rank = training.lora_rank if name == "model" else 0
        check_model(str(directory), training.changed(lora_rank=rank))
    collect = config.collect
    template = collect.template or collect.env
    parse_policy(collect.policy(config.model), collect.changed(template=template))
    if collect.engine == "vllm-server":
        from graphcredit.collector.policies.engines.vllm_server import VllmServerEngine

        VllmServerEngine(collect.server).require_settings(collect.dtype)


def _models(config: LoopConfig) -> dict[str, Path]:
    """Return the directory of each model that an option names."""
    reference = config.train.get("reference")
    if reference is None:
        return {"model": config.model}
    from graphcredit.trainer.model.source import find_model

    return {"model": config.model, "train.reference": find_model(reference)}


def _claim(loop: Loop) -> None:
    """Write the configuration of a loop, or compare it with the written one."""
    path = loop.config.out / "config.json"
    hashes = _hash_files(loop.config)
    if path.exists():
        saved, known = _read(path)
        changed = list(_changes(loop, replace(loop, config=saved)))
        for name, value in hashes.items():
            if known.get(name, value) != value:
                changed.append(
                    f"the hash of {_HASHES[name]} ends in {value[-8:]}, ended in {known[name][-8:]}"
                )
        if changed:
            raise OptionError(
                f"{path} is of a loop that was configured otherwise ({'; '.join(changed)}): give "
                "the same options to go on with it, or name another `out`"
            )
    with atomic_path(path) as temporary:
        text = json.dumps({**loop.config.as_json(), **hashes}, indent=2)
        temporary.write_text(f"{text}\n", encoding="utf-8")


def _hash_files(config: LoopConfig) -> dict[str, str]:
    """Return hashes of the files that options name by their paths."""
    from graphcredit.collector.policies.language.prompts import load_template
    from graphcredit.trainer.fingerprint import hash_model

    hashes = {name: hash_model(directory) for name, directory in _models(config).items()}
    hashes["template"] = load_template(config.collect.template or config.collect.env).fingerprint
    return {key: hashes[name] for key, name in _HASHES.items() if name in hashes}


def _read(path: Path) -> tuple[LoopConfig, dict[str, str]]:
    """Return a loop's options, and the hashes of the files that they name.

    The directory that has the file is its `out`, wherever it was when the file was written.
    """
    try:
        values = dict(parse_json(path.read_text(encoding="utf-8")))
        hashes = {name: str(values.pop(name)) for name in _HASHES if name in values}
        options = {**values, "out": path.parent}
        return loop_config(options), hashes
    except (OSError, ValueError, TypeError) as error:
        raise OptionError(
            f"`out` must be a new directory, or a loop's to go on with it: {path} is not a loop's "
            f"({error})"
        ) from error


def _changes(loop: Loop, saved: Loop) -> Iterator[str]:
    """Yield the differences of two loops, as text."""
    from graphcredit.trainer.config import differences, without_effect

    wanted, was = _decisive(loop.config), _decisive(saved.config)
    for name in wanted | was:
        if wanted.get(name) != was.get(name):
            yield f"{name} is {wanted.get(name)!r}, was {was.get(name)!r}"
    pair = [without_effect(each.train_config(0)).resolved() for each in (loop, saved)]
    yield from (f"train.{text}" for text in differences(*pair))


def _decisive(config: LoopConfig) -> dict[str, Any]:
    """Return the options that must stay as they are, but for those of the training."""
    values = config.as_json()
    named = {name: values[name] for name in ("model", "run", "update_every")}
    flat = {
        f"{table}.{name}": value
        for table in ("collect", "credit", "evaluate")
        for name, value in (values[table] or {}).items()
    }
    return named | {name: value for name, value in flat.items() if name not in _MAY_CHANGE}
