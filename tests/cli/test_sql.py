"""`graphcredit sql` as a user types it."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.cli.output.tables import fit, print_table, write_csv, write_json
from graphcredit.store import Store
from graphcredit.store.log_text import in_terminal
from graphcredit.store.sql.views import VIEW_NAMES
from tests.cli.in_process import completed, run
from tests.worlds import trajectory, worked_example, write_store

COMMAND = [sys.executable, "-m", "graphcredit.cli.main", "sql"]


def graphcredit_sql(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return completed("sql", *arguments)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_store(tmp_path_factory.mktemp("sql") / "store", worked_example())


def test_a_table_shows_the_rows(store: Store):
    query = "SELECT trajectory_id, return, success FROM trajectories ORDER BY 1"
    result = graphcredit_sql(store.root, query)
    assert result.returncode == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["trajectory_id", "return", "success"],
        ["x", "10", "true"],
        ["y", "0", "false"],
        ["z", "-0.1", "false"],
    ]
    assert result.stderr == ""


def test_rows_that_are_left_out_are_counted_on_stderr(store: Store):
    result = graphcredit_sql(store.root, "FROM range(1200)", "--unlocked")
    assert len(result.stdout.splitlines()) == 101
    assert "100 rows shown, 1,100 more left out" in result.stderr
    whole = graphcredit_sql(store.root, "FROM range(1200)", "--limit-rows", 0, "--unlocked")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (1201, "")


def test_csv_and_json_are_whole_by_default_and_can_be_parsed(store: Store):
    query = "SELECT i, [i, NULL] AS l, NULL AS n, 'a\"b,c' AS s FROM range(1200) t(i)"
    as_csv = graphcredit_sql(store.root, query, "--format", "csv", "--unlocked").stdout
    rows = list(csv.DictReader(io.StringIO(as_csv)))
    assert len(rows) == 1200
    assert rows[7] == {"i": "7", "l": "[7, null]", "n": "", "s": 'a"b,c'}
    in_json = graphcredit_sql(store.root, query, "--format", "json", "--unlocked").stdout
    objects = json.loads(in_json)
    assert len(objects) == 1200
    assert objects[7] == {"i": 7, "l": [7, None], "n": None, "s": 'a"b,c'}


def test_output_goes_to_a_file(store: Store, tmp_path: Path):
    for format_ in ("table", "csv", "json", "parquet"):
        target = tmp_path / f"out.{format_}"
        query = "SELECT 42 AS answer"
        result = graphcredit_sql(
            *(store.root, query, "--unlocked", "--format", format_, "--output", target)
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "out.table").read_text().split() == ["answer", "42"]
    assert (tmp_path / "out.csv").read_text() == "answer\n42\n"
    assert json.loads((tmp_path / "out.json").read_text()) == [{"answer": 42}]
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"answer": 42}]


_ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 1"

_ODD = {
    "DATE '20000-01-01'": "20000-01-01",
    "DATE '0044-03-15 (BC)'": "-0043-03-15",
    "TIMESTAMP '20000-01-01 12:30:00'": "20000-01-01T12:30:00.000000",
    "TIMESTAMPTZ '20000-01-01 12:30:00+00'": "20000-01-01T12:30:00.000000Z",
    "'infinity'::DATE": "infinity",
    "'-infinity'::TIMESTAMP": "-infinity",
    "[DATE '20000-01-01', NULL, DATE '2020-01-01']": '["20000-01-01", null, "2020-01-01"]',
    "{'a': DATE '20000-01-01', 'b': INTERVAL 3 DAY}": '{"a": "20000-01-01", "b": [0, 3, 0]}',
    "MAP {'a': DATE '20000-01-01'}": '[["a", "20000-01-01"]]',
    "INTERVAL 3 MONTH": "[3, 0, 0]",
    "union_value(a := 1)": "1",
    "union_value(a := DATE '20000-01-01')": "20000-01-01",
}
"""What Python or Parquet has no value for, and how it is written."""


def test_a_value_of_any_type_is_written_in_every_format(store: Store, tmp_path: Path):
    names = [f"v{number}" for number in range(len(_ODD))]
    query = "SELECT " + ", ".join(map("{} AS {}".format, _ODD, names))
    target = tmp_path / "out"
    found: dict[str, str] = {}
    for kind in ("table", "csv", "json", "parquet"):
        ended = run("sql", store.root, query, "--unlocked", "--format", kind, "--output", target)
        assert ended.exit_code == 0, ended
        if kind != "parquet":
            found[kind] = target.read_text()
    texts = list(_ODD.values())
    shown = found["table"].split("\n")[1]
    assert re.fullmatch(" +".join(map(re.escape, texts)), shown.strip())
    assert list(csv.reader(io.StringIO(found["csv"])))[1] == texts
    (cells,) = json.loads(found["json"])
    written = (cell if isinstance(cell, str) else json.dumps(cell) for cell in cells.values())
    assert list(written) == texts
    as_text = [n for n, v in zip(names, _ODD, strict=True) if "INTERVAL" in v or "union" in v]
    notice = "notice: Parquet has no type for '{}': written as text\n".format
    assert ended.err == "".join(map(notice, as_text))
    read = pq.read_table(target)
    assert [n for n in names if pa.types.is_string(read[n].type)] == as_text
    assert sum(column.null_count for column in read.columns) == 0


def test_refusals_say_why_and_exit_with_2(store: Store, tmp_path: Path):
    for arguments, reason in (
        ((store.root, "COPY (SELECT 1) TO 'x'"), "only SELECT is allowed: found COPY"),
        ((store.root, "FROM read_text('/etc/passwd')"), "file system operations are disabled"),
        ((store.root, "SELECT 1", "--format", "parquet"), "name a file with --output"),
        ((store.root, "SELECT 1", "--output", tmp_path), "the output must be a file"),
        ((tmp_path / "nothing", "SELECT 1"), "is not a store"),
        (
            (store.root, "SELECT 1 AS a, 2 AS a", "--format", "json", "--unlocked"),
            "'a' is there twice",
        ),
        ((store.root, "SELECT list(i) FROM range(200000000) t(i)"), "more than 1024 MiB of memory"),
        ((store.root, _ENDLESS, "--timeout", 0.5), "within 0.5 s"),
    ):
        result = graphcredit_sql(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert reason in result.stderr


def test_text_of_logs_cannot_act_on_the_terminal(tmp_path: Path):
    state = "[red]loud[/red]\x1b[2J\x1b]0;title\x07 :smile:\r\n\u202egnol"
    steps = trajectory("x", [state, "a", "B"])
    store = write_store(tmp_path / "store", steps)
    for unlocked in ((), ("--unlocked",)):
        result = graphcredit_sql(store.root, "SELECT state FROM steps", *unlocked)
        assert result.stdout.splitlines()[1] == (
            r"[red]loud[/red]\x1b[2J\x1b]0;title\x07 :smile:\r\n\u202egnol"
        )
    for format_ in ("csv", "json"):
        arguments = (store.root, "SELECT state FROM steps", "--format", format_, "--unlocked")
        assert "\x1b" not in _on_terminal(80, *arguments)
        found = graphcredit_sql(*arguments).stdout
        assert ("\x1b" if format_ == "csv" else r"\u001b") in found
    failed = graphcredit_sql(store.root, "SELECT state::INTEGER FROM steps", "--unlocked")
    assert failed.returncode == 2
    assert "\x1b" not in failed.stderr
    assert r"\x1b[2J" in failed.stderr


def test_a_row_wider_than_the_terminal_is_cut_and_says_how_to_see_it_whole(tmp_path: Path):
    long = "word " * 40 + "end"
    store = write_store(tmp_path / "store", trajectory("x", [long, "a", "B"]))
    query = ("SELECT trajectory_id, state FROM steps", "--unlocked")
    shown = _on_terminal(80, store.root, *query)
    assert max(len(line) for line in shown.splitlines() if "--format" not in line) <= 80
    assert "word word wo" in shown
    assert "end" not in shown
    assert "values of 1 column shortened to fit the terminal: --format json shows all" in shown


@pytest.mark.parametrize(
    ("widths", "room", "fitted"),
    [
        ([3, 5], 10, [3, 5]),
        ([3, 5], 9, [3]),  # no column is shortened below 12
        ([10, 60, 30], 80, [10, 36, 30]),
        ([60, 60], 52, [25, 25]),
        ([20, 20, 20], 30, [14, 14]),  # three of 12 and two gaps would be 40
        ([100], 5, [5]),
    ],
)
def test_columns_are_cut_where_they_are_widest(widths: list[int], room: int, fitted: list[int]):
    assert fit(widths, room) == fitted


def test_show_tables_lists_the_views_and_nothing_behind_them(store: Store):
    for query in ("SHOW TABLES", "show tables;"):
        result = graphcredit_sql(store.root, query)
        assert result.stdout.split() == ["name", *sorted(VIEW_NAMES)]


def test_a_statement_can_be_piped_in(store: Store):
    command = [*COMMAND, str(store.root), "--format", "csv"]
    ended = subprocess.run(
        command, input="SELECT count(*) AS n FROM steps", capture_output=True, text=True, check=True
    )
    assert ended.stdout == "n\n8\n"


def _on_terminal(width: int, *arguments: object) -> str:
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=child, stderr=child, stdin=child, env=environment | {"TERM": "dumb"}
    ) as process:
        os.close(child)
        chunks: list[bytes] = []
        try:
            while chunk := os.read(parent, 65_536):
                chunks.append(chunk)
        except OSError:  # Linux says so when the other side is closed
            pass
        assert process.wait() == 0
    os.close(parent)
    return b"".join(chunks).decode()


def test_values_of_every_kind_have_a_text():
    table = pa.table(
        {
            "nan": [float("nan")],
            "bytes": [b"\x00\xff"],
            "struct": [{"a": [1, None]}],
            "text": ["é\t"],
            "nothing": pa.nulls(1),
        }
    )
    stream = io.StringIO()
    write_json(table, stream)
    assert json.loads(stream.getvalue()) == [
        {"nan": "nan", "bytes": "00ff", "struct": {"a": [1, None]}, "text": "é\t", "nothing": None}
    ]
    stream = io.StringIO()
    write_csv(table, stream)
    assert stream.getvalue() == (
        'nan,bytes,struct,text,nothing\nnan,00ff,"{""a"": [1, null]}",é\t,\n'
    )
    stream = io.StringIO()
    print_table(stream, table)
    assert stream.getvalue().splitlines()[1].split() == [
        "nan", "00ff", '{"a":', "[1,", "null]}", r"é\t", "null",
    ]  # fmt: skip


def test_plain_text_keeps_what_does_not_act():
    assert in_terminal("naïve 状態 🙂 a b") == "naïve 状態 🙂 a b"
    assert in_terminal("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert in_terminal("\x9b\u2028\ud800") == r"\x9b\u2028\ud800"
