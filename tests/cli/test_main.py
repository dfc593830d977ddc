"""How commands end: by an interrupt, by SIGTERM, and by wrong use."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphcredit.cli import main
from graphcredit.cli.table import COMMANDS
from graphcredit.store.errors import (
    EngineError,
    GraphcreditError,
    MissingDependencyError,
    OptionError,
    RecorderError,
    TrainingError,
)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_an_interrupt_is_a_line_inside_duckdb_too(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupt() -> None:
        raise error

    monkeypatch.setattr(main, "app", interrupt)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "graphcredit: interrupted\n"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (OptionError, 2),
        (MissingDependencyError, 2),
        (RecorderError, 1),
        (EngineError, 1),
        (TrainingError, 1),
    ],
)
def test_wrong_use_ends_with_2_and_what_may_be_gone_on_with_ends_with_1(
    error: type[GraphcreditError],
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def fail() -> None:
        raise error("this is why")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == exit_code
    assert capsys.readouterr().err == "graphcredit: this is why\n"


@pytest.mark.one_in(8, others="nightly")
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_starts_in_a_process_of_its_own(name: str):
    command = [sys.executable, "-m", "graphcredit.cli.main", name, "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"graphcredit {name}" in ended.stdout


def test_an_interrupt_before_the_program_is_loaded_leaves_no_traceback():
    code = (
        "import os, signal, sys, graphcredit.cli as cli\n"
        "class Ctrl:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'graphcredit.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Ctrl())\n"
        "cli.start()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("command", ["why", "import"])
def test_sigterm_ends_a_command_by_143_and_leaves_no_temporary_file(tmp_path: Path, command: str):
    temporary, log, store = tmp_path / "tmp", tmp_path / "log.jsonl", tmp_path / "store"
    temporary.mkdir()
    os.mkfifo(log)  # nobody writes to it: the command waits
    arguments = [command, log, *([store] if command == "import" else [])]
    running = subprocess.Popen(
        [sys.executable, "-m", "graphcredit.cli.main", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    writer = os.open(log, os.O_WRONLY)  # waits until the command reads
    assert list(temporary.iterdir()) or command == "import"
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=300)
    os.close(writer)
    assert (running.returncode, out) == (143, "")
    assert err.count("\n") == 1
    assert "nterrupted" in err
    assert not list(temporary.iterdir())
