"""Options of a training on messages: what is left out, in how many passes, and with which AdamW."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.cli.in_process import run
from tests.trainer.models import save_chat_model
from tests.trainer.test_messages import EAST, HALL, KITCHEN, OUT


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, and a store of four chats of two turns; one is cut."""
    folder = tmp_path_factory.mktemp("chats")
    messages = [HALL, EAST, KITCHEN, OUT]
    rows = [{"task_id": "t", "reward": n, "messages": messages, "n": n} for n in range(4)]
    rows[3]["messages"] = [HALL, EAST, KITCHEN, {**OUT, "finish_reason": "length"}]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run("import", folder / "log.jsonl", folder / "store").exit_code == 0
    assert run("credit", folder / "store", "-e", "grpo").exit_code == 0
    save_chat_model(folder / "model")
    return folder


def trained(chats: Path, out: Path, *options: Any) -> dict[str, Any]:
    asked = ("train", chats / "store", "--model", chats / "model", "--advantage", "grpo")
    done = run(*asked, "--out", out, "--json", *options)
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def metrics(out: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, (out / "metrics.jsonl").read_text().splitlines()))


def test_turns_that_continue_each_other_go_through_the_model_once(chats: Path, tmp_path: Path):
    together = trained(chats, tmp_path / "1")
    apart = trained(chats, tmp_path / "2", "--no-one-sequence")
    sent = [[n for n in each["notices"] if "go through" in n] for each in (together, apart)]
    # One sequence of all turns, equal ones once: with the end and without.
    assert sent[0][0].split()[0] == sent[0][0].split()[6] == sent[1][0].split()[6]
    assert "send equal beginnings once" in sent[1][0]
    assert together["last"]["grad_norm"] == pytest.approx(apart["last"]["grad_norm"], rel=1e-5)
    assert together["last"]["loss"] == pytest.approx(apart["last"]["loss"], abs=1e-6)


@pytest.mark.parametrize(
    ("condition", "left_out"),
    [
        ("true", 0),
        ("(extra->>'cut') IS DISTINCT FROM 'true'", 1),
        ("bool_or(extra->>'cut' = 'true') OVER (PARTITION BY trajectory_id) IS NOT TRUE", 2),
    ],
)
def test_answers_that_were_cut(chats: Path, tmp_path: Path, condition: str, left_out: int):
    result = trained(chats, tmp_path / "out", "--filter", condition)
    assert result["dropped"].get("filtered", 0) == left_out
    assert any("1 answers were cut by a limit" in notice for notice in result["notices"])
    assert (result["tokens"], result["logprobs"]) == ("messages", "start")
    # Bytes of the answers, with an end; the last one has none.
    scored = [8, 7] * 4
    scored[7] -= 1
    (line,) = metrics(tmp_path / "out")
    assert line["num_scored"] == sum(scored[: 8 - left_out])
    assert (line["ratio_mean"], line.get("mismatch_mean")) == (1.0, None)


def test_steps_beyond_the_most_are_not_made(chats: Path, tmp_path: Path):
    options = ("--batch-size", 2, "--epochs", 2, "--no-one-sequence", "--schedule", "linear")
    whole = trained(chats, tmp_path / "1", *options)
    some = trained(chats, tmp_path / "2", *options, "--max-steps", 3)
    assert (whole["num_updates"], some["num_updates"]) == (8, 3)
    first, line = (metrics(tmp_path / name)[1] for name in ("1", "2"))
    assert line["grad_norm"] == pytest.approx(first["grad_norm"], rel=1e-3)
    rates = [each["learning_rate"] for each in metrics(tmp_path / "2")]
    assert rates == pytest.approx([1e-6, 2e-6 / 3, 1e-6 / 3], rel=1e-3)


def test_adamw_decays_weights_and_gradients_are_clipped(chats: Path, tmp_path: Path):
    """With no mean of the past, a first step moves a weight by the rate, and decays it."""
    rate, decay = 1e-3, 0.5
    options = ("--learning-rate", rate, "--weight-decay", decay, "--beta1", 0, "--clip-norm", 1e-3)
    trained(chats, tmp_path / "out", *options)
    before, after = (
        load_file(folder / "model.safetensors")
        for folder in (chats / "model", tmp_path / "out" / "model")
    )
    moved = torch.cat([(after[n] - before[n] * (1 - rate * decay)).abs().flatten() for n in before])
    assert float(moved.max()) == pytest.approx(rate, rel=0.01)
