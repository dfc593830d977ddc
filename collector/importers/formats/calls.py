"""Logs of a model's calls: a row has a request and its answer, or all messages so far.

Rows of one session, Responses that name the one before, and rows whose messages begin with those
of an earlier row are one rollout.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.formats.chains import (
    Call,
    Chain,
    best_chain,
    joined_calls,
)
from graphcredit.collector.importers.formats.conversations import call_of, rollout_of_chain
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.rollout import Omission, Rollouts, each_part
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_mapping,
    as_objects,
    as_text,
    canonical,
    field_at,
    fields_of,
    first_of,
    parse_json,
    without,
)

_REQUESTS = ("request", "request_body", "requestBody")
_PROMPTS = (
    *(*chat_rows.LISTS, "input", "prompt", "contents", "system", "instructions"),
    *("system_instruction", "systemInstruction"),
)
_ANSWERS = (
    *("response", "response_body", "responseBody", "completion", "completions", "output"),
    *("choices", "candidates", "answer"),
)
_LISTS = ("calls", "llm_calls", "model_calls", "requests", "interactions", "exchanges", "steps")
"""Fields that may have the calls of a rollout."""

_SESSIONS = (
    *("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"),
    *("conversation.id", "trace_id", "traceId", "litellm_trace_id", "litellm_session_id"),
    *("chat_id", "dialog_id", "dialogue_id", "trajectory_id", "episode_id", "rollout_id"),
)
_TIMES = (
    *("created_at", "created", "startTime", "start_time", "request_time", "timestamp", "time"),
    "ts",
)
_LEAST = 1 / 3
"""Share of the rows of a log of calls that go on from earlier ones: with two calls each, a half."""

ASIDE = tuple(
    f"{before}{name}"
    for before in ("", "calls.*.", *(f"{name}.*." for name in _LISTS[1:]))
    for name in (
        *("metadata", "request.metadata", "request.tools", "request.model", "error", "startTime"),
        *("endTime", "call_type", "response.usage", "response.candidates.*.finishReason"),
        *("response.finish_reason", "response.service_tier", "request_tags", "model_parameters"),
        *("hidden_params", "model_map_information", "response_cost", "api_base", "model_group"),
    )
)
"""What of a call is no part of a conversation; the metadata is in `extra` of the first step."""

_PREVIOUS = "previous_response_id"


def is_row(value: object, path: Path) -> bool:
    """Return whether a record may be a call: it has a request and an answer, or messages."""
    row = fields_of(value)
    return _is_exchange(row) or _within(row) is not None or chat_rows.is_row(value, path)


def _is_exchange(row: Mapping[str, Any]) -> bool:
    """Return whether a row can be nothing but a call."""
    has_request = any(isinstance(row.get(name), Mapping | str) for name in _REQUESTS)
    is_response = row.get("object") == "response" and isinstance(row.get("output"), list)
    has_answer = any(name in row for name in _ANSWERS[:3])
    return is_response or (has_request and has_answer) or ("call_type" in row and has_answer)


def _within(row: Mapping[str, Any]) -> str | None:
    """Return the field of a row that has the calls of a rollout."""
    for name in _LISTS:
        items = row.get(name)
        if isinstance(items, list) and items and _is_exchange(fields_of(items[0])):
            return name
    return None


def is_log(sample: Sequence[Record]) -> bool:
    """Return whether rows are calls of conversations: a session has several, or messages grow."""
    rows = [fields_of(record.value) for record in sample]
    if any(_is_exchange(row) or _within(row) for row in rows):
        return True
    groups = Groups()
    return sum(groups.add(row)[1] for row in rows) >= _LEAST * len(rows)


class Groups:
    """Names the rollout that a row may be of.

    Its session tells it, or the response before, or the earlier row whose messages it goes on from.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        """Ids of responses to names of groups."""
        self._by_end: dict[int, list[tuple[str, str]]] = {}
        """Hashes of whole conversations to the calls of their last messages and names of groups:
        alike rollouts have one hash."""
        self._names: set[str] = set()
        self._joined: dict[str, str] = {}

    def add(self, row: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the name of a row's group, and whether an earlier row has it."""
        name = _session_of(row) or self._by_response(row)
        if name is None:
            *begins, (whole, calls) = _beginnings(row) or [(0, "")]
            ends = ((self._by_end.get(each, []), called) for each, called in reversed(begins))
            known, called = next((end for end in ends if end[0]), ([], ""))
            before = next((end for end in known if end[0] == called), known[-1] if known else None)
            if before is not None:
                known.remove(before)
            name = before[1] if before is not None else f"row {len(self._names)}"
            self._by_end.setdefault(whole, []).append((calls, name))
            if (response := _id_of(row)) is not None:
                self._by_id[response] = name
        is_known = name in self._names
        self._names.add(name)
        return name, is_known

    def _by_response(self, row: Mapping[str, Any]) -> str | None:
        """Return the name of a group whose responses name one another, in any order."""
        before, own = _previous_of(row), _id_of(row)
        known = [self.final(self._by_id[id_]) for id_ in (before, own) if id_ in self._by_id]
        if before is None and not known:
            return None
        name = known[0] if known else f"response {before}"
        self._joined |= {other: name for other in known if other != name}
        self._by_id |= {id_: name for id_ in (before, own) if id_ is not None}
        return name

    def final(self, name: str) -> str:
        """Return the name of a group after others were found to be it."""
        while name in self._joined:
            name = self._joined[name]
        return name


def _session_of(row: Mapping[str, Any]) -> str | None:
    parts = (row, *(fields_of(row.get(name)) for name in (*chat_rows.NESTED, *_REQUESTS)))
    found = (field_at(part, name) for part in parts for name in _SESSIONS)
    return next((as_text(value) for value in found if isinstance(value, str | int)), None)


def _previous_of(row: Mapping[str, Any]) -> str | None:
    parts = (row, *(fields_of(row.get(name)) for name in (*_REQUESTS, *_ANSWERS[:3])))
    return next((as_text(id_) for part in parts if (id_ := part.get(_PREVIOUS))), None)


def _id_of(row: Mapping[str, Any]) -> str | None:
    answers = (fields_of(row.get(name)) for name in _ANSWERS[:3])
    objects = [each for each in (row, *answers) if each.get("object") == "response"]
    return as_text(objects[0].get("id")) if objects else None


def _beginnings(row: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return a hash of each beginning of a row's messages, and the calls of its last one.

    The calls are apart: some programs leave them out of what they send.
    """
    given, said = _exchange(row)
    messages = [*chat_in(given, "user"), *chat_in(said, "assistant")]
    beginnings: list[tuple[int, str]] = []
    before = 0
    for message in map(fields_of, messages):
        role = first_of(message, ("role", "from", "type"))
        content = first_of(message, ("content", "value", "parts", "text", "output", "arguments"))
        before = hash((before, canonical([role, content])))
        beginnings.append((before, canonical(first_of(message, ("tool_calls", "function_call")))))
    return beginnings


def _exchange(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what a model was given, and what it answered: null where a row has it in one list."""
    request = first_of(row, _REQUESTS)
    if request is None:
        request = {name: row[name] for name in _PROMPTS if row.get(name) is not None}
    return request, first_of(row, _ANSWERS)


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each rollout that rows of a file may be."""
    groups = Groups()
    known: list[tuple[str, Record]] = []
    for record in records:
        if not is_row(record.value, record.path) or _within(fields_of(record.value)):
            yield record
        else:
            known.append((groups.add(fields_of(record.value))[0], record))
    rows: dict[str, list[Record]] = {}
    for name, record in known:
        rows.setdefault(groups.final(name), []).append(record)
    for of_one in rows.values():
        if len(of_one) == 1:
            yield of_one[0]
        else:
            yield replace(of_one[0], value={"calls": [r.value for r in of_one]}, share=1.0)


def read(record: Record) -> Rollouts:
    """Yield the rollouts of rows that may be one: most often the conversation of most answers."""
    if is_chat(record.value):
        yield from chat_rows.read(record)
        return
    whole = as_mapping(record.value, "a call")
    name = "calls" if "calls" in whole else _within(whole)
    outer = {} if name is None else without(whole, (name,))
    rows = [whole] if name is None else as_objects(whole[name], name, "a call")
    ordered = _in_order(rows)
    path = _path(ordered)
    if len(path) < len(ordered):
        yield Omission(reason=_BRANCH, count=len(ordered) - len(path))
    calls: list[Call] = []
    error = _broken(path, calls)
    if calls and not any(call.prompt for call in calls):
        raise RecordError(
            "a call must have what the model was given: there are answers only. Log the messages "
            "or the `input` of each request beside its response"
        )
    chains = joined_calls(calls)
    main = best_chain(chains) if len(chains) < len(path) else None
    if main is None and not any(map(_is_exchange, path)):  # nothing was joined: rows of messages
        yield from each_part(path, "calls", lambda row: chat_rows.read(replace(record, value=row)))
        return
    for chain in chains:
        if main is None or chain is main or _is_judged_apart(chain, main):
            chain.facts.append(outer)
            yield rollout_of_chain(chain)
        else:
            yield Omission(reason=_BRANCH, count=chain.num_calls)
    if error is not None:
        raise error


_BRANCH = "model call that is not on the way to the last answer of its session"


def _in_order(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows by their time, if all have one of a kind; else as they are."""
    times = [_time(row) for row in rows]
    for kind in (int | float, str):
        if all(isinstance(time, kind) for time in times):
            order = sorted(range(len(rows)), key=times.__getitem__)
            return [rows[index] for index in order]
    return rows


def _time(row: Mapping[str, Any]) -> Any:
    return first_of({**fields_of(row.get("response")), **row}, _TIMES)


def _path(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows on the longest way along the responses before; all if they name none."""
    by_id = {_id_of(row): row for row in rows}
    ways: list[list[Mapping[str, Any]]] = []
    for row in rows:
        way, before = [row], by_id.get(_previous_of(row) or "")
        while before is not None and len(way) <= len(rows):
            way.append(before)
            before = by_id.get(_previous_of(before) or "")
        ways.append(way)
    longest = max(reversed(ways), key=len)
    return longest[::-1] if len(longest) > 1 else rows


def _broken(rows: Sequence[Mapping[str, Any]], calls: list[Call]) -> RecordError | None:
    """Add the calls of rows to a list; return the error about those that cannot be read."""
    before: Mapping[str, Any] | None = None

    def read_one(row: Mapping[str, Any]) -> Rollouts:
        nonlocal before
        given, said = _exchange(row)
        conversation = field_at(row, "conversation.id")
        is_next = before is not None and (
            (_id_of(before) is not None and _previous_of(row) == _id_of(before))
            or (conversation is not None and conversation == field_at(before, "conversation.id"))
        )
        request = fields_of(first_of(row, _REQUESTS))
        metadata = {**fields_of(request.get("metadata")), **_metadata(row)}
        facts = {**row, "metadata": metadata} if metadata else dict(row)
        if request:
            facts["request"] = without(request, (*_PROMPTS, "metadata"))
        names = (*_PROMPTS, *_ANSWERS, *_REQUESTS[1:])
        calls.append(replace(call_of(given, said, without(facts, names)), continues=is_next))
        before = row
        yield from ()

    try:
        list(each_part(rows, "calls", read_one))
    except RecordError as error:
        return error
    return None


def _metadata(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a row, which LiteLLM has as JSON text in its database."""
    value = row.get("metadata")
    return fields_of(parse_json(value) if isinstance(value, str) else value)


def _is_judged_apart(chain: Chain, main: Chain) -> bool:
    """Return whether a conversation has a task or a reward of its own."""
    facts = [{k: v for each in one.facts for k, v in each.items()} for one in (chain, main)]
    names = (*chat_rows.GROUPS, *chat_rows.REWARDS, *chat_rows.SUCCESSES)
    return any(facts[0].get(n) is not None and facts[0][n] != facts[1].get(n) for n in names)
