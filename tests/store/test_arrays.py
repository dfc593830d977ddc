"""Arrow arrays that are made without pandas."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.parquet.numbers import array_of, repeated, table_of
from graphcredit.store.schema import STEP_SCHEMA

_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.text(st.characters(exclude_categories=("Cs",))),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.large_string(): st.text(st.characters(exclude_categories=("Cs",))),
    pa.binary(): st.binary(),
    pa.list_(pa.int32()): st.lists(st.none() | st.integers(0, 9)),
    pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])): st.lists(
        st.none() | st.fixed_dictionaries({"bytes": st.none() | st.binary(), "path": st.none()})
    ),
}


@pytest.mark.parametrize("type_", _VALUES, ids=str)
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


def test_lists_may_be_arrays_and_rows_lack_what_is_null():
    schema = pa.schema([("ids", pa.list_(pa.int32())), ("at", pa.timestamp("us", tz="UTC"))])
    rows = [{"ids": np.array([1, 2], np.int32), "at": 5}, {}, {"ids": np.array([3], np.int32)}]
    table = table_of(rows, schema)
    assert table["ids"].to_pylist() == [[1, 2], None, [3]]
    assert table["at"].cast(pa.int64()).to_pylist() == [5, None, None]
    assert table_of([], schema).equals(schema.empty_table())
