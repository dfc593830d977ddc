"""The recorder and the check agree on every value."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graphcredit.collector import StepRecorder
from graphcredit.store import create_store, open_store
from graphcredit.store.checks import columns as checked_columns
from graphcredit.store.checks import rows as checked_rows
from graphcredit.store.checks.run import check_store
from graphcredit.store.checks.value_rules import VALUE_RULES
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.schema import STEP_COLUMNS
from tests.worlds import step_table, trajectory

NAN, INF, LONE = float("nan"), float("inf"), "\ud800"
GOOD: dict[str, Any] = {"state": "A", "action": "a", "next_state": "B", "reward": 0.0}
TYPES = {column.name: column.type for column in STEP_COLUMNS}

STRAY_PATHS = [
    *("", "images", "images/", "/images/a.png", "images/../a.png", "images/./a.png", "images/.."),
    *("images//a.png", "images/a/", "images/a\0b", "images\\a.png", "images/a\\..\\b", "../a.png"),
]
IMAGE_PATHS = ["images/a.png", "images/é/b.png", "images/a\nb", "images/..a", "images/a/..\n"]
NUMBERS = [
    NAN,
    INF,
    -INF,
    0,
    -0.0,
    -1,
    5e-324,
    1e-24,
    9e-25,
    1e24,
    2e24,
    -1e24,
    3.5e38,
    1e308,
    10**400,
]
DISTANCES = ("oracle_distance", "next_oracle_distance")
TEXTS = ["", "\0", "a\0b", LONE, "a" + LONE, "é", "\U0001f600", "\x1b[2J", "x" * 100_000]
JSON: list[Any] = [
    *(
        "",
        "{}",
        " {} ",
        "[]",
        "null",
        "{",
        '{"a": 1,}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        "\ufeff{}",
    ),
    *(r'{"a": "\ud800"}', r'{"\udc00": 1}', r'{"a": "😀"}', '{"a": 1e999}'),
    *('{"a": ' + "[" * 99_999 + "]" * 99_999 + "}", '{"a": ' + "1" * 5000 + "}", '{"a": "\x01"}'),
    *({"a": LONE}, {LONE: 1}, {"a": [{"b": LONE}]}, {"a": NAN}, {"a": [INF]}, {"a": 10**400}),
    *({1: 2}, {"a": "\0"}, {"a": {"b": [None, True, 1.5, "é"]}}, {"a": np.float64(1)}, {"a": b"x"}),
]
VALUES: list[tuple[str, Any]] = [
    *((name, value) for name in ("reward", "score", "cost", *DISTANCES) for value in NUMBERS),
    *((name, value) for name in ("temperature", "top_p") for value in (*NUMBERS, np.float32(0.1))),
    *((name, value) for name in ("thought", "task_id", "trajectory_id") for value in TEXTS),
    *(("admissible_actions", value) for value in ([], ["a", ""], ["a", LONE], ["a", None])),
    *(("extra", value) for value in JSON),
    *(("top_k", value) for value in (-1, 2**31 - 1, 2**31, -(2**31), 10**30, np.int64(2**40))),
    *(("prompt_ids", value) for value in ([], [-1], [2**31], [None], np.array([2**31 - 1]))),
    *(("images", [{"bytes": None, "path": path}]) for path in (*IMAGE_PATHS, *STRAY_PATHS)),
    *(("images", value) for value in ([], [None], [{"bytes": b"\xff\0", "path": None}])),
    *(("images", [{"bytes": b, "path": p}]) for b, p in ((None, None), (b"", IMAGE_PATHS[0]))),
    *(
        ("response_logprobs", value)
        for value in ([], [-1.0], [NAN], [-INF], [1e39], [None], [0.0] * 2)
    ),
]


def _put_images(root: Path) -> None:
    for path in IMAGE_PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"an image")


def _logged(root: Path, values: list[tuple[str, Any]]) -> list[bool]:
    """Log each value in a trajectory of its own and return which ones the recorder took."""
    taken: list[bool] = []
    with StepRecorder(root, run_id="r0", iteration=0, worker_id="w0") as recorder:
        for number, (name, value) in enumerate(values):
            ids = {"task_id": f"t{number}", "trajectory_id": f"x{number}"}
            step = dict(GOOD)
            (ids if name in ids else step)[name] = value
            if name == "response_logprobs":
                step["response_ids"] = [7]
            try:
                recorder.trajectory(**ids).log(**step)
            except StepRefusedError:
                taken.append(False)
            else:
                taken.append(True)
    return taken


def _written(root: Path, values: list[tuple[str, Any]]) -> list[bool | None]:
    """Write each value as a foreign program would; return which ones the check lets pass.

    None stands for what no Parquet file with the schema's types can hold.
    """
    tables: list[pa.Table] = []
    numbers: list[int] = []
    for number, (name, value) in enumerate(values):
        row = trajectory(f"x{number}", "A a B", success=None, task_id=f"t{number}")[0]
        if name == "response_logprobs":
            row["response_ids"] = [7]
        try:
            kept = json.dumps(value) if isinstance(value, dict) else value
            array = pa.array([kept], TYPES[name])
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
            continue
        table = step_table([row])
        place = table.schema.get_field_index(name)
        tables.append(table.set_column(place, table.schema.field(name), array))
        numbers.append(number)
    store = create_store(root)
    if not tables:
        return [None] * len(values)
    store.steps_dir("r0", 0).mkdir(parents=True)
    steps = pa.concat_tables(tables)
    pq.write_table(steps, store.steps_dir("r0", 0) / "foreign-000000.parquet")
    _put_images(root)
    with pytest.MonkeyPatch.context() as patch:
        for module in (checked_columns, checked_rows):
            patch.setattr(module, "SHOWN_ROWS", len(values))
        violations = check_store(store).violations
    assert all(violation.rows for violation in violations)
    broken = {row for violation in violations for row in violation.rows}
    passes = {number: row not in broken for row, number in enumerate(numbers)}
    return [passes.get(number) for number in range(len(values))]


def _assert_one_rule(values: list[tuple[str, Any]]) -> list[bool]:
    with TemporaryDirectory() as folder:
        taken = _logged(Path(folder, "ours"), values)
        _put_images(Path(folder, "ours"))
        assert check_store(open_store(Path(folder, "ours"))).violations == ()
        passes = _written(Path(folder, "theirs"), values)
    differ = [
        (name, value)
        for (name, value), ours, theirs in zip(values, taken, passes, strict=True)
        if theirs is not None and ours is not theirs
    ]
    assert differ == []
    return taken


def test_recorder_and_check_agree_on_hostile_values():
    taken = _assert_one_rule(VALUES)
    for rule in VALUE_RULES:
        of_column = [t for t, (name, _) in zip(taken, VALUES, strict=True) if name in rule.columns]
        assert set(of_column) == {True, False}


_NUMBERS = st.floats() | st.integers() | st.sampled_from(NUMBERS)
_TEXTS = st.text(st.characters())
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
)
_ANY = st.one_of(
    st.tuples(
        st.sampled_from(["reward", "score", "cost", "next_oracle_distance", "top_p"]), _NUMBERS
    ),
    st.tuples(st.sampled_from(["thought", "state", "policy_version"]), _TEXTS),
    st.tuples(st.just("extra"), _JSON.filter(lambda value: value is not None)),
    st.tuples(st.just("extra"), _JSON.map(json.dumps) | _TEXTS),
    st.tuples(st.just("top_k"), st.integers()),
    st.tuples(st.just("prompt_ids"), st.lists(st.integers(-(2**33), 2**33), max_size=3)),
    st.tuples(st.just("response_logprobs"), st.lists(st.floats(), max_size=2)),
)


@settings(max_examples=5, phases=[Phase.generate])
@given(st.lists(_ANY, min_size=30, max_size=60))
def test_recorder_and_check_agree_on_any_value(values: list[tuple[str, Any]]):
    _assert_one_rule(values)
