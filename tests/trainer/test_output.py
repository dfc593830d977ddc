"""The output directory: begun, gone on with, or refused."""

from pathlib import Path

import pytest

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.output.directory import effective_config, open_output


def _config(out: Path) -> TrainConfig:
    return TrainConfig(store=Path("s"), out=out, model="m")


def _begin(config: TrainConfig) -> None:
    """Leave what a training has after its first pass."""
    with open_output(config) as output:
        output.logprob_dir.mkdir()


def test_the_same_training_is_gone_on_with(tmp_path: Path):
    config = _config(tmp_path / "out")
    _begin(config)
    moved = config.changed(store=Path("elsewhere"), checkpoint_every=3, mismatch_tolerance=1e9)
    with open_output(moved) as output:
        assert output.result() is None


def test_another_training_is_refused_by_the_option_that_differs(tmp_path: Path):
    config = _config(tmp_path / "out")
    _begin(config)
    with (
        pytest.raises(InputError, match=r"learning_rate is 0\.1, was 1e-06"),
        open_output(config.changed(learning_rate=0.1)),
    ):
        raise AssertionError


def test_a_training_that_was_refused_at_once_may_be_configured_otherwise(tmp_path: Path):
    config = _config(tmp_path / "out")
    with open_output(config):
        pass
    with open_output(config.changed(learning_rate=0.1)) as output:
        assert "learning_rate = 0.1" in output.config_path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["thesis.tex", "tokens.txt"])
def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, name: str):
    thesis = tmp_path / "out" / name
    thesis.parent.mkdir()
    thesis.write_text("")
    with (
        pytest.raises(InputError, match=r"has no config\.toml but holds other files"),
        open_output(_config(tmp_path / "out")),
    ):
        raise AssertionError
    assert list(thesis.parent.iterdir()) == [thesis]


def test_what_the_first_rank_is_just_beginning_is_refused_by_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The other one finds no config.toml, then the first writes it, then the other looks around."""
    config = _config(tmp_path / "out")
    exists = Path.exists

    def before_it_begins(path: Path) -> bool:
        monkeypatch.setattr(Path, "exists", exists)
        was_there = path.exists()
        with open_output(config):
            return was_there

    monkeypatch.setattr(Path, "exists", before_it_begins)
    with open_output(config, is_first_rank=False) as output:
        assert output.config_path.exists()


def test_the_result_is_there_once_it_is_written(tmp_path: Path):
    with open_output(_config(tmp_path / "out")) as output:
        output.write_result({"num_updates": 3})
        assert output.result() == {"num_updates": 3}


def test_a_second_training_at_one_time_is_refused_and_writes_nothing(tmp_path: Path):
    """Else the first one, killed later, would be refused as configured otherwise."""
    config = _config(tmp_path / "out")
    with open_output(config) as output:
        before = output.config_path.read_text(encoding="utf-8")
        with (
            pytest.raises(InputError, match="another process trains into it"),
            open_output(config.changed(learning_rate=0.1)),
        ):
            raise AssertionError
        assert output.config_path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", ["model.1a2b3c4d.tmp", "checkpoints/update-000002.1a2b3c4d.tmp"])
def test_what_a_killed_training_left_half_written_is_swept(tmp_path: Path, name: str):
    config = _config(tmp_path / "out")
    _begin(config)
    half = tmp_path / "out" / name
    half.mkdir(parents=True)
    (half / "model.safetensors").write_bytes(b"half")
    foreign = [
        tmp_path / "out" / name for name in ("plots.1a2b3c4d.tmp", "model.mine.tmp", "a.tmp")
    ]
    for path in foreign:
        path.write_text("somebody else's")
    with open_output(config):
        assert not half.exists()
        assert all(path.exists() for path in foreign)


def test_a_notice_is_kept_once(tmp_path: Path):
    with open_output(_config(tmp_path / "out")) as output:
        for text in ("one\nline", "two", "one line"):
            output.keep_notice(text)
        assert output.notices() == ["one line", "two"]


def test_notices_of_a_start_that_came_to_nothing_are_forgotten(tmp_path: Path):
    config = _config(tmp_path / "out")
    with open_output(config) as output:
        output.keep_notice("a sample disagrees")
    with open_output(config) as output:
        assert output.notices() == []
        output.keep_notice("of the first pass")
        output.logprob_dir.mkdir()
    with open_output(config) as output:
        assert output.notices() == ["of the first pass"]


def test_the_same_command_goes_on_with_the_iteration_it_began_with(tmp_path: Path):
    config = _config(tmp_path / "out")
    begun = config.changed(run="r", iteration=3)
    assert effective_config(config) == config
    _begin(begun)
    assert effective_config(config) == begun
    assert effective_config(config.changed(iteration=4)).iteration == "4"
