"""Logs of a model's calls: a row has a request and its answer, or all messages so far.

Rows of one session, Responses that name the one before, and rows whose messages begin with those
of an earlier row are one rollout.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.formats.calls.chains import (
    Chain,
    ModelCall,
    are_turns,
    best_chain,
    chain_of,
    in_turn,
    is_same,
    joined_calls,
    told_once,
)
from graphcredit.collector.importers.formats.calls.groups import Groups, in_order, path_of
from graphcredit.collector.importers.formats.calls.rollouts import call_of, rollout_of_chain
from graphcredit.collector.importers.formats.calls.rows import (
    calls_within,
    exchange_of,
    facts_of,
    is_exchange,
    parsed_row,
    response_before,
    response_of,
    session_of,
)
from graphcredit.collector.importers.formats.row_verdicts import REWARDS, SUCCESSES, as_score
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.logs.json_text import content_digest
from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.rollout import Omission, Rollouts
from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    field_at,
    fields_of,
    first_of,
    is_unique,
    without,
)

_LEAST = 1 / 3
"""Share of the rows of a log of calls that go on from earlier ones: with two calls each, a half."""

_BRANCH = "model call that is not on the way to the last answer of its session"
_NO_INPUT = (
    "a call must have what the model was given: there are answers only. Log the messages or the "
    "`input` of each request beside its response"
)


_VERDICTS = (*REWARDS, *SUCCESSES)
_TASKS = tuple(name for name in chat_rows.GROUPS if name != "uid")
"""Fields that name a task; a `uid` may name the call."""
_APART = (*(*_TASKS, *_VERDICTS), *("agent", "agent_id", "agent_name", "agent_role", "role"))
"""Fields that are equal in calls of one rollout."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record may be a call: it has a request and an answer, or messages."""
    row = _row_of(value)
    is_call = is_exchange(row) or calls_within(row) is not None
    return is_call or chat_rows.is_row(value, path)


def _row_of(value: object) -> Mapping[str, Any]:
    """Return a record as a row, also if it is a list of messages."""
    return {"messages": value} if is_chat(value) else parsed_row(fields_of(value))


def is_log(sample: Sequence[Record]) -> bool:
    """Return whether rows are calls of conversations: a session has several, or messages grow."""
    rows = [_row_of(record.value) for record in sample]
    if any(is_exchange(row) or calls_within(row) for row in rows):
        return True
    groups = Groups()
    return len(rows) > 1 and sum(groups.add(row)[1] for row in rows) >= _LEAST * len(rows)


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each rollout that rows of a file may be."""
    names, groups = Groups(), RecordGroups(limit)
    verdicts: dict[str, dict[str, Any]] = {}
    for record in records:
        row = _row_of(record.value)
        record = replace(record, value=row) if row else record
        name = calls_within(row)
        if name is not None:
            inner = [replace(record, value=_row_of(item)) for item in row[name]]
            yield from _together(inner, outer=without(row, (name,)))
        elif is_row(record.value, record.path):
            groups.add(names.add(row)[0], record)
        elif session_of(row) and any(row.get(name) is not None for name in _VERDICTS):
            verdicts.setdefault(session_of(row) or "", {}).update(row)
        else:
            yield record
    together: dict[str, list[str]] = {}
    for name in groups:
        together.setdefault(names.final(name), []).append(name)
    yield from groups.made(
        lambda name, rows: _together(rows, outer=verdicts.get(name, {})),
        together,
        {name: f"the calls of {name}" for name in together},
    )


def _together(records: list[Record], *, outer: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the record of a session, or its rows where these are rollouts of their own."""
    are_calls = bool(outer) or any(is_exchange(fields_of(record.value)) for record in records)
    if len(records) == 1 and not are_calls:
        yield from records
        return
    path = path_of(in_order(records))
    read = _Calls(path)
    chains = joined_calls(read.rewarded())  # each call is read for itself: prompts grow
    yield from read.refused
    is_growing = any(chain.num_calls > 1 for chain in chains)
    calls = [] if is_growing else list(read)
    if len(calls) > 1 and are_turns(calls) and _are_one(calls):
        chains, is_growing = [in_turn(read.rewarded())], True
    if not is_growing and not are_calls:
        if not _are_branches(chains):
            yield from path
            return
        is_growing = True
    if chains and not read.has_prompts:
        yield replace(records[0], value=RowError(_NO_INPUT))
        return
    main = best_chain(chains) if is_growing else None
    kept = (
        [chain_of(call) for call in calls]
        if main is None
        else [chain for chain in chains if chain is main or _is_apart(chain, main)]
    )
    rows = [row for chain in kept for row in told_once(s.value for s in chain.sources)]
    value = {**outer, "calls": rows, "conversations": kept, "num_others": len(records) - len(rows)}
    if kept:
        yield replace(records[0], value=value, share=1.0)


def read(record: Record) -> Rollouts:
    """Yield the rollouts of a session: most often the conversation of most answers."""
    value = fields_of(record.value)
    if "conversations" not in value:
        yield from chat_rows.read(record)
        return
    if value["num_others"]:
        yield Omission(reason=_BRANCH, count=value["num_others"])
    conversations = cast("list[Chain]", value["conversations"])
    ids = [_id_of(chain, value["calls"]) for chain in conversations]
    for chain, id_ in zip(conversations, ids, strict=True):
        outer = without(value, ("calls", "conversations", "num_others"))
        rollout = rollout_of_chain(replace(chain, facts=[*chain.facts, outer]))
        yield replace(rollout, trajectory_id=id_ if ids.count(id_) == 1 else None)


def _id_of(chain: Chain, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return an id that a longer copy of the log gives, too: of the session and how it begins."""
    session = session_of(rows[0]) if rows else None
    if session is None or not is_unique(session):
        return None
    first = next((n for n, message in enumerate(chain.messages) if message.is_answer), 0)
    begins = [[m.role, m.text, *map(str, m.tool_calls)] for m in chain.messages[: first + 1]]
    return f"{session}-{content_digest(begins)[:8]}"


class _Calls:
    """The calls of rows, in their order; they are made anew each time."""

    def __init__(self, rows: Sequence[Record]) -> None:
        self._rows = rows
        self.has_prompts = False
        self.refused: list[Record] = []
        """Rows that cannot be read."""

    def __iter__(self) -> Iterator[ModelCall]:
        self.refused.clear()
        before: Record | None = None
        for record in self._rows:
            try:
                call = _call(record, before)
            except (RecordError, *MALFORMED) as error:
                self.refused.append(replace(record, value=RowError(str(error))))
            else:
                self.has_prompts |= bool(call.prompt)
                yield call
            before = record

    def rewarded(self) -> Iterator[ModelCall]:
        """Yield calls whose answers have the rewards of their rows, where these differ."""
        rewards = [as_score(fields_of(record.value).get("reward")) for record in self._rows]
        differ = None not in rewards and len(set(rewards)) > 1
        for call in self:
            if differ and call.answers:
                reward = as_score(call.facts.get("reward"))
                last = replace(call.answers[-1], reward=reward)
                yield replace(call, answers=(*call.answers[:-1], last))
            else:
                yield call


def _are_one(calls: Sequence[ModelCall]) -> bool:
    """Return whether calls of a session are steps: they have numbers, or are not judged apart."""
    for name in _NUMBERS:
        numbers = [call.facts.get(name) for call in calls]
        if all(isinstance(n, int) for n in numbers) and len(set(numbers)) == len(calls):
            return True
    told = ([call.facts[name] for call in calls if name in call.facts] for name in _APART)
    return all(len(set(map(str, values))) < 2 for values in told)


_NUMBERS = ("step", "step_index", "turn", "turn_index", "call", "call_index", "t", "index")


def _call(record: Record, before: Record | None) -> ModelCall:
    row, last = fields_of(record.value), fields_of(before and before.value)
    response, conversation = response_before(row), field_at(row, "conversation.id")
    is_next = (response is not None and response == response_of(last)) or (
        conversation is not None and conversation == field_at(last, "conversation.id")
    )
    call = call_of(*exchange_of(row), facts_of(row))
    return replace(call, continues=is_next, source=record)


def _are_branches(chains: Sequence[Chain]) -> bool:
    """Return whether conversations are of one trace, begin alike, and are not judged apart."""
    facts = [each for chain in chains for each in chain.facts]
    traces = {first_of(each, ("trace_id", "traceId")) for each in facts}
    starts = [chain.messages[: chain.num_given or 1] for chain in chains]
    return (
        len(chains) > 1
        and len(traces) == 1
        and None not in traces
        and all(is_same(start[0], starts[0][0]) for start in starts)
        and all(len({str(each.get(name)) for each in facts}) == 1 for name in _APART)
    )


def _is_apart(chain: Chain, main: Chain) -> bool:
    """Return whether a conversation is another rollout, by its task, its reward or its start."""
    starts = [each.messages[: each.num_given] for each in (chain, main)]
    if chain.num_calls > 1 and len(starts[0]) == len(starts[1]) and all(map(is_same, *starts)):
        return True
    facts = [{k: v for each in one.facts for k, v in each.items()} for one in (chain, main)]
    names = (*_TASKS, *_VERDICTS)
    return any(facts[0].get(n) is not None and facts[0][n] != facts[1].get(n) for n in names)
