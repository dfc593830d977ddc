"""The rules about the values of a step: one table, with each rule in Python and in SQL.

The recorder applies the Python form to logged steps; the check applies the SQL form to files of any
program. Both assume that values have the types of their columns: the recorder converts or refuses
them, and for files the rules `columns` and `readable` check the types.
"""

import json
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from graphcredit.store.checks.file_rules import REWRITE, RowRule, Severity
from graphcredit.store.images import IMAGE_PATH, IMAGE_PATH_ESCAPES, is_image_path
from graphcredit.store.parquet.numbers import array_of
from graphcredit.store.schema import LARGEST_NUMBER, SMALLEST_COST

IS_JSON_OBJECT = "is_json_object"
"""Name of the SQL function `are_json_objects`. DuckDB's own JSON reader accepts other texts."""

_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueRule(RowRule):
    """A rule about the values of a step in some columns."""

    columns: tuple[str, ...]
    """The rule is about the first column, and applies if that is not null; others may be null."""
    keeps: Callable[..., bool]
    """Python function of the columns' values, in order: whether they keep the rule."""


def is_json_object(text: str) -> bool:
    """Return whether a text is a JSON object by RFC 8259 whose strings can be encoded as UTF-8."""
    try:
        parsed = _parse(text)
        if "\\u" in text:
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict)


def are_json_objects(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return `is_json_object` of each text: the SQL function of that name."""
    codes = texts.combine_chunks().dictionary_encode()
    is_object = array_of([*map(is_json_object, codes.dictionary.to_pylist())], pa.bool_())
    return pa.chunked_array([is_object.take(codes.indices)])


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_parse = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _rule(
    name: str,
    column: str,
    holds: str,
    keeps: Callable[..., bool],
    condition: str,
    *,
    beside: tuple[str, ...] = (),
    found: str | None = None,
    severity: Severity = Severity.ERROR,
    remedy: str = REWRITE,
) -> ValueRule:
    return ValueRule(
        name=name,
        holds=f"{column} must be {holds}",
        remedy=remedy,
        severity=severity,
        condition=condition,
        found=found or column,
        columns=(column, *beside),
        keeps=keeps,
    )


def _between(name: str, column: str, low: float, high: float, holds: str = "") -> ValueRule:
    def keeps(value: float) -> bool:
        return low <= value <= high

    # DuckDB may decide a range by the file's statistics, which ignore NaN: hence isfinite.
    sql = f"isfinite({column}) AND {column} BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE"
    return _rule(name, column, holds or f"a number from {low:g} to {high:g}", keeps, sql)


def _not_empty(column: str) -> ValueRule:
    return _rule("not_empty", column, "a string that is not empty", bool, f"{column} <> ''")


def _finite(column: str) -> ValueRule:
    holds = f"a finite number of at most {_FLOAT32_MAX:.3g} in size"
    return _between("finite_number", column, -_FLOAT32_MAX, _FLOAT32_MAX, holds)


def _are_finite(values: Any) -> bool:
    return bool(np.isfinite(values).all())


def _have_one_length(values: Sized, others: Sized | None) -> bool:
    return others is not None and len(values) == len(others)


def _have_one_content(images: Sequence[Mapping[str, Any]]) -> bool:
    return all((image["bytes"] is None) != (image["path"] is None) for image in images)


def _are_within(images: Sequence[Mapping[str, Any]]) -> bool:
    return all(image["path"] is None or is_image_path(image["path"]) for image in images)


VALUE_RULES: tuple[ValueRule, ...] = (
    _not_empty("task_id"),
    _not_empty("trajectory_id"),
    _between("finite_reward", "reward", -LARGEST_NUMBER, LARGEST_NUMBER),
    _between("positive_cost", "cost", SMALLEST_COST, LARGEST_NUMBER),
    _between("finite_score", "score", -LARGEST_NUMBER, LARGEST_NUMBER),
    _between("not_negative", "oracle_distance", 0.0, LARGEST_NUMBER),
    _between("not_negative", "next_oracle_distance", 0.0, LARGEST_NUMBER),
    _finite("temperature"),
    _finite("top_p"),
    _rule(
        "finite_logprobs",
        "response_logprobs",
        f"finite numbers of at most {_FLOAT32_MAX:.3g} in size",
        _are_finite,
        "coalesce(isfinite(list_max(response_logprobs)) "
        "AND isfinite(list_min(response_logprobs)), true)",
        found="'one that is NaN or infinite'",
        severity=Severity.NOTICE,
        remedy="nothing needs doing: training gives such tokens no weight, and counts them",
    ),
    _rule(
        "token_lengths",
        "response_logprobs",
        "one number for each of response_ids",
        _have_one_length,
        "response_logprobs IS NULL OR coalesce(len(response_ids) = len(response_logprobs), false)",
        beside=("response_ids",),
        found="coalesce(len(response_ids)::VARCHAR, 'no') || ' ids, '"
        " || coalesce(len(response_logprobs)::VARCHAR, 'no') || ' log-probabilities'",
    ),
    _rule(
        "image_content",
        "images",
        "a list of images, each with either bytes or a path",
        _have_one_content,
        "len(list_filter(images, lambda i: i IS NULL OR (i.bytes IS NULL) = (i.path IS NULL))) = 0",
        found="'one with neither or both'",
    ),
    _rule(
        "image_path",
        "images",
        "images whose paths are relative to the store, within images/, without . and ..",
        _are_within,
        f"len(list_filter(images, lambda i: NOT regexp_full_match(i.path, '{IMAGE_PATH}') "
        f"OR regexp_matches(i.path || '/', '{IMAGE_PATH_ESCAPES}'))) = 0",
        found="list_filter(list_transform(images, lambda i: i.path), lambda p: p IS NOT NULL)",
    ),
    _rule(
        "extra_object",
        "extra",
        "a JSON object, without lone surrogates",
        is_json_object,
        f"{IS_JSON_OBJECT}(extra)",
    ),
)
"""Each column's rules are applied in this order."""
