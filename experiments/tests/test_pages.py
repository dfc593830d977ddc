"""The tables of docs/research, in pages and files, are those that their commands print."""

import csv
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import polars as pl
import pytest

from experiments.figures import FIGURES, bars
from experiments.markdown import table
from experiments.means import Mean
from experiments.report import RESULTS, tables

RESEARCH = Path(__file__).parents[2] / "docs" / "research"

PAGES: Mapping[str, Sequence[str]] = {
    "credit-quality": ["credit-quality"],
    "credit-truth": ["credit-truth", "believe", "graded", "learning", "noise"],
    "evidence": ["games", "states", "tools"],
    "learning": ["unseen"],
    "turns": ["turns"],
}
"""Page to the results that it shows."""


def _tables(text: str) -> list[str]:
    """Return the Markdown tables of a text."""
    lines = ((line.startswith("|"), line) for line in text.splitlines())
    groups = groupby(lines, key=lambda line: line[0])
    return ["\n".join(line for _, line in group) for is_table, group in groups if is_table]


def _shown(page: str) -> list[str]:
    """Return the tables of a page and of its files, as Markdown."""
    of_files = []
    for file in sorted((RESEARCH / "tables").glob(f"{page}-*.csv")):
        with file.open(newline="", encoding="utf-8") as lines:
            titles, *rows = csv.reader(lines)
        of_files.append(table(titles, rows).rstrip())
    return [*_tables((RESEARCH / f"{page}.md").read_text(encoding="utf-8")), *of_files]


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_a_page_are_those_of_the_kept_results(page: str):
    kept = {name: pl.read_parquet(RESULTS / f"{name}.parquet") for name in PAGES[page]}
    printed = {name: _tables(tables(name, rows)) for name, rows in kept.items()}
    shown = _shown(page)
    titles = {text.splitlines()[0] for text in shown}
    for name, every in printed.items():
        of_result = {text.splitlines()[0]: text for text in every}
        assert titles & of_result.keys(), f"{name} is shown"
    of_commands = [text for every in printed.values() for text in every]
    headers = {text.splitlines()[0] for text in of_commands}
    for text in shown:
        assert text in of_commands or text.splitlines()[0] not in headers


def test_every_result_has_a_page():
    assert {path.stem for path in RESULTS.iterdir()} == {n for of in PAGES.values() for n in of}


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_of_a_page_are_those_of_the_kept_results(name: str):
    assert (RESEARCH / f"{name}.svg").read_text(encoding="utf-8") == FIGURES[name]()
    page = max((page for page in PAGES if name.startswith(page)), key=len)
    assert f"({name}.svg)" in (RESEARCH / f"{page}.md").read_text(encoding="utf-8")


def test_a_bar_is_as_long_as_its_mean():
    shown = bars("wins", [("a", Mean(value=0.5, low=0.25, high=1.0))])
    assert '<rect x="250.0" y="34" width="190.0"' in shown
    assert '<path d="M345.0 42H630.0"' in shown
