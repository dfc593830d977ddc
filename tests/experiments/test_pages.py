"""The tables of docs/research, in pages and files, are those that their commands print."""

import csv
from itertools import groupby
from pathlib import Path

import polars as pl

from experiments.credit_quality.report import tables as quality_tables
from experiments.credit_truth.noise.report import noise_tables
from experiments.credit_truth.report import tables as truth_tables
from experiments.credit_truth.turns.run import turn_tables
from experiments.markdown import table
from experiments.sokoban.report import tables as sokoban_tables
from experiments.textworld.report import tables as unseen_tables

ROOT = Path(__file__).parents[2]


def _tables(text: str) -> list[str]:
    """Return the Markdown tables of a text."""
    lines = ((line.startswith("|"), line) for line in text.splitlines())
    groups = groupby(lines, key=lambda line: line[0])
    return ["\n".join(line for _, line in group) for is_table, group in groups if is_table]


def _page(name: str) -> str:
    return (ROOT / "docs" / "research" / f"{name}.md").read_text(encoding="utf-8")


def _shown(page: str) -> list[str]:
    """Return the tables of a page and of its files, as Markdown."""
    files = sorted((ROOT / "docs" / "research" / "tables").glob(f"{page}-*.csv"))
    of_files = []
    for file in files:
        with file.open(newline="", encoding="utf-8") as lines:
            titles, *rows = csv.reader(lines)
        of_files.append(table(titles, rows).rstrip())
    return [*_tables(_page(page)), *of_files]


def _assert_shown(printed: str, page: str) -> None:
    """Check that each table of a page whose columns are printed is one that is printed."""
    of_command = _tables(printed)
    headers = {text.splitlines()[0] for text in of_command}
    shown = [text for text in _shown(page) if text.splitlines()[0] in headers]
    assert shown
    for text in shown:
        assert text in of_command


def _kept(experiment: str, name: str) -> pl.DataFrame:
    return pl.read_parquet(ROOT / "experiments" / experiment / "results" / f"{name}.parquet")


def test_tables_of_credit_are_those_of_the_kept_results():
    _assert_shown(quality_tables(_kept("credit_quality", "credit-quality")), "credit-quality")
    rows, curves = (_kept("credit_truth", name) for name in ("credit-truth", "learning"))
    printed = truth_tables(rows, curves) + truth_tables(_kept("credit_truth", "graded"), None)
    _assert_shown(printed, "credit-truth")
    _assert_shown(turn_tables(_kept("credit_truth", "turns")), "turns")
    _assert_shown(noise_tables(_kept("credit_truth", "noise")), "credit-truth")
    _assert_shown(sokoban_tables(_kept("sokoban", "sokoban")), "learning")
    _assert_shown(unseen_tables(_kept("textworld", "unseen")), "learning")
