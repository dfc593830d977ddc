"""A whole training: what it learns, what it writes, how it goes on, what it refuses."""

import gc
import json
import re
import shutil
import weakref
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from graphcredit.store import Store
from graphcredit.store.errors import InputError, NothingToTrainError, TrainingError
from graphcredit.store.sql.catalog import connect
from graphcredit.trainer.batching.aggregation import Aggregation
from graphcredit.trainer.config import TrainConfig, read_config
from graphcredit.trainer.engine.opening import compute_dtype
from graphcredit.trainer.loss.registry import OBJECTIVES
from graphcredit.trainer.training import train
from graphcredit.trainer.training_run import TrainingRun
from tests.trainer.logs import Row, episode, random_episodes, token_store, turn
from tests.trainer.models import NUM_TOKENS, save_tiny_model

_PROMPT = [5, 6, 7]
_GOOD = range(3, 30)
"""Response tokens that the bandit rewards: a quarter of all at the start."""


def _config(tmp_path: Path, store: Store, model: str | Path, **options: Any) -> TrainConfig:
    chosen: dict[str, Any] = {"mismatch_tolerance": 1e9, "learning_rate": 1e-3}
    chosen |= {"device": "cpu", "batch_size": 8, "max_tokens": 64} | options
    return TrainConfig(store=store.root, out=tmp_path / "out", model=str(model), **chosen)


def _shard(checkpoint: Path) -> Path:
    (shard,) = checkpoint.glob("*.safetensors")
    return shard


def _weights(directory: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(directory).state_dict()


def _pull(model: Any, seed: int) -> tuple[list[list[Row]], float]:
    """Play a bandit of one step 64 times; advantages are rewards less their mean."""
    with torch.no_grad():
        logprobs = model(torch.tensor([_PROMPT])).logits[0, -1].log_softmax(-1).double().numpy()
    arms = np.random.default_rng(seed).choice(
        NUM_TOKENS, size=64, p=np.exp(logprobs) / np.exp(logprobs).sum()
    )
    rewards = np.isin(arms, _GOOD).astype(float)
    pulls = [
        episode(
            f"pull-{number}",
            turn(_PROMPT, [int(arm)], [float(logprobs[arm])], advantage=float(advantage)),
        )
        for number, (arm, advantage) in enumerate(zip(arms, rewards - rewards.mean(), strict=True))
    ]
    return pulls, float(rewards.mean())


def test_a_bandit_learns_what_is_rewarded(tmp_path: Path):
    path, rewards = Path(save_tiny_model(tmp_path / "policy")), []
    for iteration in range(6):
        pulls, reward = _pull(AutoModelForCausalLM.from_pretrained(path), iteration)
        rewards.append(reward)
        if reward == 1.0:  # nothing is left to learn
            break
        store = token_store(tmp_path / "store", pulls, iteration=iteration)
        config = _config(tmp_path, store, path, iteration=iteration, mismatch_tolerance=0.1)
        config = config.changed(out=tmp_path / f"out-{iteration}", learning_rate=5e-3)
        path = Path(train(config)["model"])
    assert rewards[0] < 0.5
    assert rewards[-1] > 0.9


def test_the_policy_is_a_model_with_its_tokenizer(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    source = save_tiny_model(tmp_path / "m")
    result = train(_config(tmp_path, store, source))
    old, new = _weights(Path(source)), _weights(Path(result["model"]))
    assert old.keys() == new.keys()
    assert all(not torch.equal(old[name], new[name]) for name in old)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(result["model"])
    assert tokenizer.encode("w3 w4") == [3, 4]


def _kill_before_the_end(config: TrainConfig) -> None:
    """Leave an output as a kill before the first checkpoint does."""
    train(config)
    shutil.rmtree(config.out / "checkpoints")
    shutil.rmtree(config.out / "model")
    (config.out / "result.json").unlink()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_damaged_log_probabilities_are_computed_again_loudly(tmp_path: Path, damage: str):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    expected = _weights(Path(train(config)["model"]))
    _kill_before_the_end(config.changed(out=tmp_path / "again"))
    part = tmp_path / "again" / "logprobs" / "start" / "part-0-of-1.parquet"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "delete":
        part.unlink()
    else:
        part.write_bytes(data if damage == "flip" else data[:50])
    told: list[str] = []
    result = train(config.changed(out=tmp_path / "again"), on_notice=told.append)
    assert "computed again" in told[0]
    assert result["notices"] == told
    found = _weights(Path(result["model"]))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_another_model_at_the_same_path_is_not_taken_for_the_first(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), checkpoint_every=1)
    train(config)
    (tmp_path / "out" / "result.json").unlink()
    save_tiny_model(tmp_path / "m", seed=1)
    with pytest.raises(InputError, match="must be of the model that is given now"):
        train(config)


def _on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dtype auto be what it is there."""

    def on_a_gpu(config: TrainConfig, device: torch.device) -> str:
        return compute_dtype(config, torch.device("cuda"))

    monkeypatch.setattr("graphcredit.trainer.training.compute_dtype", on_a_gpu)


@pytest.mark.slow
def test_a_training_is_not_gone_on_with_in_another_arithmetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), checkpoint_every=1)
    assert train(config)["identity"]["arithmetic"] == "float32"
    (tmp_path / "out" / "result.json").unlink()
    with monkeypatch.context() as patch:
        _on_a_gpu(patch)
        with pytest.raises(InputError, match=r"arithmetic .* now \(bfloat16\).*\(float32\)"):
            train(config)
    _kill_before_the_end(config.changed(out=tmp_path / "killed"))
    _on_a_gpu(monkeypatch)
    assert train(config.changed(out=tmp_path / "killed"))["notices"] == [
        f"{tmp_path / 'killed' / 'logprobs' / 'start'} is of another training: its "
        "log-probabilities were computed again"
    ]


def test_a_result_of_other_data_is_not_returned(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    train(config)
    other = token_store(tmp_path / "other", random_episodes(1, 8))
    with pytest.raises(InputError, match=r"result.json must be of the plan"):
        train(config.changed(store=other.root))


def test_a_newer_iteration_does_not_change_what_is_gone_on_with(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    first = train(config)
    token_store(tmp_path / "s", random_episodes(1, 8), iteration=1)
    assert train(config) == first


def test_an_optimizer_of_other_parameters_is_refused_before_anything_is_computed(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    model = save_tiny_model(tmp_path / "m")
    train(_config(tmp_path, store, model, lora_rank=2))
    config = _config(tmp_path, store, model, continue_from=tmp_path / "out")
    with pytest.raises(InputError, match="of the parameters that are trained"):
        train(config.changed(out=tmp_path / "full"))
    assert not (tmp_path / "full" / "logprobs").exists()


@pytest.mark.parametrize("options", [{}, {"kl_estimator": "k1"}, {"objective": "gspo"}])
def test_a_single_update_needs_no_pass_for_the_policy_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
):
    """Its log-probabilities are those of the forward pass: the same weights, bit for bit."""
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    source = save_tiny_model(tmp_path / "m")
    config = _config(tmp_path, store, source, batch_size=99, max_tokens=24, **options)
    result = train(config)
    assert result["num_updates"] == 1
    assert not (tmp_path / "out" / "logprobs").exists()

    def scored(run: TrainingRun, reader: Any, on_progress: Any) -> Any:
        return run._score("start", lambda: run.engine, reader, on_progress)

    monkeypatch.setattr(TrainingRun, "_start", scored)
    train(config.changed(out=tmp_path / "passed"))
    assert (tmp_path / "passed" / "logprobs").exists()
    ours, theirs = _weights(Path(result["model"])), _weights(tmp_path / "passed" / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    timed = ("seconds", "tokens_per_second", "data_wait")
    found, expected = (_metrics(tmp_path / out)[0] for out in ("out", "passed"))
    assert {**found, **dict.fromkeys(timed)} == {**expected, **dict.fromkeys(timed)}


def test_every_update_is_a_line_and_a_row(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    result = train(_config(tmp_path, store, save_tiny_model(tmp_path / "m"), epochs=2))
    lines = (tmp_path / "out" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["update"] for row in rows] == list(range(result["num_updates"]))
    assert [row["epoch"] for row in rows] == sorted(row["epoch"] for row in rows)
    assert sum(row["num_steps"] for row in rows) == 2 * result["num_kept"]
    first = rows[0]
    assert first["ratio_mean"] == first["ratio_max"] == 1.0
    assert (first["clipped_high"], first["clipped_low"], first["kl"]) == (0.0, 0.0, 0.0)
    with connect(store) as connection:
        found = connection.execute(
            "SELECT update, loss, grad_norm, num_scored, fill FROM training ORDER BY update"
        ).fetchall()
    keys = ("update", "loss", "grad_norm", "num_scored", "fill")
    assert found == [tuple(row[key] for key in keys) for row in rows]


def test_a_finished_training_is_not_done_again(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    first = train(config)
    written = (tmp_path / "out" / "model" / "model.safetensors").stat().st_mtime_ns
    assert train(config) == first
    assert (tmp_path / "out" / "model" / "model.safetensors").stat().st_mtime_ns == written


def test_the_first_ratio_is_to_the_sampler_where_that_is_asked_for(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), correction="bypass")
    train(config.changed(kl_coefficient=0.0))
    assert not (tmp_path / "out" / "logprobs").exists()
    first = _metrics(tmp_path / "out")[0]
    assert first["ratio_mean"] != 1.0
    assert "kl" not in first


def test_the_gap_to_the_sampler_is_told_only_of_weights_that_it_could_have_had(tmp_path: Path):
    """Without a pass of its own the trainer knows those of the start in the first update alone."""
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    train(config)
    train(config.changed(out=tmp_path / "saving", correction="bypass"))
    names = ("mismatch_mean", "mismatch_max", "mismatch_share")
    expected, found = _metrics(tmp_path / "out"), _metrics(tmp_path / "saving")
    assert [found[0][name] for name in names] == [expected[0][name] for name in names]
    assert found[0]["mismatch_mean"] > 1
    assert not any(name in row for row in found[1:] for name in names)
    with connect(store) as connection:
        nulls = connection.execute(
            "SELECT mismatch_mean IS NULL FROM training WHERE training = 'saving' ORDER BY update"
        ).fetchall()
    assert nulls == [(False,), *[(True,)] * (len(found) - 1)]


def _metrics(out: Path) -> list[dict[str, Any]]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_divergence_is_from_the_reference_that_is_named(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    other = save_tiny_model(tmp_path / "other", seed=1)
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), reference=str(other))
    train(config)
    first = json.loads((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[0])
    assert first["kl"] > 0.01


def test_the_weights_of_a_reference_are_gone_before_the_first_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Modules in shards refer to each other: they live until their circle is looked for."""
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    name = save_tiny_model(tmp_path / "m")
    config = _config(tmp_path, store, name, reference=name, dtype="bfloat16")
    scorers: list[Any] = []
    opened = TrainingRun._open_reference

    def open_reference(run: TrainingRun, reference: str) -> Any:
        engine = opened(run, reference)
        scorers.append(weakref.ref(engine._scorer))
        return engine

    def look(what: str, *_: Any) -> None:
        if what == "train":
            assert [scorer() for scorer in scorers] == [None]

    monkeypatch.setattr(TrainingRun, "_open_reference", open_reference)
    gc.disable()
    try:
        train(config, on_progress=look)
    finally:
        gc.enable()


def test_the_optimizer_goes_on_where_an_earlier_training_ended(tmp_path: Path):
    """Not only the number of its steps: the same steps on other data leave other moments."""
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    source = save_tiny_model(tmp_path / "m")
    earlier = _config(tmp_path, store, source)
    other = token_store(tmp_path / "t", random_episodes(1, 8))
    assert (
        train(earlier)["num_updates"]
        == train(earlier.changed(store=other.root, out=tmp_path / "other"))["num_updates"]
    )
    found = []
    for number, before in enumerate((None, tmp_path / "out", tmp_path / "other", tmp_path / "out")):
        config = earlier.changed(continue_from=before, out=tmp_path / str(number))
        found.append(_weights(Path(train(config)["model"]))["lm_head.weight"])
    cold, warm, elsewhere, again = found
    assert not torch.equal(cold, warm)
    assert not torch.equal(warm, elsewhere)
    assert torch.equal(warm, again)


@pytest.mark.slow
def test_a_new_adapter_begins_with_an_optimizer_of_its_own(tmp_path: Path):
    """The moments of the one before are of parameters that were merged and are no more."""
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    source = save_tiny_model(tmp_path / "m")
    train(_config(tmp_path, store, source, lora_rank=2))
    following = _config(tmp_path, store, tmp_path / "out" / "model", lora_rank=2)
    cold = train(following.changed(out=tmp_path / "cold"))
    chain = train(following.changed(out=tmp_path / "chain", continue_from=tmp_path / "out"))
    (notice,) = chain["notices"]
    assert "an adapter begins with an optimizer of its own" in notice
    expected, found = _weights(Path(cold["model"])), _weights(Path(chain["model"]))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.slow
def test_a_damaged_optimizer_is_not_taken_over_and_its_training_makes_it_again(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    source = save_tiny_model(tmp_path / "m")
    config = _config(tmp_path, store, source, checkpoint_every=1, batch_size=4)
    train(config)
    newest = _shard(sorted((tmp_path / "out" / "checkpoints").iterdir())[-1])
    whole = {name: tensor.clone() for name, tensor in load_file(newest).items()}
    newest.write_bytes(newest.read_bytes()[:-1])
    following = config.changed(out=tmp_path / "next", continue_from=tmp_path / "out")
    with pytest.raises(InputError, match=r"newest checkpoint in .* must be whole"):
        train(following)
    (tmp_path / "out" / "result.json").unlink()
    train(read_config(tmp_path / "out" / "config.toml", {}))
    again = load_file(newest)
    assert again.keys() == whole.keys()
    assert all(torch.equal(again[name], whole[name]) for name in whole)
    train(following)


@pytest.mark.slow
def test_a_training_all_of_whose_checkpoints_are_damaged_begins_anew_without_them(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), checkpoint_every=1)
    result = train(config)
    whole = _weights(Path(result["model"]))
    (tmp_path / "out" / "result.json").unlink()
    newest, older = sorted((tmp_path / "out" / "checkpoints").iterdir(), reverse=True)
    _shard(newest).write_bytes(b"")
    again = train(config)
    (notice,) = again["notices"]
    assert f"{newest} is damaged" in notice
    found = _weights(tmp_path / "out" / "model")
    assert all(torch.equal(found[name], whole[name]) for name in whole)
    (tmp_path / "out" / "result.json").unlink()
    for path in (newest, older):
        _shard(path).unlink()
    with pytest.raises(TrainingError, match=r"none of the 2 in .* is whole"):
        train(config)
    assert not (tmp_path / "out" / "result.json").exists()
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    assert train(config)["num_updates"] == result["num_updates"]
    found = _weights(tmp_path / "out" / "model")
    assert all(torch.equal(found[name], whole[name]) for name in whole)


def test_steps_that_the_model_has_no_positions_for_are_refused_or_left_out_and_counted(
    tmp_path: Path,
):
    """Two episodes by hand: 5, 7, 5, 4 and 6 tokens; the longest is in row 1."""
    store = token_store(tmp_path / "s")
    model = save_tiny_model(tmp_path / "m", max_position_embeddings=5)
    config = _config(tmp_path, store, model)
    with pytest.raises(
        InputError,
        match=r"at most 5 tokens .* no more positions: 2 of 5 steps are longer, up to 7 tokens in "
        r".*parquet, row 1\. --max-tokens 5 leaves",
    ):
        train(config)
    result = train(config.changed(max_tokens=5))
    assert (result["num_kept"], result["dropped"]) == (3, {"over_long": 2})


def test_progress_is_told_of_every_stage_and_within_an_update(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), max_tokens=24)
    told: list[tuple[str, float, str]] = []
    result = train(
        config, on_progress=lambda what, done=0, total=0, note="": told.append((what, done, note))
    )
    stages = list(dict.fromkeys(what for what, _, _ in told))
    passes = ["log-probabilities: start", "train"]
    assert stages == ["read the steps", "load the model", *passes, "save the policy"]
    done = [done for what, done, _ in told if what == "train"]
    assert done == sorted(done)
    assert done[-1] == result["num_updates"]
    assert any(0 < each < 1 for each in done)
    newest = [note for what, _, note in told if what == "train"][-1]
    assert re.fullmatch(r"loss \S+ norm \S+ kl \S+ tokens/s \S+", newest)


def _without_signal(root: Path) -> Store:
    rounds = [episode("x", turn([1, 2], [3], advantage=0.0), turn([4], [5, 6], advantage=0.0))]
    return token_store(root, rounds)


@pytest.mark.parametrize("options", [{}, {"kl_estimator": "k1"}])
def test_advantages_that_are_all_0_are_refused_before_a_model_is_loaded(
    tmp_path: Path, options: dict[str, Any]
):
    """A divergence from the model at the start has gradient 0 there, so it teaches nothing."""
    config = _config(tmp_path, _without_signal(tmp_path / "s"), save_tiny_model(tmp_path / "m"))
    stages: list[str] = []
    with pytest.raises(
        NothingToTrainError, match=r"graphgpo_advantage is 0 in all 2 steps: every gradient"
    ):
        train(config.changed(**options), on_progress=lambda what, *_: stages.append(what))
    assert stages == ["read the steps"]


def test_advantages_that_are_all_0_are_told_before_something_else_is_learnt(tmp_path: Path):
    store = _without_signal(tmp_path / "s")
    source = save_tiny_model(tmp_path / "m")
    other = save_tiny_model(tmp_path / "other", seed=1)
    for options, teacher in (
        ({"entropy_coefficient": 0.1}, "the entropy bonus"),
        ({"reference": other}, f"the divergence from {other}"),
    ):
        out = tmp_path / f"out-{len(teacher)}"
        told: list[str] = []
        config = _config(tmp_path, store, source, **options).changed(out=out)
        result = train(config, on_notice=told.append)
        assert told[0] == f"graphgpo_advantage is 0 in all 2 steps: only {teacher} moves the policy"
        assert result["last"]["grad_norm"] > 0


def test_a_training_that_taught_nothing_says_so(tmp_path: Path):
    store = _without_signal(tmp_path / "s")
    source = save_tiny_model(tmp_path / "m")
    config = _config(tmp_path, store, source, reference=source)
    told: list[str] = []
    result = train(config, on_notice=told.append)
    assert result["nothing_learnt"] == "all advantages are 0"
    assert told == result["notices"]
    assert told[1:] == ["nothing was learnt: all advantages are 0"]
    assert train(config) == result
    other = token_store(tmp_path / "t", random_episodes(0, 4))
    sound = train(config.changed(store=other.root, out=tmp_path / "sound"))
    assert "nothing_learnt" not in sound


def test_what_the_sampler_logged_corrects_only_a_loss_that_takes_a_ratio_to_it(tmp_path: Path):
    stale = turn([1], [2], policy_version="p-1")
    store = token_store(tmp_path / "s", [episode("a", stale, turn([1], [2], policy_version="p-3"))])
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    against_sampler = config.changed(objective="reinforce", correction="bypass")
    with pytest.raises(InputError, match=r"1 of 2 steps are up to 2 older.*another --correction"):
        train(against_sampler)
    assert train(against_sampler.changed(max_staleness=1))["num_kept"] == 1
    for name, sound in (
        ("ratio", against_sampler.changed(objective="ppo")),
        ("weight", config.changed(objective="reinforce")),
    ):
        assert train(sound.changed(out=tmp_path / name))["num_kept"] == 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("objective", [row.name for row in OBJECTIVES])
def test_every_objective_and_aggregation_trains(tmp_path: Path, objective: str):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    source = save_tiny_model(tmp_path / "m")
    for aggregation in get_args(Aggregation):
        config = _config(tmp_path, store, source, objective=objective, aggregation=aggregation)
        result = train(config.changed(out=tmp_path / f"out-{aggregation}"))
        assert result["last"]["grad_norm"] > 0


def test_a_token_that_the_model_does_not_know_is_refused_before_anything_changes(tmp_path: Path):
    store = token_store(tmp_path / "s", [episode("x", turn([1, NUM_TOKENS], [2]))])
    with pytest.raises(
        InputError, match=rf"0 to {NUM_TOKENS - 1}: found {NUM_TOKENS} in .*parquet, row 0"
    ):
        train(_config(tmp_path, store, save_tiny_model(tmp_path / "m")))
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_a_log_of_another_policy_is_refused_with_the_gaps(tmp_path: Path):
    store = token_store(tmp_path / "s", random_episodes(0, 8))
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"), mismatch_tolerance=0.1)
    with pytest.raises(InputError, match="greater --mismatch-tolerance"):
        train(config)
    assert train(config.changed(mismatch_tolerance=1e9))["num_updates"] > 0


def test_which_run_must_be_said_where_there_are_two(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 4), run_id="a")
    store = token_store(tmp_path / "s", random_episodes(0, 4), run_id="b")
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
    with pytest.raises(InputError, match=r"has 2 runs \(a, b\): say which by --run"):
        train(config)
    assert train(config.changed(run="b"))["run_id"] == "b"
