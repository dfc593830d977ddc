"""Checkpoints of several processes: resharded, damaged, killed half way, and exported."""

import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model import export
from tests.examples import nightly
from tests.trainer import rank_worker, shard_worker
from tests.trainer.models import save_tiny_model
from tests.trainer.packs import pack_samples, random_samples
from tests.trainer.ranks import run_ranks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("lora_rank", "tied"), [(0, True), (4, False)])
def test_three_processes_then_two_get_what_one_gets(tmp_path: Path, lora_rank: int, tied: bool):
    """97 words on three processes are uneven; four rows of an adapter leave one empty."""
    name = save_tiny_model(tmp_path / "model", tie_word_embeddings=tied)
    worlds = (1, 3, 2)
    for update, world_size in enumerate(worlds):
        codes = run_ranks(world_size, shard_worker.leg, tmp_path, lora_rank, update)
        assert codes == [0] * world_size
        files = [*(tmp_path / "out" / f"update-{update + 1:06d}").glob("*.safetensors")]
        assert len(files) == world_size
        sizes = [sum(t.numel() for t in load_file(file).values()) for file in files]
        assert max(sizes) < 1.1 * sum(sizes) / world_size or lora_rank
    expected, norms = shard_worker.alone(tmp_path, lora_rank, len(worlds))
    found = open_engine(name, rank_worker.config(name, lora_rank))
    found.load_state(rank_worker.newest(found, tmp_path / "out"))
    for ours, theirs in (
        (found.state().weights, expected.state().weights),
        (found.state().optimizer, expected.state().optimizer),
    ):
        rank_worker.assert_close(ours, theirs)
    told = [float((tmp_path / f"norm-{update}").read_text()) for update in range(len(worlds))]
    assert told == pytest.approx(norms, rel=1e-6)
    assert shard_worker.train(found, 3) == pytest.approx(shard_worker.train(expected, 3), rel=1e-6)


@pytest.mark.parametrize(("victim", "moment"), [nightly(0, "before"), (1, "after")])
def test_a_process_killed_at_a_checkpoint_leaves_the_one_before(
    tmp_path: Path, victim: int, moment: str
):
    """The model has no biases: that of a key has a gradient of noise, which AdamW makes large."""
    save_tiny_model(tmp_path / "model", "llama")
    assert run_ranks(2, shard_worker.leg, tmp_path, 0, 0) == [0, 0]
    codes = run_ranks(2, shard_worker.killed, tmp_path, victim, moment)
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] not in (0, -1)
    assert (tmp_path / "written").exists() == (moment == "after")
    assert sorted(path.name for path in (tmp_path / "out").glob("update-??????")) == [
        "update-000001"
    ]
    assert run_ranks(2, shard_worker.leg, tmp_path, 0, 1, 2) == [0, 0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "update-000001",
        "update-000002",
        "update-000003",
    ]
    expected, _ = shard_worker.alone(tmp_path, 0, 3)
    found = open_engine(str(tmp_path / "model"), rank_worker.config(str(tmp_path / "model"), 0))
    found.load_state(rank_worker.newest(found, tmp_path / "out"))
    rank_worker.assert_close(found.state().weights, expected.state().weights)


def test_a_damaged_shard_of_one_process_sends_all_back_and_is_told(tmp_path: Path):
    save_tiny_model(tmp_path / "model")
    assert run_ranks(2, shard_worker.leg, tmp_path, 0, 0, 2) == [0, 0]
    (shard,) = (tmp_path / "out" / "update-000002").glob("shard-00002-*")
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    assert run_ranks(2, shard_worker.fallen_back, tmp_path, 1) == [0, 0]
    for rank in range(2):
        told = (tmp_path / f"told-{rank}").read_text()
        assert f"update-000002 is damaged and not used: {shard.name} is not what was" in told


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_sharded_policy_is_exported_file_by_file(tmp_path: Path, lora_rank: int):
    """With its adapter merged, where it has one."""
    save_tiny_model(tmp_path / "model", tie_word_embeddings=True)
    assert run_ranks(3, shard_worker.leg, tmp_path, lora_rank, 0) == [0, 0, 0]
    assert run_ranks(3, shard_worker.exported, tmp_path, lora_rank) == [0, 0, 0]
    expected, _ = shard_worker.alone(tmp_path, lora_rank, 1)
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    if not lora_rank:
        for name, value in expected.state().weights.items():
            torch.testing.assert_close(saved.get_parameter(name), value, rtol=1e-4, atol=1e-5)
    assert saved.lm_head.weight is saved.model.embed_tokens.weight
    batch = pack_samples(random_samples(4, seed=9))
    merged = open_engine(str(tmp_path / "saved"), rank_worker.config(str(tmp_path / "saved"), 0))
    ours, theirs = (engine.score(batch).logprob for engine in (merged, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


def test_a_policy_of_several_files_has_an_index_that_transformers_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export, "FILE_BYTES", 100_000)
    name = save_tiny_model(tmp_path / "model")
    engine = open_engine(name, rank_worker.config(name, 0))
    engine.save_pretrained(tmp_path / "saved")
    files = sorted((tmp_path / "saved").glob("*.safetensors"))
    assert [file.name for file in files] == [
        f"model-{number:05d}-of-{len(files):05d}.safetensors" for number in range(1, len(files) + 1)
    ]
    assert len(files) > 2
    assert all(file.stat().st_size < 200_000 for file in files)
    saved, source = (AutoModelForCausalLM.from_pretrained(tmp_path / d) for d in ("saved", "model"))
    assert all(torch.equal(p, source.get_parameter(n)) for n, p in saved.named_parameters())
