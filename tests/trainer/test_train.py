"""A whole training: what it learns, what it writes, how it goes on, what it refuses."""

import gc
import json
import re
import shutil
import weakref
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from graphcredit.store import Store
from graphcredit.store.errors import InputError, NothingToTrainError, TrainingError
from graphcredit.store.sql.catalog import connect
from graphcredit.trainer.config import TrainConfig, read_config
from graphcredit.trainer.engine.kept import KeptEngines
from graphcredit.trainer.engine.opening import compute_dtype
from graphcredit.trainer.loss.registry import OBJECTIVES
from graphcredit.trainer.options import Aggregation
from graphcredit.trainer.training import plan_training, train
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


def _weights(directory: str | Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(directory).state_dict()


def _assert_equal(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def _metrics(out: Path) -> list[dict[str, Any]]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


class Finished(NamedTuple):
    """A training of three updates and two epochs, for several tests. They change copies of it."""

    config: TrainConfig
    result: dict[str, Any]
    told: list[tuple[str, float, str]]
    """Stage, how much of it was done, and the newest metrics."""

    def copied(self, tmp_path: Path) -> TrainConfig:
        """Return the configuration of a copy of its output."""
        return self.config.changed(out=shutil.copytree(self.config.out, tmp_path / "copy"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_model(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return token_store(tmp_path_factory.mktemp("s") / "store", random_episodes(0, 8))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, store: Store, model: str) -> Finished:
    config = _config(tmp_path_factory.mktemp("finished"), store, model, epochs=2, max_tokens=24)
    told: list[tuple[str, float, str]] = []
    result = train(
        config, on_progress=lambda what, done=0, total=0, note="": told.append((what, done, note))
    )
    return Finished(config, result, told)


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


def test_the_policy_is_a_model_with_its_tokenizer(finished: Finished, model: str):
    old, new = _weights(model), _weights(finished.result["model"])
    assert old.keys() == new.keys()
    assert all(not torch.equal(old[name], new[name]) for name in old)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(finished.result["model"])
    assert tokenizer.encode("w3 w4") == [3, 4]


def _kill_before_the_end(out: Path) -> None:
    """Leave an output as a kill before the first checkpoint does."""
    shutil.rmtree(out / "checkpoints")
    shutil.rmtree(out / "model")
    (out / "result.json").unlink()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_damaged_log_probabilities_are_computed_again_loudly(
    tmp_path: Path, finished: Finished, damage: str
):
    config = finished.copied(tmp_path)
    _kill_before_the_end(config.out)
    part = config.out / "logprobs" / "start" / "part-0-of-1.parquet"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "delete":
        part.unlink()
    else:
        part.write_bytes(data if damage == "flip" else data[:50])
    told: list[str] = []
    result = train(config, on_notice=told.append)
    assert "computed again" in told[0]
    assert result["notices"] == told
    _assert_equal(_weights(result["model"]), _weights(finished.result["model"]))


def test_another_model_at_the_same_path_is_not_taken_for_the_first(tmp_path: Path, store: Store):
    config = _config(tmp_path, store, save_tiny_model(tmp_path / "m"))
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: Finished
):
    assert finished.result["identity"]["arithmetic"] == "float32"
    config = finished.copied(tmp_path)
    (config.out / "result.json").unlink()
    _on_a_gpu(monkeypatch)
    with pytest.raises(InputError, match=r"arithmetic .* now \(bfloat16\).*\(float32\)"):
        train(config)
    shutil.rmtree(config.out / "checkpoints")
    assert train(config)["notices"] == [
        f"{config.out / 'logprobs' / 'start'} is of another training: its "
        "log-probabilities were computed again"
    ]


def test_a_finished_training_is_not_done_again_and_its_result_is_of_its_data(
    tmp_path: Path, finished: Finished
):
    """A newer iteration changes nothing: the command goes on with the one it began with."""
    config = finished.copied(tmp_path)
    newer = Store(shutil.copytree(config.store[0], tmp_path / "newer"))
    token_store(newer.root, random_episodes(1, 8), iteration=1)
    policy = config.out / "model" / "model.safetensors"
    written = policy.stat().st_mtime_ns
    for store in (config.store[0], newer.root):
        assert train(config.changed(store=store)) == finished.result
    assert policy.stat().st_mtime_ns == written
    other = token_store(tmp_path / "other", random_episodes(1, 8))
    with pytest.raises(InputError, match=r"result.json must be of the plan"):
        train(config.changed(store=other.root))


def test_an_optimizer_of_other_parameters_is_refused_before_anything_is_computed(
    tmp_path: Path, finished: Finished
):
    deep = save_tiny_model(tmp_path / "deep", num_hidden_layers=3)
    config = finished.config.changed(continue_from=finished.config.out, out=tmp_path / "out")
    with pytest.raises(InputError, match="of the parameters that are trained"):
        train(config.changed(model=deep))
    assert not (tmp_path / "out" / "logprobs").exists()


@pytest.mark.parametrize("options", [{}, {"objective": "gspo", "kl_estimator": "k1"}])
def test_a_single_update_needs_no_pass_for_the_policy_at_the_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
    model: str,
    options: dict[str, Any],
):
    """Its log-probabilities are those of the forward pass: the same weights, bit for bit."""
    config = _config(tmp_path, store, model, batch_size=99, max_tokens=24, **options)
    result = train(config)
    assert result["num_updates"] == 1
    assert not (tmp_path / "out" / "logprobs").exists()

    def scored(run: TrainingRun, reader: Any, told: Any) -> Any:
        return run._score("start", lambda: run.engine, reader, told)

    monkeypatch.setattr(TrainingRun, "_start", scored)
    train(config.changed(out=tmp_path / "passed"))
    assert (tmp_path / "passed" / "logprobs").exists()
    _assert_equal(_weights(result["model"]), _weights(tmp_path / "passed" / "model"))
    timed = ("seconds", "tokens_per_second")
    ours, theirs = (_metrics(tmp_path / out)[0] for out in ("out", "passed"))
    assert {**ours, **dict.fromkeys(timed)} == {**theirs, **dict.fromkeys(timed)}


def test_every_update_is_a_line_and_a_row(finished: Finished):
    rows = _metrics(finished.config.out)
    assert [row["update"] for row in rows] == list(range(finished.result["num_updates"]))
    assert [row["epoch"] for row in rows] == sorted(row["epoch"] for row in rows)
    assert sum(row["num_steps"] for row in rows) == 2 * finished.result["num_kept"]
    first = rows[0]
    assert first["ratio_mean"] == first["ratio_max"] == 1.0
    assert (first["clipped_high"], first["clipped_low"], first["kl"]) == (0.0, 0.0, 0.0)
    keys = ("update", "loss", "grad_norm", "num_scored", "num_tokens")
    with connect(Store(*finished.config.store)) as connection:
        stored = connection.execute(
            f"SELECT {', '.join(keys)} FROM training WHERE training = 'out' ORDER BY update"
        ).fetchall()
    assert stored == [tuple(row[key] for key in keys) for row in rows]


def test_without_a_pass_of_its_own_only_the_first_update_knows_the_gap_to_the_sampler(
    tmp_path: Path, finished: Finished
):
    """Ratios are to the sampler, and of later updates the trainer knows no weights of the start."""
    config = finished.config.changed(out=tmp_path / "saving", correction="bypass")
    train(config.changed(kl_coefficient=0.0))
    assert not (config.out / "logprobs").exists()
    names = ("mismatch_mean", "mismatch_max", "mismatch_share")
    expected, rows = _metrics(finished.config.out), _metrics(config.out)
    assert [rows[0][name] for name in names] == [expected[0][name] for name in names]
    assert rows[0]["mismatch_mean"] > 1
    assert rows[0]["ratio_mean"] != 1.0
    assert "kl" not in rows[0]
    assert not any(name in row for row in rows[1:] for name in names)
    with connect(Store(*config.store)) as connection:
        nulls = connection.execute(
            "SELECT mismatch_mean IS NULL FROM training WHERE training = 'saving' ORDER BY update"
        ).fetchall()
    assert nulls == [(False,), *[(True,)] * (len(rows) - 1)]


def test_the_divergence_is_from_the_named_reference_which_is_gone_before_the_first_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store, model: str, other_model: str
):
    """Modules in shards refer to each other: they live until their circle is looked for."""
    config = _config(tmp_path, store, model, reference=other_model, dtype="bfloat16")
    scorers: list[Any] = []
    opened = KeptEngines.reference

    def open_reference(engines: KeptEngines, reference: str, options: TrainConfig) -> Any:
        engine = opened(engines, reference, options)
        scorers.append(weakref.ref(engine._scorer))
        return engine

    def look(what: str, *_: Any) -> None:
        if what == "train":
            assert [scorer() for scorer in scorers] == [None]

    monkeypatch.setattr(KeptEngines, "reference", open_reference)
    gc.disable()
    try:
        train(config, on_progress=look)
    finally:
        gc.enable()
    assert _metrics(config.out)[0]["kl"] > 1


def test_the_optimizer_goes_on_where_an_earlier_training_ended(tmp_path: Path, finished: Finished):
    """Not only the number of its steps: the same steps on other data leave other moments."""
    config = finished.config
    data = token_store(tmp_path / "t", random_episodes(1, 8))
    other = train(config.changed(store=data.root, out=tmp_path / "other"))
    assert other["num_updates"] == finished.result["num_updates"]
    cold, warm, elsewhere = (
        _weights(path)["lm_head.weight"]
        for path in (
            finished.result["model"],
            *(
                train(config.changed(continue_from=before, out=tmp_path / f"after-{before.name}"))[
                    "model"
                ]
                for before in (config.out, tmp_path / "other")
            ),
        )
    )
    assert not torch.equal(cold, warm)
    assert not torch.equal(warm, elsewhere)


@pytest.mark.slow
def test_a_new_adapter_begins_with_an_optimizer_of_its_own(
    tmp_path: Path, store: Store, model: str
):
    """The moments of the one before are of parameters that were merged and are no more."""
    train(_config(tmp_path, store, model, lora_rank=2))
    following = _config(tmp_path, store, tmp_path / "out" / "model", lora_rank=2)
    cold = train(following.changed(out=tmp_path / "cold"))
    chain = train(following.changed(out=tmp_path / "chain", continue_from=tmp_path / "out"))
    (notice,) = chain["notices"]
    assert "an adapter begins with an optimizer of its own" in notice
    _assert_equal(_weights(cold["model"]), _weights(chain["model"]))


@pytest.mark.slow
def test_a_damaged_optimizer_is_not_taken_over_and_its_training_makes_it_again(
    tmp_path: Path, store: Store, model: str
):
    config = _config(tmp_path, store, model, checkpoint_every=1, batch_size=4)
    train(config)
    newest = _shard(sorted((tmp_path / "out" / "checkpoints").iterdir())[-1])
    whole = {name: tensor.clone() for name, tensor in load_file(newest).items()}
    newest.write_bytes(newest.read_bytes()[:-1])
    following = config.changed(out=tmp_path / "next", continue_from=tmp_path / "out")
    with pytest.raises(InputError, match=r"newest checkpoint in .* must be whole"):
        train(following)
    (tmp_path / "out" / "result.json").unlink()
    train(read_config(tmp_path / "out" / "config.toml", {}))
    _assert_equal(load_file(newest), whole)
    train(following)


@pytest.mark.slow
def test_a_training_all_of_whose_checkpoints_are_damaged_begins_anew_without_them(
    tmp_path: Path, store: Store, model: str
):
    config = _config(tmp_path, store, model, checkpoint_every=1)
    result = train(config)
    whole = _weights(result["model"])
    (tmp_path / "out" / "result.json").unlink()
    newest, older = sorted((tmp_path / "out" / "checkpoints").iterdir(), reverse=True)
    _shard(newest).write_bytes(b"")
    again = train(config)
    (notice,) = again["notices"]
    assert f"{newest} is damaged" in notice
    _assert_equal(_weights(tmp_path / "out" / "model"), whole)
    (tmp_path / "out" / "result.json").unlink()
    for path in (newest, older):
        _shard(path).unlink()
    with pytest.raises(TrainingError, match=r"none of the 2 in .* is whole"):
        train(config)
    assert not (tmp_path / "out" / "result.json").exists()
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    assert train(config)["num_updates"] == result["num_updates"]
    _assert_equal(_weights(tmp_path / "out" / "model"), whole)


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


def test_progress_is_told_of_every_stage_and_within_an_update(finished: Finished):
    stages = list(dict.fromkeys(what for what, _, _ in finished.told))
    passes = ["log-probabilities: start", "train"]
    assert stages == ["read the steps", "load the model", *passes, "save the policy"]
    done = [done for what, done, _ in finished.told if what == "train"]
    assert done == sorted(done)
    assert done[-1] == finished.result["num_updates"]
    assert any(0 < each < 1 for each in done)
    newest = [note for what, _, note in finished.told if what == "train"][-1]
    assert re.fullmatch(r"loss \S+ norm \S+ kl \S+ tokens/s \S+", newest)


def _without_signal(root: Path) -> Store:
    rounds = [episode("x", turn([1, 2], [3], advantage=0.0), turn([4], [5, 6], advantage=0.0))]
    return token_store(root, rounds)


@pytest.mark.parametrize("options", [{}, {"kl_estimator": "k1"}])
def test_advantages_that_are_all_0_are_refused_before_a_model_is_loaded(
    tmp_path: Path, model: str, options: dict[str, Any]
):
    """A divergence from the model at the start has gradient 0 there, so it teaches nothing."""
    config = _config(tmp_path, _without_signal(tmp_path / "s"), model)
    stages: list[str] = []
    with pytest.raises(
        NothingToTrainError, match=r"reach_advantage is 0 in all 2 steps: every gradient"
    ):
        train(config.changed(**options), on_progress=lambda what, *_: stages.append(what))
    assert stages == ["read the steps"]


def test_advantages_that_are_all_0_are_told_before_something_else_is_learnt(
    tmp_path: Path, model: str, other_model: str
):
    store = _without_signal(tmp_path / "s")
    for options, teacher in (
        ({"entropy_coefficient": 0.1}, "the entropy bonus"),
        ({"reference": other_model}, f"the divergence from {other_model}"),
    ):
        out = tmp_path / f"out-{len(teacher)}"
        told: list[str] = []
        config = _config(tmp_path, store, model, **options).changed(out=out)
        result = train(config, on_notice=told.append)
        assert told[0] == f"reach_advantage is 0 in all 2 steps: only {teacher} moves the policy"
        assert result["last"]["grad_norm"] > 0


def test_what_the_sampler_logged_corrects_only_a_loss_that_takes_a_ratio_to_it(
    tmp_path: Path, model: str
):
    stale = turn([1], [2], policy_version="p-1")
    store = token_store(tmp_path / "s", [episode("a", stale, turn([1], [2], policy_version="p-3"))])
    config = _config(tmp_path, store, model)
    against_sampler = config.changed(objective="reinforce", correction="bypass")
    with pytest.raises(InputError, match=r"1 of 2 steps are up to 2 older.*another --correction"):
        plan_training(against_sampler)
    for sound, num_kept in (
        (against_sampler.changed(max_staleness=1), 1),
        (against_sampler.changed(objective="ppo"), 2),
        (config.changed(objective="reinforce"), 2),
    ):
        assert plan_training(sound)[-1].num_kept == num_kept


_AGGREGATIONS = get_args(Aggregation)


@pytest.mark.parametrize(
    ("objective", "aggregation"),
    [(row.name, _AGGREGATIONS[n % len(_AGGREGATIONS)]) for n, row in enumerate(OBJECTIVES)],
)
def test_every_objective_and_every_aggregation_trains(
    tmp_path: Path, store: Store, model: str, objective: str, aggregation: Aggregation
):
    result = train(_config(tmp_path, store, model, objective=objective, aggregation=aggregation))
    assert result["last"]["grad_norm"] > 0


def test_a_token_that_the_model_does_not_know_is_refused_before_anything_changes(
    tmp_path: Path, model: str
):
    store = token_store(tmp_path / "s", [episode("x", turn([1, NUM_TOKENS], [2]))])
    with pytest.raises(
        InputError, match=rf"0 to {NUM_TOKENS - 1}: found {NUM_TOKENS} in .*parquet, row 0"
    ):
        train(_config(tmp_path, store, model))
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_a_log_of_another_policy_is_refused_with_the_gaps(tmp_path: Path, finished: Finished):
    config = finished.config.changed(out=tmp_path / "out", mismatch_tolerance=0.1)
    with pytest.raises(InputError, match="greater --mismatch-tolerance"):
        train(config)


def test_which_run_must_be_said_where_there_are_two(tmp_path: Path, model: str):
    token_store(tmp_path / "s", random_episodes(0, 4), run_id="a")
    store = token_store(tmp_path / "s", random_episodes(0, 4), run_id="b")
    config = _config(tmp_path, store, model)
    with pytest.raises(InputError, match=r"has 2 runs \(a, b\): say which by --run"):
        train(config)
    assert plan_training(config.changed(run="b"))[0].run == "b"
