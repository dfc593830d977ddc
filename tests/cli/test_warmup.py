"""`graphcredit warmup`: a small one of the search environment, killed and gone on with."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from graphcredit.cli.main import app
from graphcredit.collector.policies.tokens import load_tokenizer
from graphcredit.collector.policies.train_tokenizer import NUM_LETTERS
from graphcredit.loop.warmup import WarmupOptions, run_warmup
from graphcredit.store import open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.files.lock import alone_in
from tests.cli.in_process import run as run_command
from tests.forks import FORKS

STAGES = ["letters", "text", "init", "clone", "model", "warm"]

OPTIONS = [
    *("--env", "search", "--games", "2hop", "--tasks", "2", "--episodes", "3"),
    *("--max-steps", "4", "--vocabulary", "400", "--steps", "3", "--workers", "0"),
]


def _plan(out: Path) -> WarmupOptions:
    """Return what the options stand for."""
    return WarmupOptions(
        directory=out,
        env="search",
        games="2hop",
        tasks=2,
        episodes=3,
        max_steps=4,
        vocabulary=400,
        steps=3,
        workers=0,
    )


def _warmup(out: Path, *options: str) -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    command = ["warmup", str(out), *OPTIONS, *options, "--json"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def _stages(out: Path) -> dict[str, dict[str, float]]:
    return json.loads((out / "warmup.json").read_text(encoding="utf-8"))["stages"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of a warm-up that was not interrupted."""
    out = tmp_path_factory.mktemp("whole") / "w"
    _warmup(out)
    return out


def test_each_stage_leaves_its_figures(whole: Path):
    stages = _stages(whole)
    assert list(stages) == STAGES
    assert (stages["text"]["num_trajectories"], stages["clone"]["num_trajectories"]) == (6, 6)
    assert stages["clone"]["valid_share"] == 1.0
    assert stages["letters"]["num_tokens"] == 257
    assert 257 < stages["init"]["num_tokens"] <= 400
    assert stages["model"]["num_steps"] == stages["clone"]["num_steps"] == 24
    assert stages["model"]["num_updates"] == 3
    assert stages["warm"]["num_trajectories"] == 16
    assert check_store(open_store(whole / "store")).errors == ()


def test_what_is_imitated_is_said_in_the_model_s_own_tokens(whole: Path):
    tokenizer = load_tokenizer(str(whole / "model"))
    (table,) = read_steps(
        open_store(whole / "store"),
        columns=["action", "response_ids", "prompt_ids"],
        run_id="clone",
    )
    for action, ids in zip(
        *(table[n].to_pylist() for n in ("action", "response_ids")), strict=True
    ):
        assert tokenizer.decode(ids) == f"{action}<|endoftext|>"
    assert all(tokenizer.decode(ids).endswith(">\n") for ids in table["prompt_ids"].to_pylist())


def test_the_same_command_does_nothing_twice(whole: Path):
    before = {path: path.stat().st_mtime_ns for path in (whole / "model").iterdir()}
    stages = _stages(whole)
    assert _warmup(whole) == stages
    assert {path: path.stat().st_mtime_ns for path in (whole / "model").iterdir()} == before


def test_other_options_are_refused(whole: Path):
    with pytest.raises(OptionError, match="num_updates was 3, is now 4"):
        _warmup(whole, "--steps", "4")


def test_another_process_s_warm_up_is_let_be(whole: Path):
    before = _stages(whole)
    with alone_in(whole, "not here"), pytest.raises(InputError, match="only one process at a time"):
        _warmup(whole)
    assert _stages(whole) == before


def test_what_is_not_a_warm_up_s_is_said_to_be_so(tmp_path: Path):
    (tmp_path / "warmup.json").write_text('{"steps": 3}', encoding="utf-8")
    with pytest.raises(OptionError, match=r"warmup.json was not written by a warm-up .*'options'"):
        _warmup(tmp_path)
    with pytest.raises(OptionError, match=r"OUT must be a directory: .*warmup.json is a file"):
        _warmup(tmp_path / "warmup.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--env", "chess"), "environments are textworld, search.*: got 'chess'"),
        (("--games", "4hop"), "questions are 2hop or 3hop"),
        (("--template", "tidy"), "a template must be one of"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    tmp_path: Path, options: tuple[str, str], message: str
):
    with pytest.raises(OptionError, match=message):
        _warmup(tmp_path / "w", *options)
    assert not (tmp_path / "w").exists()


def test_a_tokenizer_has_at_least_a_token_for_each_letter(tmp_path: Path):
    ended = run_command("warmup", tmp_path / "w", *OPTIONS, "--vocabulary", str(NUM_LETTERS - 1))
    assert ended.exit_code == 2
    assert f"vocabulary must be at least {NUM_LETTERS}: got" in ended.err
    assert not (tmp_path / "w").exists()


def test_a_warm_up_killed_in_any_stage_goes_on_to_the_same_model(whole: Path, tmp_path: Path):
    for what, count in (("play: text", 2), ("play: clone", 3), ("learn", 2), ("play: warm", 5)):
        process = FORKS.Process(target=_run_and_kill, args=(tmp_path / "w", what, count))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, what
    stages = _warmup(tmp_path / "w")
    assert list(stages) == STAGES
    assert {name: stages[name] for name in ("text", "clone")} == {
        name: {**figures, "seconds": stages[name]["seconds"]}
        for name, figures in _stages(whole).items()
        if name in ("text", "clone")
    }
    model = "model/model.safetensors"
    assert (tmp_path / "w" / model).read_bytes() == (whole / model).read_bytes()


def _run_and_kill(out: Path, what: str, count: int) -> None:
    """Run a warm-up until it has told of something so often, and die."""
    torch.set_num_threads(1)
    told: Counter[bool] = Counter()

    def on_progress(said: str, done: float = 0, total: int = 0, note: str = "") -> None:
        told[said.startswith(what)] += 1
        if told[True] == count:
            os.kill(os.getpid(), signal.SIGKILL)

    run_warmup(_plan(out), on_progress=on_progress)
