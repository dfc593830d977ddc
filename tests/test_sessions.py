"""The README and some documents are sessions: what they type runs, and prints what they say."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphcredit
from graphcredit.store import connect, open_store, read_steps
from tests.cli.in_process import run

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(console|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)

Session = list[tuple[str, list[str], list[str]]]
"""Language, command (or the one block of Python), and the lines that it is said to print."""


def session_of(document: str) -> Session:
    text = (ROOT / document).read_text(encoding="utf-8")
    return list(_commands(text))


def _commands(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    for language, block, printed_text in BLOCK.findall(text):
        if language == "python":
            yield language, [block], printed_text.splitlines()
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *printed = part.splitlines()
            program, *arguments = shlex.split(command)
            assert program == "graphcredit"
            yield language, arguments, printed


@pytest.mark.parametrize(
    ("document", "num_commands"),
    [
        ("README.md", 3),
        ("docs/recording.md", 3),
        pytest.param("docs/tutorial.md", 11, marks=pytest.mark.slow),
        pytest.param("docs/research/states.md", 3, marks=pytest.mark.slow),
        ("docs/commands.md", 6),
    ],
)
def test_a_session_prints_what_the_document_says(
    document: str,
    num_commands: int,
    tmp_path: Path,
    games_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    session = session_of(document)
    assert len(session) == num_commands
    for language, arguments, expected in session:
        if language == "python":
            capsys.readouterr()
            exec(arguments[0], {})
            _assert_in_order(expected, capsys.readouterr().out.splitlines())
            continue
        ended = run(*arguments)
        assert ended.exit_code == 0, (arguments, ended.err)
        _assert_in_order(expected, ended.out.splitlines())


def test_the_log_of_the_document_may_be_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (code,) = [
        block
        for language, (block, *_), _ in session_of("docs/recording.md")
        if language == "python"
    ]
    exec(code)
    with pytest.warns(match="2 rollouts already in the store"):
        exec(code)
    assert sum(table.num_rows for table in read_steps(open_store("my-store"))) == 3


def _assert_in_order(expected: list[str], printed: list[str]) -> None:
    """Each expected line follows the one before; `…` stands for any lines, or a line's rest."""
    position = 0
    for number, line in enumerate(expected):
        if line == "…":
            continue
        start = line.removesuffix("…").rstrip()
        found = [
            i
            for i in range(position, len(printed))
            if (
                printed[i].startswith(start) if line.endswith("…") else printed[i].rstrip() == start
            )
        ]
        assert found, f"{line!r} is not in what follows:\n" + "\n".join(printed[position:])
        may_skip = number == 0 or expected[number - 1] == "…"
        assert may_skip or found[0] == position, f"{line!r} does not follow at once"
        position = found[0] + 1


def test_every_query_of_the_document_runs_and_has_the_columns_that_it_names(tmp_path: Path):
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    recipes = re.findall(r"Columns: `([^`]+)`.*?```sql\n(.*?)```", text, re.DOTALL)
    assert len(recipes) == text.count("```sql") == 15
    log, store = ROOT / "examples" / "orders.jsonl", tmp_path / "orders"
    graphcredit.import_log(log, store, state="results")
    graphcredit.credit(store, estimators="grpo,reach,graphgpo")
    empty = []
    with connect(open_store(store)) as connection:
        for columns, query in recipes:
            rows = connection.sql(query)
            assert ", ".join(rows.columns) == columns
            if not rows.fetchall():
                empty.append(columns)
    assert empty == []
