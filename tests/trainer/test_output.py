"""The output directory: begun, gone on with, or refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.output import effective_config, open_output


def _config(out: Path) -> TrainConfig:
    return TrainConfig(store=Path("s"), out=out, model="m")


def test_the_same_training_is_gone_on_with(tmp_path: Path):
    config = _config(tmp_path / "out")
    open_output(config).logprob_dir.mkdir()
    moved = replace(config, store=Path("elsewhere"), checkpoint_every=3, allow_mismatch=True)
    assert open_output(moved).result() is None


def test_another_training_is_refused_by_the_option_that_differs(tmp_path: Path):
    config = _config(tmp_path / "out")
    open_output(config).logprob_dir.mkdir()
    with pytest.raises(InputError, match=r"learning_rate is 0\.1, was 1e-06"):
        open_output(replace(config, learning_rate=0.1))


def test_a_training_that_was_refused_at_once_may_be_configured_otherwise(tmp_path: Path):
    config = _config(tmp_path / "out")
    open_output(config)
    again = replace(config, learning_rate=0.1)
    assert "learning_rate = 0.1" in open_output(again).config_path.read_text(encoding="utf-8")


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"has no config\.toml but holds other files"):
        open_output(_config(tmp_path / "out"))


def test_the_result_is_there_once_it_is_written(tmp_path: Path):
    output = open_output(_config(tmp_path / "out"))
    output.write_result({"num_updates": 3})
    assert output.result() == {"num_updates": 3}


def test_two_trainings_at_one_time_are_refused(tmp_path: Path):
    output = open_output(_config(tmp_path / "out"))
    with output.held(), pytest.raises(InputError, match="another process trains into it"):  # noqa: SIM117
        with output.held():
            raise AssertionError


def test_what_a_killed_training_left_half_written_is_swept(tmp_path: Path):
    output = open_output(_config(tmp_path / "out"))
    half = tmp_path / "out" / "model.1a2b3c4d.tmp"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    with output.held():
        assert not half.exists()


def test_a_notice_is_kept_once(tmp_path: Path):
    output = open_output(_config(tmp_path / "out"))
    for text in ("one\nline", "two", "one line"):
        output.keep_notice(text)
    assert output.notices() == ["one line", "two"]


def test_the_same_command_goes_on_with_the_iteration_it_began_with(tmp_path: Path):
    config = _config(tmp_path / "out")
    begun = replace(config, run="r", iteration=3)
    assert effective_config(config) == config
    open_output(begun).logprob_dir.mkdir()
    assert effective_config(config) == begun
    assert effective_config(replace(config, iteration=4)).iteration == 4
