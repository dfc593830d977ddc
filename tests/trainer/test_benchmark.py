"""`benchmarks.train` up to what needs a GPU: every row runs, and a row that fails is said."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.train import Row, Step, measure, rows_of
from benchmarks.train_inputs import TINY, Setting, write_inputs

_SETTING: Setting = replace(
    TINY,
    shape={**TINY.shape, "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 1},
    prompts=(4, 30),
    responses=(2, 8),
    num_samples=16,
    max_tokens=128,
)


def test_rows_are_timed_and_one_that_fails_does_not_end_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def broken() -> Step:
        raise ImportError("no such library")

    samples = write_inputs(tmp_path, _SETTING)
    rows = {
        "broken": Row(run=broken),
        **rows_of(tmp_path, _SETTING, samples, 1, ["padded", "train"]),
    }
    measure(rows, samples, tmp_path, _SETTING)
    *_, failed, padded, trained = capsys.readouterr().out.splitlines()
    assert failed.split() == ["broken", "ImportError:", "no", "such", "library"]
    line = r"{} +[\d.]+ +[\d,]+ +- +- +- +[\d.]+"
    assert re.fullmatch(line.format("padded"), padded)
    assert padded.endswith(" 1.00")
    assert re.fullmatch(line.format("train"), trained)


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # those of TRL and what it imports
def test_trl_gets_prompts_that_end_together_and_takes_its_step(tmp_path: Path):
    pytest.importorskip("trl", reason="TRL is not installed")
    from benchmarks.trl_step import padded_batch, trl_seconds

    found = padded_batch([([5, 6, 7], [8]), ([9], [3, 4])], "cpu")
    assert found["prompt_ids"].tolist() == [[5, 6, 7], [0, 0, 9]]
    assert found["prompt_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert found["completion_ids"].tolist() == [[8, 0], [3, 4]]
    assert found["completion_mask"].tolist() == [[1, 0], [1, 1]]
    samples = write_inputs(tmp_path, _SETTING)
    common = {"max_tokens": 128, "device": "cpu", "dtype": "float32"}
    assert trl_seconds(tmp_path / "model", samples, repeats=1, **common) > 0
