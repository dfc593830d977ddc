"""The loop: its stages in order, each iteration once, and what it refuses."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.collector.collection import CollectReport, collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.stage import assign_credit
from graphcredit.loop.config import (
    CollectTable,
    CreditTable,
    EvaluateTable,
    LoopConfig,
    loop_config,
    read_loop_config,
)
from graphcredit.loop.layout import Loop
from graphcredit.loop.run import run_loop
from graphcredit.loop.summary import Summary, what_to_do
from graphcredit.store import open_store, read_steps
from graphcredit.store.errors import InputError, OptionError
from tests.cli.loop_worlds import corridor_loop, register_corridors, run, save_talker
from tools.reference_pages import loop_page

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("loops")
    save_talker(root / "start")
    return root


@pytest.fixture(scope="module")
def plain(root: Path) -> list[dict[str, Any]]:
    """Return the lines of the loop in `plain`, which is as `corridor_loop` makes it."""
    return run(corridor_loop(root, "plain"))


@pytest.fixture(scope="module")
def begin(root: Path) -> Callable[[str], None]:
    """Return a function that makes a loop in a directory as it is after its first iteration."""
    run(corridor_loop(root, "begun", iterations=1, evaluate=None))

    def copy(out: str) -> None:
        copytree(root / "begun", root / out, symlinks=True)

    return copy


def _weights(root: Path, out: str, number: int) -> bytes:
    path = root / out / "policies" / f"policy-{number:06d}" / "model" / "model.safetensors"
    return path.read_bytes()


def _steps(root: Path, out: str, run_id: str, iteration: int, *more: str) -> pl.DataFrame:
    store = open_store(root / out / "store")
    columns = ["task_id", "trajectory_id", "policy_version", "temperature", *more]
    tables = read_steps(store, columns=columns, run_id=run_id, iteration=iteration)
    return pl.concat([pl.DataFrame(table) for table in tables])


def test_each_policy_plays_and_is_trained_into_the_next(root: Path, plain: list[dict[str, Any]]):
    lines = plain
    assert [line["iteration"] for line in lines] == [0, 1, 2]
    store = open_store(root / "plain" / "store")
    assert store.runs() == ["r0", "r0-greedy", "r0-sampled"]
    assert store.iterations("r0") == [0, 1]
    num_steps = [len(_steps(root, "plain", "r0", number)) for number in (0, 1)]
    assert [line["env_steps"] for line in lines] == [num_steps[0], sum(num_steps), sum(num_steps)]
    for number in (0, 1):
        played = _steps(root, "plain", "r0", number, "prompt_ids")
        assert played["prompt_ids"].list.len().n_unique() > 1, "prompts must not all be alike"
        assert played["policy_version"].unique().to_list() == [f"policy-{number:06d}"]
        assert played["trajectory_id"].n_unique() == 8
        assert lines[number]["num_updates"] == -(-num_steps[number] // 8)
    assert len({_weights(root, "plain", number) for number in (0, 1, 2)}) == 3
    greedy, sampled = (_steps(root, "plain", f"r0-{kind}", 2) for kind in ("greedy", "sampled"))
    assert (greedy["trajectory_id"].n_unique(), sampled["trajectory_id"].n_unique()) == (3, 6)
    assert greedy["temperature"].unique().to_list() == [0.0]
    assert greedy["policy_version"].unique().to_list() == ["policy-000002"]
    rates = {
        f"{k}_{p}_success_rate" for k in ("greedy", "sampled") for p in ("held_out", "training")
    }
    assert rates < lines[2].keys()
    assert "success_rate" not in lines[2]
    result = json.loads((root / "plain/policies/policy-000002/result.json").read_text())
    assert lines[1]["grad_norm"] == result["last"]["grad_norm"]
    config = (root / "plain/policies/policy-000002/config.toml").read_text()
    assert f'continue_from = "{root / "plain/policies/policy-000001"}"' in config
    assert f'reference = "{root / "plain/policies/policy-000000/model"}"' in config


def test_a_loop_that_is_done_says_so_again_and_a_longer_one_goes_on_wherever_it_is(
    root: Path, plain: list[dict[str, Any]]
):
    once = run(corridor_loop(root, "longer", iterations=1))
    assert run(corridor_loop(root, "longer", iterations=1)) == once
    (root / "longer").rename(root / "moved")
    twice = run(corridor_loop(root, "moved"))
    assert [_untimed(line) for line in twice] == [_untimed(line) for line in plain]
    assert _weights(root, "moved", 2) == _weights(root, "plain", 2)
    text = (root / "moved" / "loop.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == twice
    # A copy that follows links has the model itself where the loop had a link to it.
    model = copytree(root / "moved", root / "copied") / "policies/policy-000000/model"
    assert not model.is_symlink()
    assert run(corridor_loop(root, "copied")) == twice


def _untimed(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if not name.endswith("_seconds")}


def test_only_the_newest_policy_keeps_what_the_next_training_needs(
    root: Path, begin: Callable[[str], None]
):
    begin("let-go")
    killed_removal = root / "let-go/policies/policy-000001/checkpoints.0123abcd.tmp"
    (killed_removal / "step-000001").mkdir(parents=True)
    foreign = killed_removal.with_name("plots.tmp")
    foreign.mkdir()
    run(corridor_loop(root, "let-go", evaluate=None))
    assert not killed_removal.exists()
    assert foreign.exists()
    first, last = (root / "let-go/policies" / f"policy-00000{n}" for n in (1, 2))
    assert not (first / "checkpoints").exists()
    assert not (first / "logprobs").exists()
    assert (last / "checkpoints").exists()


def test_an_optimizer_is_not_begun_anew_without_a_word(root: Path, begin: Callable[[str], None]):
    begin("lost")
    (root / "lost/policies/policy-000001/result.json").unlink()
    with pytest.raises(OptionError, match=r"policy-000001 must have the result\.json"):
        run(corridor_loop(root, "lost", evaluate=None))


def test_a_policy_that_is_gone_is_named(root: Path, begin: Callable[[str], None]):
    begin("gone")
    (root / "gone/policies/policy-000001").rename(root / "gone/away")
    with pytest.raises(InputError, match=r"iteration 1 needs .*policy-000001/model"):
        run(corridor_loop(root, "gone", evaluate=None))


def test_a_group_at_a_time_is_an_iteration_each(root: Path):
    lines = run(corridor_loop(root, "groups", update_every="group", evaluate={"every": 2}))
    assert [line["iteration"] for line in lines] == [0, 1, 2, 3, 4]
    tasks = [_steps(root, "groups", "r0", n)["task_id"].unique().to_list() for n in range(4)]
    assert tasks == [["corridor-r2-s0"], ["corridor-r3-s1"]] * 2
    # Every second pass over two tasks is every fourth iteration.
    evaluated = [line["iteration"] for line in lines if "evaluate_seconds" in line]
    assert evaluated == [0, 4]


def test_where_nothing_can_be_learnt_the_policy_stays_and_the_optimizer_goes_on(root: Path):
    # Four rooms are too far for two steps: every return is 0. Two are not.
    games = {"games": "4", "max_steps": 2}
    config = corridor_loop(
        root, "none", collect=games, train={"kl_coefficient": 0.0}, evaluate=None
    )
    lines = run(config)
    assert [(line["success_rate"], line["num_updates"]) for line in lines] == [(0.0, 0)] * 2
    assert lines[0]["entropy"] is None
    assert lines[0]["nothing_learnt"] == "no step is left that has anything to teach"
    assert [line["num_kept"] for line in lines] == [0, 0]
    played = len(_steps(root, "none", "r0", 0))
    why = f"of {played}, all are left out ({played} zero_advantage)"
    assert why in lines[0]["not_trained"]
    # By this the script of docs/loop.md tells it from other errors.
    known = "needs steps with a signal"
    assert known in lines[0]["not_trained"]
    assert f"grep -q '{known}'" in (ROOT / "docs" / "loop.md").read_text(encoding="utf-8")
    assert [_weights(root, "none", number) for number in (1, 2)] == [_weights(root, "none", 0)] * 2
    assert run(config) == lines
    path = root / "none" / "loop.jsonl"  # a kill kept its last line from being written
    path.write_text(path.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    assert [_untimed(line) for line in run(config)] == [_untimed(line) for line in lines]
    versions = _steps(root, "none", "r0", 1)["policy_version"].unique().to_list()
    assert versions == ["policy-000001"]
    mixed = corridor_loop(
        root,
        "mixed",
        update_every="group",
        collect={"games": "2,4", "max_steps": 2, "group_size": 12},
        train={"kl_coefficient": 0.0},
        evaluate=None,
    )
    lines = run(mixed)
    assert [line["num_updates"] > 0 for line in lines] == [True, False, True, False]
    for number in (0, 2):
        left_out = sum(lines[number].get("dropped", {}).values())
        played = len(_steps(root, "mixed", "r0", number))
        assert 0 < lines[number]["num_kept"] == played - left_out
    third = (root / "mixed/policies/policy-000003/config.toml").read_text()
    assert "continue_from" in third


def test_where_only_the_divergence_is_left_the_line_says_that_nothing_was_learnt(root: Path):
    """With a divergence no step is left out, and every gradient of a first iteration is 0."""
    register_corridors()
    config = corridor_loop(
        root, "idle", collect={"games": "4", "max_steps": 2}, evaluate=None, iterations=1
    ).as_json()
    file = root / "idle.toml"
    file.write_text(_toml({k: v for k, v in config.items() if v is not None}), encoding="utf-8")
    shown = CliRunner().invoke(app, ["loop", str(file)])
    assert shown.exit_code == 0, shown.output
    (line,) = run(loop_config(config))
    assert (line["num_groups"], line["num_degenerate_groups"], line["grad_norm"]) == (2, 2, 0.0)
    assert line["nothing_learnt"] == "all advantages are 0"
    assert line["num_updates"] > 0
    assert shown.stdout.splitlines()[1].endswith(
        " nothing learnt: all advantages are 0 (all returns are equal in 2 of 2 groups)"
    )
    lines = [line for line in shown.stderr.splitlines() if "distinct" not in line]
    template, before, after, advice = lines
    assert template.startswith("notice: iteration 0, collect: the model has no chat template: ")
    assert before.startswith("notice: iteration 0, train: graphgpo_advantage is 0 in all ")
    assert before.endswith("/policy-000000/model moves the policy")
    assert after == "notice: iteration 0, train: nothing was learnt: all advantages are 0"
    assert advice.startswith("notice: iteration 0, nothing was learnt: in every group all returns")


@pytest.mark.parametrize(
    ("success_rate", "num_degenerate", "advice"),
    [
        (0.0, 2, r"larger groups \(group_size is 4\).* learns from such groups too, such as reach"),
        (1.0, 2, "every rollout succeeded, so there is nothing left to learn from these"),
        (0.5, 1, r"returns differ within groups.* look at \[train\]"),
    ],
)
def test_what_to_do_depends_on_what_was_played(
    root: Path, success_rate: float, num_degenerate: int, advice: str
):
    summary = Summary(
        num_trajectories=8,
        num_env_steps=16,
        success_rate=success_rate,
        mean_return=success_rate,
        mean_length=2.0,
        valid_share=1.0,
    )
    credit = CreditReport(num_groups=2, num_degenerate_groups=num_degenerate)
    assert re.search(advice, what_to_do(corridor_loop(root, "advised"), summary, credit))


def test_every_stage_is_named_when_it_begins(root: Path):
    register_corridors()
    told: list[tuple[str, int]] = []
    config = corridor_loop(root, "named", iterations=1)
    list(
        run_loop(
            config, on_progress=lambda what, done=0, total=0, note="": told.append((what, total))
        )
    )
    played = ["evaluate, greedy", "evaluate, sampled"]
    started = [what for what, total in told if total == 0]
    learnt = ["read the steps", "load the model", "save the policy"]
    assert started == [*played, "collect", "credit", *learnt, *played]


def test_what_stages_notice_is_told_once_in_the_same_words(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    def noting_collect(*given: Any, **options: Any) -> CollectReport:
        return replace(collect(*given, **options), notes=("another seed was taken",))

    def noting_credit(*given: Any, **options: Any) -> dict[tuple[str, int], CreditReport]:
        reports = assign_credit(*given, **options)
        for _, iteration in reports:
            reports["r0", iteration].notices.append(f"oddity {iteration}")
        return reports

    monkeypatch.setattr("graphcredit.collector.collection.collect", noting_collect)
    monkeypatch.setattr("graphcredit.credit.stage.assign_credit", noting_credit)
    register_corridors()
    config = corridor_loop(
        root,
        "odd",
        collect={"games": "4", "max_steps": 2},
        train={"kl_coefficient": 0.0},
        evaluate=None,
    )
    told: list[str] = []
    list(run_loop(config, on_notice=told.append))
    assert told[:2] == [
        "iteration 0, collect: another seed was taken",
        "iteration 0, credit: oddity 0",
    ]
    assert told[2].startswith("iteration 0, train: the policy stays as it is: training needs steps")
    assert told[3].startswith("iteration 0, nothing was learnt: in every group all returns are")
    assert told[4:] == ["iteration 1, credit: oddity 1"]
    # Not one after the other: a system follows no more than some 40 links.
    links = [root / "odd" / "policies" / f"policy-{number:06d}" for number in (1, 2)]
    assert [link.readlink() for link in links] == [Path("policy-000000")] * 2


def test_a_training_s_notices_and_what_it_left_out_are_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    def noting_train(
        *given: Any, on_notice: Callable[[str], None], **options: Any
    ) -> dict[str, Any]:
        on_notice("weights are odd\x07")
        return {"num_updates": 3, "num_kept": 1234, "dropped": {"stale": 2, "over_long": 1}}

    monkeypatch.setattr("graphcredit.trainer.training.train", noting_train)
    register_corridors()
    config = corridor_loop(root, "said", iterations=1, evaluate=None).as_json()
    file = root / "said.toml"
    file.write_text(_toml({k: v for k, v in config.items() if v is not None}), encoding="utf-8")
    shown = CliRunner().invoke(app, ["loop", str(file)])
    assert shown.exit_code == 0, shown.output
    assert shown.stderr.splitlines()[1:] == ["notice: iteration 0, train: weights are odd\\x07"]
    header, line = shown.stdout.splitlines()
    assert header.split()[7:9] == ["updates", "kept"]
    assert line.split()[6:8] == ["3", "1,234"]
    assert line.endswith("left out 2 stale, 1 over_long")


def test_a_loop_that_is_asked_for_something_else_is_refused(
    root: Path, begin: Callable[[str], None]
):
    begin("mine")
    changes = {"collect": {"group_size": 3}, "train": {"learning_rate": 0.1}}
    other = corridor_loop(root, "mine", evaluate=None, **changes)
    with pytest.raises(OptionError, match=r"collect.group_size is 3, was 4; train.learning_rate"):
        run(other)
    free = corridor_loop(
        root,
        "mine",
        iterations=1,
        evaluate=None,
        collect={"concurrency": 2},
        train={"device": "auto"},
    )
    assert len(run(free)) == 1


def test_an_option_that_is_needed_is_named():
    with pytest.raises(OptionError, match="loop must be told 'iterations'"):
        loop_config({"out": "o", "model": "m"})


def test_the_command_prints_a_line_for_each_iteration(root: Path):
    register_corridors()
    config = corridor_loop(root, "unused").as_json()
    file = root / "loop.toml"
    file.write_text(_toml(config), encoding="utf-8")
    settings = ["--set", f"out={root / 'typed'}", "--set", "iterations=1"]
    shown = CliRunner().invoke(app, ["loop", str(file), *settings, "--set", "evaluate.tasks=0"])
    assert shown.exit_code == 0, shown.output
    header, first, last = shown.stdout.splitlines()
    assert header.split()[:4] == ["iteration", "env", "steps", "success"]
    assert first.split()[0] == "0"
    assert "greedy training" in last
    again = CliRunner().invoke(
        app, ["loop", str(file), *settings, "--set", "evaluate.tasks=0", "--json"]
    )
    assert again.stdout == (root / "typed" / "loop.jsonl").read_text(encoding="utf-8")


def _toml(values: dict[str, Any]) -> str:
    plain = {k: v for k, v in values.items() if not isinstance(v, dict)}
    tables = {k: v for k, v in values.items() if isinstance(v, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
    for table, options in tables.items():
        lines.append(f"[{table}]")
        lines += [f"{k} = {json.dumps(v)}" for k, v in options.items() if v is not None]
    return "\n".join(lines) + "\n"


def test_settings_win_over_the_file_and_text_needs_no_quotes(tmp_path: Path):
    file = tmp_path / "loop.toml"
    file.write_text('out = "a"\nmodel = "m"\niterations = 3\n[collect]\ntasks = 8\n')
    settings = ("out=b", "collect.seed=2", "credit.estimators=['grpo']", "train.learning_rate=1e-3")
    config = read_loop_config(file, settings)
    assert (config.out, config.iterations, config.collect.tasks) == (Path.cwd() / "b", 3, 8)
    assert (config.collect.seed, config.credit.estimators) == (2, ("grpo",))
    assert config.train == {"learning_rate": 1e-3}
    assert loop_config(json.loads(json.dumps(config.as_json()))) == config


def test_the_reference_of_the_loop_has_every_option():
    told = re.findall(r"^\| `(\w+)` \|", loop_page(), re.MULTILINE)
    assert told == [
        name
        for table in (LoopConfig, CollectTable, CreditTable, EvaluateTable)
        for name in table.model_fields
        if name not in ("collect", "credit", "train", "evaluate")
    ]


def test_the_example_is_a_configuration_whose_stages_accept_it():
    config = read_loop_config(ROOT / "examples" / "textworld-loop.toml")
    tasks = environment_kind("textworld").list_tasks(config.collect.games, num_tasks=8, seed=0)
    loop = Loop(config=config, tasks=tuple(tasks), held_out=())
    assert loop.train_config(0).advantage == "reach"
    assert list(loop.credit_settings().estimators) == ["reach"]
