"""A policy is trained on the tokens of an imported log."""

from pathlib import Path

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train
from tests.cli.in_process import run
from tests.collector.importers.logs import episode, write_lines
from tests.collector.importers.read_back import imported
from tests.trainer.models import save_tiny_model


def test_train_takes_the_tokens_of_verifiers(tmp_path: Path):
    calls = [{"node": node, "sampling": {"temperature": 0.7}} for node in (2, 4)]
    lost = {"exit": {"score": 0.0, "weight": 1.0}}
    rows = episode(calls=calls), episode("trace-2", calls=calls, rewards=lost)
    log, store = write_lines(tmp_path / "traces.jsonl", *rows), tmp_path / "store"
    assert imported(log, store).num_with_tokens == 4
    assert run("credit", store, "-e", "grpo").exit_code == 0
    config = TrainConfig(
        store=store,
        out=tmp_path / "out",
        model=save_tiny_model(tmp_path / "model"),
        advantage="grpo",
        device="cpu",
        max_tokens=64,
        mismatch_tolerance=1e9,
    )
    result = train(config)
    assert (result["num_kept"], result["num_masked_tokens"]) == (4, 0)
