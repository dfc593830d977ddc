"""Arrow arrays that are made without pandas."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector.recording.arrays import array_of, repeated
from graphcredit.store.schema import STEP_SCHEMA
from tests.collector.importers.logs import WALKS, write_lines

_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.text(st.characters(exclude_categories=("Cs",))),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.list_(pa.int32()): st.lists(st.integers(0, 9)),
}


@pytest.mark.parametrize("type_", _VALUES, ids=str)
@settings(deadline=None)  # Arrow imports pandas once
@given(data=st.data())
def test_an_array_is_what_arrow_makes(type_: Any, data: st.DataObject):
    values = data.draw(st.lists(st.none() | _VALUES[type_]))
    array = array_of(values, type_)
    array.validate(full=True)
    assert array.equals(pa.array(values, type_))
    assert array.null_count == values.count(None)


@pytest.mark.parametrize("field", [*STEP_SCHEMA], ids=lambda field: field.name)
def test_a_null_may_be_everywhere(field: Any):
    assert repeated(None, 3, field.type).equals(pa.nulls(3, field.type))


def test_half_of_a_surrogate_pair_is_refused_as_arrow_does():
    for make in (array_of, pa.array):
        with pytest.raises(UnicodeEncodeError):
            make(["\ud800"], pa.string())


def test_an_import_does_without_pandas(tmp_path: Path):
    log = write_lines(tmp_path / "a.jsonl", *WALKS)
    program = (
        "import sys; from graphcredit.collector import import_log; "
        f"import_log({str(log)!r}, {str(tmp_path / 'store')!r}); print('pandas' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.split() == [b"False"]
