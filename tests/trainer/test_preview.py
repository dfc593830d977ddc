"""`train --dry-run`: the steps, the plan and the memory; and nothing is written."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from benchmarks.train_memory import measure
from graphcredit.cli.main import app
from graphcredit.store.errors import InputError, NothingToTrainError
from graphcredit.store.schema import TRAINING_COLUMNS
from graphcredit.trainer import card
from graphcredit.trainer.batching.plan import MicroBatchSize
from graphcredit.trainer.card import refuse_small_card
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model import head
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.model.memory import MemoryEstimate, _LiveBytes, estimate_memory, pass_bytes
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import plan_training, train
from tests.trainer.logs import episode, random_episodes, token_store, turn
from tests.trainer.models import save_tiny_model


def _config(tmp_path: Path, **options: Any) -> TrainConfig:
    chosen = {
        "device": "cpu",
        "mismatch_tolerance": 1e9,
        "batch_size": 3,
        "max_tokens": 12,
        **options,
    }
    model = chosen.pop("model", None) or save_tiny_model(tmp_path / "m")
    return TrainConfig(store=tmp_path / "s", out=tmp_path / "out", model=model, **chosen)


def _files(directory: Path) -> dict[str, tuple[int, int]]:
    paths = sorted(path for path in directory.rglob("*"))
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


def test_the_steps_and_the_plan_by_hand_and_nothing_is_written(tmp_path: Path):
    """Two episodes by hand: 5, 7, 5, 4 and 6 tokens, 9 of responses; one has 7 and is left out."""
    token_store(tmp_path / "s")
    config = _config(tmp_path, max_tokens=6, epochs=2)
    before = _files(tmp_path)
    found = preview(config, num_processes=2)
    assert _files(tmp_path) == before
    assert found["steps"] == {
        "num_steps": 5,
        "num_kept": 4,
        "dropped": {"over_long": 1},
        "num_masked_tokens": 0,
        "num_images": 0,
        "tokens": "log",
        "logprobs": "log",
        "advantage_mean": pytest.approx((0.5 + 1.5 - 0.5 - 1) / 4),
        "advantage_std": pytest.approx(1.0, rel=0.1),
        "advantage_zero_share": 0.0,
    }
    plan = found["plan"]
    assert (plan["num_updates"], plan["epochs"], plan["steps_per_update"]) == (4, 2, 2)
    assert (plan["num_tokens"], plan["num_response_tokens"]) == (2 * 20, 2 * 8)
    assert plan["num_micro_batches"] + plan["num_dummies"] == 4 * 2
    assert found["passes"] == ["start"]
    assert found["has_begun"] is False


@pytest.mark.parametrize(
    "options", [{"objective": "cispo"}, {"kl_coefficient": 0.0, "correction": "bypass"}]
)
def test_what_it_says_of_passes_is_what_a_training_does(tmp_path: Path, options: dict[str, Any]):
    token_store(tmp_path / "s", random_episodes(0, 4))
    config = _config(tmp_path, max_tokens=64, **options)
    found = preview(config, num_processes=1)
    stages: list[str] = []
    train(config, on_progress=lambda what, *_: stages.append(what))
    row = json.loads((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[0])
    assert row.keys() <= {column.name for column in TRAINING_COLUMNS}
    passes = {each.removeprefix("log-probabilities: ") for each in stages if ": " in each}
    assert passes == {*found["passes"]}
    assert preview(config, num_processes=1)["has_begun"]


def test_without_a_signal_it_is_refused_as_the_training_is(tmp_path: Path):
    token_store(tmp_path / "s", [episode("x", turn([1, 2], [3], advantage=0.0))])
    with pytest.raises(NothingToTrainError, match="is 0 in all 1 steps"):
        preview(_config(tmp_path), num_processes=1)


def test_the_command_prints_it_and_json_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    token_store(tmp_path / "s")
    command = ["train", str(tmp_path / "s"), "--model", save_tiny_model(tmp_path / "m")]
    command += ["--out", str(tmp_path / "out"), "--dry-run", "--max-tokens", "6"]
    shown = CliRunner().invoke(app, command, catch_exceptions=False)
    assert shown.exit_code == 0
    for text in ("4 of 5 of run r0", "1 left out: over_long", "AdamW's moments", "nothing was"):
        assert text in shown.stdout
    assert "float32 on the CPU" in shown.stdout
    on_gpu = CliRunner().invoke(app, [*command, "--device", "cuda"], catch_exceptions=False)
    assert "bfloat16 on a GPU" in on_gpu.stdout
    monkeypatch.setenv("WORLD_SIZE", "4")
    printed = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (printed["steps"]["num_kept"], printed["plan"]["num_processes"]) == (4, 4)
    assert not (tmp_path / "out").exists()


def _estimate(config: TrainConfig, **asked: Any) -> MemoryEstimate:
    """Return an estimate; with `has_images` no pass is traced."""
    asked = {"num_processes": 1, "dtype": "float32", "file_bytes": 1 << 20, **asked}
    return estimate_memory(
        load_shapes(config.model, config),
        [MicroBatchSize(64, 48, 64), MicroBatchSize(8, 8, 8)],
        **asked,
    )


def test_weights_gradients_and_moments_are_four_four_and_eight_bytes(tmp_path: Path):
    def estimate(config: TrainConfig, **asked: Any) -> MemoryEstimate:
        return _estimate(config, has_images=True, **asked)

    config = _config(tmp_path)
    shapes = load_shapes(config.model, config)
    count = sum(p.numel() for p in shapes.parameters())
    alone = estimate(config)
    assert (alone.parameters, alone.gradients, alone.moments) == (4 * count, 4 * count, 8 * count)
    assert alone.gathered == alone.loading == 0
    assert alone.checkpoint == 2 * min(12 * count, 1 << 20)
    assert estimate(config, num_processes=4, file_bytes=1 << 30).checkpoint == 2 * 3 * count
    four = estimate(config, num_processes=4)
    assert (four.parameters, four.gradients, four.moments) == (count, count, 2 * count)
    assert four.gathered == four.loading == 4 * count
    deep = config.changed(model=save_tiny_model(tmp_path / "deep", num_hidden_layers=6))
    assert 0 < estimate(deep, num_processes=4).gathered < 3 * estimate(deep).parameters / 4
    half = estimate(config, dtype="bfloat16")
    assert (half.parameters, half.gathered) == (4 * count, 2 * count)
    adapted = estimate(config.changed(lora_rank=4))
    assert adapted.parameters > alone.parameters
    assert adapted.moments < alone.moments / 2
    assert adapted.moments == 2 * adapted.gradients


def test_another_reference_is_there_before_the_first_update(tmp_path: Path):
    """Beside an adapter it weighs more than gradients and moments do later."""
    token_store(tmp_path / "s")
    other = save_tiny_model(tmp_path / "other", num_hidden_layers=12)
    config = _config(tmp_path, lora_rank=4, reference=other)
    found = preview(config, num_processes=2)["memory"]
    count = sum(p.numel() for p in load_shapes(other, config.changed(lora_rank=0)).parameters())
    assert found["reference"] == 4 * count // 2
    assert found["loading"] == 4 * count
    assert found["on_cpu"] == sum(found[x] for x in ("loading", "parameters", "reference"))
    assert found["on_device"] == sum(found[x] for x in ("parameters", "reference", "gathered"))
    with pytest.raises(InputError, match="the model must be a directory"):
        preview(config.changed(reference=str(tmp_path / "none")), num_processes=2)


def test_a_card_that_is_too_small_is_refused_before_the_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    token_store(tmp_path / "s")
    config, plan, _ = plan_training(_config(tmp_path, device="cuda"))
    found, cuda = preview(config, num_processes=1)["memory"], torch.device("cuda")
    monkeypatch.setattr(card, "device_memory", lambda _: found["on_device"])
    refuse_small_card(config, plan, cuda)
    monkeypatch.setattr(card, "device_memory", lambda _: found["on_device"] - 1)
    monkeypatch.setattr(card, "_GIB", 1)
    with pytest.raises(InputError) as refused:
        refuse_small_card(config, plan, cuda)
    passing = found["activations"] + found["logits"]
    for text in (f"it takes {found['on_device']}.0 GiB", f"{passing}.0 are", "--max-tokens"):
        assert text in str(refused.value)
    refuse_small_card(config, plan, torch.device("cpu"))
    refuse_small_card(config.changed(compile=True), plan, cuda)


def test_recomputed_activations_take_less_and_so_do_smaller_chunks_of_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = _config(tmp_path, model=save_tiny_model(tmp_path / "m", num_hidden_layers=4))
    plain = _estimate(config)
    less = _estimate(config.changed(gradient_checkpointing=True))
    assert less.activations is not None
    assert plain.activations is not None
    assert less.activations < plain.activations / 2
    wide = config.changed(model=save_tiny_model(tmp_path / "wide", vocab_size=16_384))
    whole = _estimate(wide).logits
    monkeypatch.setattr(head, "_CHUNK", 4)
    chunked = _estimate(wide).logits
    assert whole is not None
    assert chunked is not None
    # A block is half of this vocabulary, and two of them are there at a time.
    assert 0.9 < whole / (4 * 48 * 16_384) < 1.5
    assert chunked < whole / 5


def test_activations_grow_with_the_tokens_and_not_with_their_square(tmp_path: Path):
    config = _config(tmp_path)
    small, double, four = (
        pass_bytes(load_shapes(config.model, config), MicroBatchSize(n, 1, n))
        for n in (256, 512, 1024)
    )
    assert four - double == 2 * (double - small)


def test_shared_prefixes_take_the_keys_and_values_that_each_run_gathers(tmp_path: Path):
    """2 layers keep 2 key heads of 16 numbers for each of 900 more keys, and as many values."""
    config = _config(tmp_path)
    alone, shared = (
        pass_bytes(load_shapes(config.model, config), MicroBatchSize(1024, 1, n))
        for n in (1024, 1924)
    )
    kept = 2 * 2 * 2 * 16 * 4
    assert shared - alone > 900 * kept
    assert shared - alone < 8 * 1924 * kept


def test_live_bytes_are_those_of_tensors_that_live_by_hand():
    """x: 400 bytes. y and z are 400 each; y dies when z is there; views and in-place are free."""
    with _LiveBytes() as live:
        x = torch.zeros(100, device="meta")
        y = x + 1
        z = y * 2
        assert live.peak == 1200
        del y
        z.mul_(3)
        z.view(10, 10)
        z + 1
    assert live.peak == 1200


def test_a_model_whose_next_step_depends_on_data_has_unknown_activations(tmp_path: Path):
    config = _config(tmp_path)
    shapes = load_shapes(config.model, config)

    class Chooses(nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return hidden[hidden.sum(-1) > 0]

    shapes.causal_lm.get_decoder().norm = Chooses()
    asked: dict[str, Any] = {"num_processes": 1, "dtype": "float32", "file_bytes": 1}
    found = estimate_memory(shapes, [MicroBatchSize(8, 2, 8)], **asked)
    assert (found.activations, found.logits) == (None, None)
    assert found.on_device == found.parameters + found.gradients + found.moments


@pytest.mark.nightly
def test_the_estimate_is_near_the_measured_peak_of_two_processes(tmp_path: Path):
    """Beside what is estimated, a process loads libraries as it goes: some 50 MiB."""
    estimated, measured = measure(tmp_path, 2, num_tokens=256)
    for peak in measured:
        assert 0.8 * peak < estimated["on_cpu"] < 1.1 * peak
