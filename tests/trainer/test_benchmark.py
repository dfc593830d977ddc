"""`benchmarks.train` up to what needs a GPU: every row runs, and a row that fails is said."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.train import TINY, Setting, measure, rows_of, write_inputs

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
    def broken() -> float:
        raise ImportError("no such library")

    samples = write_inputs(tmp_path, _SETTING)
    rows = {"broken": broken, **rows_of(tmp_path, _SETTING, samples, 1)}
    measure(rows, samples, tmp_path, _SETTING)
    *_, failed, padded, trained = capsys.readouterr().out.splitlines()
    assert failed.split() == ["broken", "ImportError:", "no", "such", "library"]
    line = r"{} +[\d.]+ +[\d,]+ +- +- +[\d.]+"
    assert re.fullmatch(line.format("padded"), padded)
    assert padded.endswith(" 1.00")
    assert re.fullmatch(line.format("train"), trained)
