"""A configuration that was saved when a word meant something else is never read with today's."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import OptionError
from graphcredit.trainer.config import TrainConfig, read_config
from graphcredit.trainer.config_words import in_words_of_today


def _config(**options: Any) -> TrainConfig:
    return TrainConfig(store=Path("s"), out=Path("o"), model="m", **options)


@pytest.mark.parametrize("limit", ["truncate", "mask"])
def test_what_a_correction_was_called_first_is_translated_where_nothing_says_otherwise(limit: str):
    then = {"correction": f"sequence-{limit}", "seed": 3}
    now = {"correction": f"geometric-{limit}", "seed": 3}
    assert in_words_of_today(then, 1) == in_words_of_today(now) == now
    assert in_words_of_today({**then, "options_version": 1}) == now
    assert in_words_of_today({**then, "options_version": 2}, 1) == then == in_words_of_today(then)


@pytest.mark.parametrize("correction", [None, "none", "token-truncate", "token-mask"])
def test_other_corrections_have_always_been_called_so(correction: str | None):
    assert in_words_of_today({"correction": correction}, 1) == {"correction": correction}


@pytest.mark.parametrize("version", [0, 3, "2", None])
def test_the_words_of_another_version_are_refused(tmp_path: Path, version: Any):
    with pytest.raises(OptionError, match="options_version must be a whole number from 1 to 2"):
        in_words_of_today({"options_version": version})


def test_a_saved_configuration_says_in_which_words_it_is(tmp_path: Path):
    config = _config(correction="sequence-mask")
    path = tmp_path / "config.toml"
    path.write_text(config.as_toml(), encoding="utf-8")
    assert "options_version = 2\n" in config.as_toml()
    assert read_config(path, {}) == read_config(path, {}, version=1) == config


def test_trainings_of_before_are_recognised_and_not_taken_for_others():
    """The hash was of the options as they were spelt then, and of nothing else."""
    texts = {
        name: _config(correction=name).decisive_text()
        for name in ("token-mask", "geometric-mask", "sequence-mask")
    }
    assert 'correction = "token-mask"\n' in texts["token-mask"]
    assert 'correction = "sequence-mask"\n' in texts["geometric-mask"]
    assert 'correction = "product-mask"\n' in texts["sequence-mask"]
    assert "options_version" not in texts["token-mask"]
    assert "correction =" not in _config().decisive_text()
