"""Rows of several rollouts, whose fields are columns: ms-swift's batches, groups of Atropos."""

from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.formats.row_messages import (
    ANSWERS,
    LISTS,
    known_list_of,
    list_of,
    pair_of,
)
from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.values import fields_of, items_of, parse_json

_COLUMNS = (*LISTS, *ANSWERS)
_SINGLE = {
    "scores": "score",
    "rewards": "reward",
    "advantages": "advantage",
    "prompts": "prompt",
    "completions": "completion",
    "responses": "response",
}


def rows_in(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rollouts of a row whose fields are columns, a value for each; else the row."""
    row = opened_row(_of_evaluation(row))
    name = next((name for name in _COLUMNS if row.get(name) and _is_column(name, row[name])), None)
    if name is None:
        return [row]
    size = len(row[name])
    spread = [
        field
        for field, value in row.items()
        if len(items_of(value)) == size and (field == name or not is_chat(value))
    ]
    if len(spread) == 1 and isinstance(row[name][0], str):  # the texts may be its turns
        return [row]
    whole = {name: value for name, value in row.items() if name not in spread}
    return [{**whole, **{_SINGLE.get(n, n): row[n][i] for n in spread}} for i in range(size)]


def _of_evaluation(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of lm-eval's samples, or of promptfoo's results, with a prompt and its answer.

    lm-eval judges an answer once for each filter of it: a filter is a run.
    """
    raw = fields_of(row.get("prompt")).get("raw")
    if isinstance(raw, str) and "response" in row:
        return {**row, "prompt": parse_json(raw) or raw, "task_id": row.get("testIdx")}
    if not row.keys() >= _OF_LM_EVAL:
        return row
    prompt, answer = (_first_text(row[name]) for name in ("arguments", "resps"))
    judged = [row.get(name) for name in row.get("metrics", ())]
    run = {} if row.get("filter") in (None, "none") else {"run_id": row["filter"]}
    taken = {*_OF_LM_EVAL, "doc", "target", "filter"}
    rest = {name: value for name, value in row.items() if name not in taken}
    task, score = row.get("doc_hash", row["doc_id"]), judged[0] if len(judged) == 1 else None
    if not isinstance(prompt, str) or not isinstance(answer, str):
        return rest  # of log-likelihoods
    return {**rest, **run, "task_id": task, "prompt": prompt, "completion": answer, "score": score}


_OF_LM_EVAL = {"doc_id", "arguments", "resps", "filtered_resps"}


def _first_text(value: object) -> object:
    """Return the first value in nested lists and objects."""
    while isinstance(value, list | dict) and value:
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def opened_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with the fields of its one object that has messages, as LangGraph's `values`.

    Without messages, the object may have a prompt and its answer.
    """
    if list_of(row) is not None or pair_of(row) is not None:
        return row
    objects = [name for name in row if isinstance(row[name], Mapping)]
    for has in (known_list_of, pair_of):
        inner = [name for name in objects if has(row[name])]
        if len(inner) == 1:
            return {**row[inner[0]], **{name: row[name] for name in row if name != inner[0]}}
    return row


def _is_column(name: str, value: object) -> bool:
    """Return whether a value has several rollouts: lists of messages, or texts of answers."""
    items = items_of(value)
    if name == "choices":
        return len(items) > 1
    if not items or is_chat(value):
        return False
    are_texts = name in ANSWERS and all(isinstance(item, str) for item in items)
    return are_texts or all(map(is_chat, items))
