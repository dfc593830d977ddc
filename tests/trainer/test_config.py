"""The options of a training: from a file, from flags, checked before anything is read."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphcredit.store.errors import OptionError, PathError
from graphcredit.store.options import help_texts
from graphcredit.trainer.config import TrainConfig, read_config
from graphcredit.trainer.engine.optimizer_step import learning_rate
from graphcredit.trainer.options import OptimizerOptions
from tests.cli.in_process import run

_NEEDED = {"store": "s", "out": "o", "model": "m"}


def test_what_is_saved_is_what_was_effective(tmp_path: Path):
    given = {"learning_rate": 3e-4, "objective_options": {"clip_low": 0.1}, "run": 'a"b'}
    config = read_config(None, {**_NEEDED, **given, "continue_from": tmp_path})
    path = tmp_path / "config.toml"
    path.write_text(config.as_toml(), encoding="utf-8")
    assert read_config(path, {}) == config


@given(text=st.text(min_size=1))
@example(text="\U0001f600")
@example(text="\x7f\x00\x1f\x80\u2028")
def test_any_text_is_read_back_from_toml(text: str):
    config = read_config(None, {**_NEEDED, "run": text, "objective_options": {"name": text}})
    written = tomllib.loads(config.as_toml().encode().decode())
    assert (written["run"], written["objective_options"]) == (text, {"name": text})


def test_a_path_that_is_not_text_is_refused():
    config = read_config(None, {**_NEEDED, "out": Path("run-\udcff")})
    with pytest.raises(OptionError, match=r"text in UTF-8.*run-\\udcff"):
        config.as_toml()


def test_what_is_given_wins_over_the_file(tmp_path: Path):
    path = tmp_path / "c.toml"
    path.write_text('store = "s"\nmodel = "m"\nepochs = 2\nseed = 5\n', encoding="utf-8")
    config = read_config(path, {"out": Path("o"), "epochs": 3})
    assert (config.epochs, config.seed, config.store) == (3, 5, (Path("s"),))


def test_options_of_the_objective_win_one_by_one_unless_it_is_another_objective(tmp_path: Path):
    path = tmp_path / "c.toml"
    text = (
        'store = "s"\nmodel = "m"\nout = "o"\n[objective_options]\nclip_low = 0.1\nclip_high = 0.2'
    )
    path.write_text(text, encoding="utf-8")

    def options(**given: Any) -> object:
        return read_config(path, given).objective_options

    assert options() == {"clip_low": 0.1, "clip_high": 0.2}
    added = {"clip_high": "0.28"}
    assert options(objective_options=added) == {"clip_low": 0.1, "clip_high": "0.28"}
    assert options(objective="ppo", objective_options=added) == {
        "clip_low": 0.1,
        "clip_high": "0.28",
    }
    assert options(objective="cispo", objective_options=added) == added
    assert options(objective="cispo") == {}


def test_numbers_are_the_same_however_they_were_written():
    given = {"correction_high": 2, "entropy_coefficient": 0, "lora_alpha": 5, "epochs": 2}
    whole = read_config(None, {**_NEEDED, **given})
    with_points = read_config(
        None, {**_NEEDED, **{n: float(v) for n, v in given.items()}, "epochs": 2}
    )
    assert whole.resolved().as_toml() == with_points.resolved().as_toml()
    assert "correction_high = 2.0\n" in whole.resolved().as_toml()
    assert "epochs = 2\n" in whole.resolved().as_toml()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 0}, "train.epochs must be at least 1: got 0"),
        ({"beta2": 1.0}, "train.beta2 must be below 1: got 1.0"),
        ({"epochs": True}, "train.epochs must be a whole number: got True"),
        ({"seed": None}, "train.seed must be a whole number: got None"),
        ({"kl_estimator": "k4"}, r"kl_estimator must be 'k1', 'k2', 'k3' or 'k3\+': got 'k4'"),
        ({"learnrate": 1.0}, "train has no option 'learnrate'; its options: store, out, model"),
        ({"context_parallel": 2}, "train has no option 'context_parallel'; its options: store"),
        ({"correction_low": 3.0}, "correction_low must not exceed correction_high: got 3 and 2"),
        ({"reference": "r", "kl_coefficient": 0.0}, "only with kl_coefficient above 0"),
    ],
)
def test_a_wrong_option_is_named_with_what_must_hold(given: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        read_config(None, {**_NEEDED, **given})


def test_a_missing_option_is_named():
    with pytest.raises(OptionError, match="train must be told 'model'"):
        read_config(None, {"store": "s", "out": "o"})


@pytest.mark.parametrize("text", ["epochs = ", "epochs = 'x"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, text: str):
    path = tmp_path / "broken.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=r"broken\.toml must be TOML"):
        read_config(path, _NEEDED)


def test_steps_without_advantage_stay_where_another_loss_wants_them():
    wanted = read_config(None, {**_NEEDED, "kl_coefficient": 0.01})
    unwanted = read_config(None, {**_NEEDED, "kl_coefficient": 0.0})
    assert (wanted.drops_zero_advantage, unwanted.drops_zero_advantage) == (False, True)


@pytest.mark.parametrize("aggregation", ["trajectory-mean", "group-mean"])
def test_steps_without_advantage_stay_where_they_have_a_part_of_a_share(aggregation: str):
    given = {**_NEEDED, "kl_coefficient": 0.0, "aggregation": aggregation}
    assert not read_config(None, given).drops_zero_advantage


def test_a_directory_is_no_configuration(tmp_path: Path):
    with pytest.raises(PathError, match=r"Is a directory\. Name a file"):
        read_config(tmp_path, _NEEDED)


def test_every_option_is_explained_and_is_a_flag():
    names = TrainConfig.model_fields.keys()
    assert [name for name in names if not help_texts(TrainConfig)[name]] == []
    shown = run("train", "--help")
    assert shown.exit_code == 0
    flags = {f"--{name.replace('_', '-')}" for name in names - {"store", "objective_options"}}
    assert {flag for flag in flags if flag in shown.out} == flags


@pytest.mark.parametrize("changed", [{"checkpoint_every": 3}, {"gradient_checkpointing": True}])
def test_what_changes_no_weight_is_not_in_the_fingerprint(changed: dict[str, Any]):
    config = TrainConfig(store=Path("s"), out=Path("o"), model="m")
    assert config.changed(**changed).decisive_text() == config.decisive_text()
    assert config.changed(seed=1).decisive_text() != config.decisive_text()


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("constant", [1.0, 1.0]), ("linear", [0.7, 0.4]), ("cosine", [0.775, 0.325])],
)
def test_the_learning_rate_goes_from_its_peak_towards_its_minimum(
    schedule: Any, rates: list[float]
):
    """Two updates of warm-up, then three from 1 on, which would be at 0.1 with the next."""
    options = OptimizerOptions(
        learning_rate=1.0, min_learning_rate=0.1, warmup=2, schedule=schedule
    )
    found = [learning_rate(options, update, 5) for update in range(5)]
    assert found == pytest.approx([0.5, 1.0, 1.0, *rates])


def test_sft_has_defaults_of_its_own_which_options_override():
    config = TrainConfig(store=Path("s"), out=Path("o"), model="m", objective="sft")
    found = (config.correction, config.kl_coefficient, config.learning_rate)
    assert found == ("none", 0.0, 1e-5)
    assert config.changed(kl_coefficient=0.1).kl_coefficient == 0.1
    with pytest.raises(OptionError, match="min_learning_rate must not exceed"):
        config.changed(min_learning_rate=1e-4)
