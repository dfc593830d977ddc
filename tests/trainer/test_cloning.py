"""Behaviour cloning: the loss it reports, that equal steps count as often as they are, learning."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcredit.store.errors import InputError, OptionError
from graphcredit.trainer.cloning.clone import CloneConfig, clone, mean_loss
from graphcredit.trainer.cloning.examples import Pairs
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from tests.trainer.logs import episode, token_store, turn
from tests.trainer.models import save_tiny_model
from tests.trainer.packs import pack_samples

END = 2


def _engine(directory: Path) -> TrainingEngine:
    config = TrainConfig(store=directory, out=directory, model=str(directory), device="cpu")
    return open_engine(str(directory), config, frozen=True)


def _config(tmp_path: Path, **options: Any) -> CloneConfig:
    """Return a cloning of a log in which the answer to [3, n] or [4, n] is [n + 20, end]."""
    if not (tmp_path / "store").exists():
        steps = [turn([k, n], [n + 20, END]) for k in (3, 4) for n in range(5, 15)]
        token_store(tmp_path / "store", [episode("a", *steps), episode("b", *steps)])
        save_tiny_model(tmp_path / "init", initializer_range=0.02)
    given: dict[str, Any] = {"steps": 60, "batch_size": 16, "warmup": 5, "learning_rate": 5e-3}
    return CloneConfig(
        store=tmp_path / "store",
        run="r0",
        model=tmp_path / "init",
        **{"out": tmp_path / "model", **given, **options},
    )


def test_the_loss_is_the_mean_over_the_response_tokens_of_all_steps(tmp_path: Path):
    engine = _engine(Path(save_tiny_model(tmp_path / "m")))
    with engine.frozen():
        first = engine.score(pack_samples([([3, 4], [5, 6, 7])])).logprob.tolist()
        second = engine.score(pack_samples([([8], [9])])).logprob.tolist()
    pairs = Pairs(
        prompts=(np.array([3, 4], np.int32), np.array([8], np.int32)),
        responses=(np.array([5, 6, 7], np.int32), np.array([9], np.int32)),
        count=np.array([2, 5]),
    )
    expected = -(2 * math.fsum(first) + 5 * second[0]) / (2 * 3 + 5 * 1)
    assert mean_loss(engine, pairs) == pytest.approx(expected, rel=1e-6)


def test_a_model_learns_what_the_log_does_and_what_it_has_in_common(tmp_path: Path):
    seen: list[tuple[str, float, int, str]] = []
    figures = clone(_config(tmp_path), on_progress=lambda *args: seen.append(args))
    assert (figures["num_steps"], figures["num_pairs"], figures["longest_response"]) == (40, 20, 2)
    _, _, _, note = seen[0]
    assert float(note.removeprefix("loss ")) == pytest.approx(math.log(97), abs=0.1)
    assert [done for _, done, total, _ in seen if total == 60] == [*range(1, 61)]
    assert figures["loss"] < 0.1
    # The held-out prompt has a twin, [3, n] or [4, n], with the same answer.
    assert figures["held_out_loss"] < 0.5
    with (engine := _engine(tmp_path / "model")).frozen():
        logprob = engine.score(pack_samples([([3, 5], [25, END])])).logprob
    assert logprob.exp().min() > 0.8


def test_the_seed_decides_every_bit_and_the_tokenizer_comes_along(tmp_path: Path):
    files: dict[str, bytes] = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        clone(_config(tmp_path, out=tmp_path / name, steps=3, seed=seed))
        files[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert files["a"] == files["b"] != files["c"]
    assert (tmp_path / "a" / "tokenizer.json").exists()


def test_what_cannot_be_learnt_is_refused_and_no_model_is_left(tmp_path: Path):
    config = _config(tmp_path)
    token_store(tmp_path / "other", [episode("a", turn([3], [96]), turn([4], [97]))])
    with pytest.raises(InputError, match="token ids must be those of"):
        clone(config.changed(store=tmp_path / "other", steps=1))
    with pytest.raises(InputError, match="none in"):
        clone(config.changed(run="r1"))
    with pytest.raises(OptionError, match="steps"):
        clone(config.changed(steps=0))
    assert not (tmp_path / "model").exists()
