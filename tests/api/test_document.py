"""docs/python.md: its blocks run in order, and its tables are those of the code."""

import contextlib
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest

import graphcredit
from graphcredit.step_defaults import DEFAULTS, NEEDED

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    chat = [{"role": "user", "content": "hall"}, {"role": "assistant", "content": "east"}]
    Path("chats.jsonl").write_text(json.dumps({"messages": chat, "reward": 1.0}), encoding="utf-8")
    fences = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for fence in fences:
            exec(compile(fence, str(DOCUMENT), "exec"), names)
    printed = said.getvalue()
    assert printed.startswith("1 0\n")
    blamed = names["blamed"]
    assert isinstance(blamed, pl.LazyFrame)
    assert blamed.select("trajectory_id", "action").collect().rows() == [("y", "west")]
    credit = names["credit"]
    assert isinstance(credit, pl.DataFrame)
    assert (credit["reach_advantage"] > 0).to_list() == [True, True, False]
    assert printed.endswith(f"['r0'] {graphcredit.__version__}\n")
    assert Path("mug.html").stat().st_size > 400_000


def test_it_names_every_function():
    text = DOCUMENT.read_text(encoding="utf-8")
    functions = {name for name in graphcredit.__all__ if name.islower()}
    assert {name for name in functions if name not in text} == set()


def test_its_table_of_defaults_is_that_of_the_code():
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert dict(rows) == dict(DEFAULTS)
    assert "These six columns are needed" in text
    assert all(f'"{name}": [' in text for name in NEEDED)
