"""The help of every command: all of it, in groups, on a narrow terminal."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphcredit.cli import table
from graphcredit.cli.main import app
from graphcredit.cli.table import COMMANDS, load
from graphcredit.collector.options import CollectOptions, GameOptions
from graphcredit.credit.estimators.table import ESTIMATORS, Estimator
from graphcredit.credit.options import CreditOptions
from graphcredit.store.options import described
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.loss.registry import OBJECTIVES
from graphcredit.trainer.options import GROUPS, OBJECTIVE_OPTIONS
from tests.cli.in_process import run
from tests.worlds import worked_example, write_store


def _help(*command: str) -> str:
    shown = CliRunner().invoke(app, [*command, "--help"], terminal_width=80)
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_cut_off_on_80_columns_and_every_command_can_be_quiet(command: str):
    lines = _help(command).splitlines()
    assert [line for line in lines if len(line) > 80 or re.search(r"\w…", line)] == []
    assert any("--quiet" in line for line in lines)


def test_the_help_lists_every_command_with_its_whole_first_sentence():
    text = " ".join(_help().split())
    assert len(COMMANDS) > 15
    for name, sentence in COMMANDS.items():
        assert sentence == load(name).help.partition(".")[0].replace("\n", " ") + "."
        assert f" {name} {sentence}" in text
    assert [text.index(f" {title}: ") for title in table.GROUPS] == sorted(
        text.index(f" {title}: ") for title in table.GROUPS
    )


@pytest.mark.parametrize(
    ("command", "fields", "own"),
    [
        ("train", TrainConfig.model_fields, {"store": "--config", "objective_options": "--set"}),
        (
            "collect",
            (GameOptions.model_fields | CollectOptions.model_fields).keys() - {"games_dir"},
            {},
        ),
        (
            "credit",
            CreditOptions.model_fields,
            dict.fromkeys(("normalise", "substitute", "guard"), "--set")
            | {"estimators": "--estimator"},
        ),
    ],
)
def test_every_option_is_a_flag(command: str, fields: Iterable[str], own: dict[str, str]):
    words = set(_help(command).split())
    flags = {own.get(name, f"--{name.replace('_', '-')}") for name in fields}
    unset = {flag for flag in flags if flag.replace("--", "--no-", 1) in words}
    assert flags - words - unset == set()


def test_h_stands_for_help():
    assert _help("credit") == CliRunner().invoke(app, ["credit", "-h"], terminal_width=80).stdout


def test_the_version_is_that_of_the_package():
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.stdout) == (
        0,
        f"graphcredit {metadata.version('graphcredit')}\n",
    )


@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.name)
def test_an_estimator_is_shown_with_its_formula_options_columns_and_paper(row: Estimator):
    listed = CliRunner().invoke(app, ["estimators"]).stdout
    idea = (row.options.__doc__ or "").partition("\n")[0]
    assert f"{row.name:<12}{idea}\n" in listed
    shown = CliRunner().invoke(app, ["estimators", row.name]).stdout
    assert shown.startswith(idea)
    assert "A   " in shown or "A = " in shown
    assert f"columns: {', '.join(row.columns)}\n" in shown
    assert f"made of: {row.matter}\n" in shown
    assert f"paper: {row.paper}\n" in shown
    for option in described(row.options):
        assert option.text
        assert f"  {option.name} = " in shown


def test_the_options_of_a_training_stand_in_their_groups():
    lines = _help("train").splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and line[:1] != " "]
    last = "Options of each objective, by --set"
    assert titles == ["Arguments", "Options", *GROUPS, last]


def test_a_quiet_command_shows_results_and_errors_only(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    loud = run("sql", store.root, "FROM range(200)")
    quiet = run("sql", store.root, "FROM range(200)", "--quiet")
    assert "100 more left out" in loud.err
    assert (quiet.out, quiet.err) == (loud.out, "")
    assert "is not a store" in run("sql", tmp_path / "nothing", "SELECT 1", "--quiet").err


def test_a_shell_gets_its_completion():
    request = {"_GRAPHCREDIT_COMPLETE": "bash_complete", "COMP_WORDS": "graphcredit cre"}
    ended = subprocess.run(
        [Path(sys.executable).parent / "graphcredit"],
        env=os.environ | request | {"COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.split() == ["plain,credit"]


def test_the_help_of_train_has_every_objective_with_its_options():
    expected = {
        row.name: ", ".join(f"{each.name}={each.default}" for each in described(row.options))
        for row in OBJECTIVES
    }
    assert {name: text or "none" for name, text in expected.items()} == {**OBJECTIVE_OPTIONS}
    section = _help("train").partition("Options of each objective, by --set:")[2]
    words = " ".join(section.split())
    assert all(f"{name} {text}" in words for name, text in OBJECTIVE_OPTIONS.items())
