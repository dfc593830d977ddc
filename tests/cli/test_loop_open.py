"""Whose a loop's directory is, and what is refused before it is anybody's."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.collector.environments.textworld import games
from graphcredit.collector.policies.engines import registry
from graphcredit.loop.config import LoopConfig, loop_config, read_loop_config
from graphcredit.loop.layout import Loop
from graphcredit.loop.open import open_loop
from graphcredit.loop.run import run_loop
from graphcredit.store.errors import (
    GraphcreditError,
    InputError,
    MissingDependencyError,
    OptionError,
    PathError,
)
from tests.cli.loop_worlds import corridor_loop, register_corridors, save_talker
from tests.trainer.models import tiny_model
from tests.trainer.vision import save_tiny_seer


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    register_corridors()
    return save_talker(tmp_path_factory.mktemp("talker") / "start")


@pytest.fixture
def root(tmp_path: Path, talker: Path) -> Path:
    copytree(talker, tmp_path / "start")
    return tmp_path


def _open(config: LoopConfig) -> Loop:
    """Open a loop as its command does, and leave it."""
    with open_loop(config) as loop:
        return loop


def _written(root: Path, out: str) -> dict[str, Any]:
    return json.loads((root / out / "config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "what"), [("start", "model"), ("away", "train.reference")])
def test_another_model_under_the_same_path_is_refused(root: Path, path: str, what: str):
    tiny_model(vocab_size=10).save_pretrained(root / "away")
    config = corridor_loop(root, "mine", train={"reference": str(root / "away")})
    _open(config)
    written = _written(root, "mine")
    _open(config)
    assert _written(root, "mine") == written
    tiny_model(vocab_size=10, initializer_range=0.1).save_pretrained(root / path)
    before = written[f"{what.removeprefix('train.')}_hash"][-8:]
    with pytest.raises(OptionError, match=rf"hash of {what} ends in \w+, ended in {before}\)"):
        _open(config)
    assert _written(root, "mine") == written


def test_a_policy_that_looks_at_images_is_refused(root: Path):
    seer = save_tiny_seer(root / "seer")
    for changes in ({"model": seer}, {"train": {"reference": seer}}):
        with pytest.raises(OptionError, match="must be a language model, because environments"):
            _open(corridor_loop(root, "mine", **changes))
    assert not (root / "mine").exists()


def test_a_reference_is_the_same_wherever_the_loop_is_gone_on_with(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(root)
    config = corridor_loop(root, "mine", train={"reference": "start"})
    _open(config)
    assert _written(root, "mine")["train"]["reference"] == str(root / "start")
    monkeypatch.chdir("/")
    assert _open(config).train_config(0).reference == str(root / "start")


def test_another_template_under_the_same_path_is_refused(root: Path):
    config = corridor_loop(root, "mine")
    _open(config)
    before = _written(root, "mine")["template_hash"]
    template = root / "start" / "corridor.toml"
    text = template.read_text(encoding="utf-8")
    template.write_text(f"# The same.\n{text}", encoding="utf-8")
    _open(config)
    template.write_text(text.replace("{observation}", "at {observation}"), encoding="utf-8")
    with pytest.raises(
        OptionError, match=rf"template ends in \w+, ended in {before[-8:]}"
    ) as error:
        _open(config)
    assert str(error.value).count(before[-8:]) == 1


def test_a_path_may_be_spelt_otherwise(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root)
    config = corridor_loop(root, "out")
    spelt = _open(loop_config({**config.as_json(), "out": "out", "model": "start/../start"}))
    assert _open(config).config == spelt.config
    assert spelt.train_config(0).model == str(root / "out/policies/policy-000000/model")
    assert (root / "out/policies/policy-000000/model").readlink() == root / "start"


def test_other_evaluations_are_refused_but_for_how_often(root: Path):
    _open(corridor_loop(root, "mine"))
    _open(corridor_loop(root, "mine", evaluate={"every": 2}))
    with pytest.raises(OptionError, match=r"\(evaluate.samples is 3, was 2\)"):
        _open(corridor_loop(root, "mine", evaluate={"samples": 3}))
    with pytest.raises(OptionError, match=r"evaluate.samples is None, was 2"):
        _open(corridor_loop(root, "mine", evaluate=None))


@pytest.mark.parametrize("name", ["o5r5q5b1n1-s3", "r05o5q5b1n1-s3", "r5o5q5b1-s3", "r5o5q5n1-s3"])
def test_a_held_out_game_is_not_learnt_from_however_it_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    kind = EnvironmentKind(
        list_tasks=games.list_tasks, open=ENVIRONMENTS["corridor"].open, world_of=games.world_of
    )
    monkeypatch.setitem(ENVIRONMENTS, "told", kind)
    collect = {"env": "told", "games": "custom-r5o5q5b1n1"}
    _open(corridor_loop(root, "apart", collect=collect, evaluate={"games": f"custom-{name}"}))
    with pytest.raises(OptionError, match=r"is the game of textworld-custom-r5o5q5b1n1-s3 in"):
        _open(
            corridor_loop(
                root, "same", collect={**collect, "seed": 2}, evaluate={"games": f"custom-{name}"}
            )
        )
    assert not (root / "same").exists()


def test_what_is_not_a_loop_s_is_said_to_be_so(root: Path):
    with pytest.raises(OptionError, match=r"start/config.json is not a loop's .*no option"):
        _open(corridor_loop(root, "start"))
    (root / "list").mkdir()
    (root / "list" / "config.json").write_text("[3]", encoding="utf-8")
    with pytest.raises(OptionError, match=r"list/config.json is not a loop's"):
        _open(corridor_loop(root, "list"))
    (root / "file").write_text("", encoding="utf-8")
    with pytest.raises(OptionError, match=r"`out` must be a directory: .*file is a file"):
        _open(corridor_loop(root, "file"))


def test_an_engine_that_is_not_installed_is_missed_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    row = registry.EngineKind(open=registry.ENGINES["vllm"].open, library="no_such", extra="vllm")
    monkeypatch.setitem(registry.ENGINES, "vllm", row)
    with pytest.raises(MissingDependencyError, match="'no_such', which is not installed"):
        _open(corridor_loop(root, "out", collect={"engine": "vllm"}))
    assert not (root / "out").exists()


def test_a_temperature_that_the_engine_lacks_is_refused_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    row = replace(registry.ENGINES["vllm"], library="transformers")
    monkeypatch.setitem(registry.ENGINES, "vllm", row)
    with pytest.raises(OptionError, match=r"temperature must be 0, or 0.01 or more.*got 0.005"):
        _open(corridor_loop(root, "out", collect={"engine": "vllm", "temperature": 0.005}))
    assert not (root / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"collect": {"temprature": 1.0}}, "collect has no option 'temprature'; its options: env,"),
        ({"train": {"lr": 1.0}}, "train has no option 'lr'"),
        ({"train": {"out": "x"}}, "must not set 'out': the loop sets it"),
        ({"credit": {"estimators": ["best"]}}, "no estimator is called 'best'"),
        ({"iterations": 0}, "loop.iterations must be at least 1"),
        ({"update_every": "step"}, "update_every must be 'iteration' or 'group' or a whole"),
        (
            {"update_every": 0},
            "loop.update_every must be 'iteration' or 'group' or at least 1: got 0",
        ),
        ({"evaluate": {"seed": 0}}, "corridor-r2-s0 of .evaluate. is the game of corridor-r2-s0"),
        ({"evaluate": {"seed": 0, "tasks": 0}}, "evaluate.seed must differ from collect.seed"),
        ({"collect": {"env": "chess"}}, "environments are textworld"),
        ({"run": "a/b"}, "loop.run, with -sampled after it, becomes part of a path"),
        (
            {"collect": {"template": "tidy"}},
            "a template must be one of alfworld, plain, search, sokoban, textworld, tiny",
        ),
        ({"collect": {"allocation": "spo3"}}, "add it to credit.estimators, which are graphgpo"),
        ({"credit": {"estimators": ["sapo"]}}, "sapo needs tasks about entities: corridor has"),
        ({"train": {"advantage": "rloo"}}, "credit.estimators write: got 'rloo', and they write"),
        ({"credit": {"state": "calls"}}, "credit.state must be logged in a loop"),
        ({"train": {"objective": "pp0"}}, "'pp0'"),
        ({"train": {"save_dtype": "bfloat16"}}, "train has no option 'save_dtype'"),
        ({"credit": {"merge": "embedding", "embedder": "no/such"}}, "no/such"),
        ({"train": {"lora_rank": 2, "lora_targets": "nowhere"}}, "lora_targets 'nowhere'"),
        ({"train": {"beta2": 1.0}}, "beta2 must be below 1: got 1"),
        ({"train": {"device": "cuda"}}, "device cuda needs a GPU"),
        ({"train": {"reference": "empty"}}, "train.reference must be .*empty has no config"),
        (
            {"model": "nowhere", "collect": {"games": "2,3"}},
            "nowhere has no config.json. Name another one; .* examples/warm_up.py makes one",
        ),
        ({"model": "bare"}, r"model must be .*: .*bare has no \*.safetensors"),
    ],
)
def test_what_a_stage_cannot_do_is_refused_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.chdir(root)
    (root / "empty").mkdir()
    copytree(root / "start", root / "bare", ignore=ignore_patterns("*.safetensors"))
    with pytest.raises(GraphcreditError, match=message):
        _open(corridor_loop(root, "out", **changes))
    assert not (root / "out").exists()


@pytest.mark.parametrize("name", ["start", "away"])
def test_weights_that_are_cut_short_are_refused_before_anything_is_written(root: Path, name: str):
    copytree(root / "start", root / "away")
    config = corridor_loop(root, "out", train={"reference": str(root / "away")})
    weights = root / name / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(InputError, match=f"{name} must hold a causal LM"):
        _open(config)
    assert not (root / "out").exists()


@pytest.mark.parametrize(
    ("every", "played"), [("iteration", [5]), ("group", [1] * 5), (2, [2, 2, 1]), (7, [5])]
)
def test_a_pass_plays_every_task_once_so_many_at_a_time(
    root: Path, every: str | int, played: list[int]
):
    with open_loop(corridor_loop(root, "out", update_every=every, collect={"tasks": 5})) as loop:
        passes = [
            [loop.tasks_of(start + number) for number in range(len(played))]
            for start in (0, loop.updates_per_pass)
        ]
        assert [len(tasks) for tasks in passes[0]] == played
        assert passes == [passes[0]] * 2
        assert tuple(task for tasks in passes[0] for task in tasks) == loop.tasks
        assert loop.num_updates == 2 * len(played)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("collect=3", "collect must be a table: got 3"),
        ("evaluate=true", "evaluate must be a table: got True"),
        ("train=3", "loop.train must be a table: got 3"),
        ("iterations.foo=3", "iterations must be a table, but is 3"),
        ("out=3", "loop.out must be the path of a directory: got 3"),
        ("out=", "loop.out must be the path of a directory: got ''"),
        ("model=7", "loop.model must be the path of a directory: got 7"),
        ("run=3", "loop.run must be text: got 3"),
        ("iterations=many", "loop.iterations must be a whole number: got 'many'"),
        ("evaluate.greedy=1", "evaluate.greedy must be true or false: got 1"),
        ("credit.estimators=graphgpo", "credit.estimators must be a list of texts: got 'graphgpo'"),
        ("credit.set=[3]", "credit.set must be text: got 3"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_in_words(
    tmp_path: Path, setting: str, message: str
):
    file = tmp_path / "loop.toml"
    file.write_text('out = "a"\nmodel = "m"\niterations = 3\n', encoding="utf-8")
    with pytest.raises(OptionError, match=message):
        read_loop_config(file, [setting])


def test_a_directory_is_no_configuration(tmp_path: Path):
    with pytest.raises(PathError, match=r"Is a directory\. Name a file"):
        read_loop_config(tmp_path)


def test_the_seconds_at_work_are_those_of_learning(root: Path, monkeypatch: pytest.MonkeyPatch):
    now = 0.0

    def on_progress(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        nonlocal now
        now += 1000.0 if what.startswith("evaluate") else 1.0

    monkeypatch.setattr("time.process_time", lambda: now)
    config = corridor_loop(root, "out", iterations=1)
    line = next(run_loop(config, on_progress=on_progress))
    assert now > 1000
    assert 0 < line["cpu_seconds"] < 1000
