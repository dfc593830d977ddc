"""Modules that the command line loads: counted, as seconds depend on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphcredit.cli.table import COMMANDS
from tests.cli.in_process import run
from tests.collector.importers.logs import WALKS, write_lines
from tests.worlds import worked_example, write_store

REPORT = """
import atexit, runpy, sys
atexit.register(lambda: sys.stderr.write("loaded " + " ".join(sys.modules)))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def _loaded(module: str, *arguments: object, given: str = "") -> set[str]:
    """Return the modules that a process has loaded when it ends."""
    command = [sys.executable, "-c", REPORT, module, *map(str, arguments)]
    ended = subprocess.run(command, input=given.encode(), capture_output=True, check=True)
    return set(ended.stderr.decode().rpartition("loaded ")[2].split())


def _libraries(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_version_and_the_help_load_no_command(flag: str):
    loaded = _loaded("graphcredit.cli.main", flag)
    needless = {"pydantic", "pydantic_core", "rich", "numpy", "pyarrow", "duckdb"}
    assert _libraries(loaded) & needless == set()
    assert [name for name in loaded if name.startswith("graphcredit.cli.commands.")] == []
    assert len(loaded) < 260


def test_a_command_loads_no_other():
    loaded = _loaded("graphcredit.cli.main", "check", "--help")
    commands = {name for name in COMMANDS if f"graphcredit.cli.commands.{name}" in loaded}
    assert commands == {"check"}


def test_the_help_of_a_query_loads_no_arrow():
    loaded = _loaded("graphcredit.cli.main", "sql", "--help")
    assert _libraries(loaded) & {"pyarrow", "numpy", "duckdb"} == set()


def test_commands_of_logs_and_stores_load_no_frames(tmp_path: Path):
    log, store = write_lines(tmp_path / "log.jsonl", *WALKS), tmp_path / "store"
    estimators = ("-e", "graphgpo", "-e", "gigpo", "-e", "spo3", "-e", "turn_rloo", "-e", "reach")
    libraries: dict[str, set[str]] = {}
    libraries["import"] = _libraries(_loaded("graphcredit.cli.main", "import", log, store))
    assert run("credit", store, "-e", "rloo").exit_code == 0  # and its columns are kept
    for command in (("credit", store, *estimators), ("check", store), ("why", store)):
        libraries[command[0]] = _libraries(_loaded("graphcredit.cli.main", *command))
    needless = {"pandas", "polars", "pyarrow.dataset"}
    assert {name for name, loaded in libraries.items() if loaded & needless} == set()
    assert "duckdb" not in libraries["import"]
    assert "pydantic" not in libraries["check"]


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT state, reward FROM enriched"])
def test_sql_loads_neither_numpy_nor_pandas(query: str, tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    loaded = _loaded("graphcredit.cli.main", "sql", store.root, query)
    assert _libraries(loaded) & {"numpy", "pandas", "polars", "pydantic"} == set()
