"""`benchmarks.train` up to what needs a GPU: every row runs, and a row that fails is said."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from torch import OutOfMemoryError

from benchmarks.train import Row, flops_of, measure, rows_of
from benchmarks.train_setting import TINY, Sample, Setting, random_samples, write_model, write_store
from benchmarks.train_timing import fitting

_SETTING: Setting = replace(
    TINY,
    shape={**TINY.shape, "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 1},
    prompts=(4, 30),
    responses=(2, 8),
    num_samples=16,
    max_tokens=128,
)


def _prepared(folder: Path) -> list[Sample]:
    samples = random_samples(_SETTING)
    write_model(folder / "model", _SETTING)
    write_store(folder / "store", samples)
    return samples


def _printed(folder: Path, names: str, capsys: pytest.CaptureFixture[str]) -> str:
    samples = _prepared(folder)
    rows = [row for row in rows_of(folder, _SETTING, samples, 1) if re.match(names, row.name)]
    measure(rows, samples, flops_of(folder, _SETTING), _SETTING)
    return capsys.readouterr().out


def test_the_trainer_and_a_padded_step_are_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    *_, padded, ours = _printed(tmp_path, "padded|train", capsys).splitlines()
    line = r"{}, 128 tokens +[\d.]+ +[\d,]+ +- +- +[\d.]+"
    assert re.fullmatch(line.format("padded"), padded)
    assert re.fullmatch(line.format("train"), ours)


@pytest.mark.slow
@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")
def test_trl_takes_an_optimizer_step_on_the_same_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("trl")
    last = _printed(tmp_path, "TRL", capsys).splitlines()[-1]
    assert re.fullmatch(r"TRL GRPOTrainer, 8 rows +[\d.]+ +[\d,]+ +- +- +1.00", last)


def test_what_does_not_fit_is_halved_and_a_row_that_fails_does_not_end_the_table(
    capsys: pytest.CaptureFixture[str],
):
    def small(size: int) -> float:
        if size > 2:
            raise OutOfMemoryError("8 do not fit")
        return 0.5

    def broken(_: int) -> float:
        raise ImportError("TRL is not installed")

    assert fitting(small, 8)[:2] == (0.5, 2)
    with pytest.raises(OutOfMemoryError):
        fitting(small, 8, least=4)
    samples: list[Sample] = [([1, 2], [3])] * 10
    rows = [
        Row(name="no", unit="rows", first=8, run=broken),
        Row(name="whole", unit="rows", first=8, run=small, halves=False),
        Row(name="half", unit="rows", first=8, run=small),
    ]
    measure(rows, samples, 1.0, _SETTING)
    said = capsys.readouterr().out.splitlines()
    assert said[-3].split() == ["no", "ImportError:", "TRL", "is", "not", "installed"]
    assert said[-2].split()[:2] == ["whole", "OutOfMemoryError:"]
    assert said[-1].split() == ["half,", "2", "rows", "0.50", "60", "-", "-", "1.00"]
