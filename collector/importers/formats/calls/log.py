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
    Call,
    Chain,
    are_turns,
    best_chain,
    chain_of,
    in_turn,
    is_same,
    joined_calls,
)
from graphcredit.collector.importers.formats.calls.groups import Groups
from graphcredit.collector.importers.formats.calls.rollouts import (
    call_of,
    rollout_of_chain,
)
from graphcredit.collector.importers.formats.calls.rows import (
    calls_within,
    exchange_of,
    facts_of,
    is_exchange,
    parsed_row,
    response_before,
    response_of,
    session_of,
    time_of,
)
from graphcredit.collector.importers.formats.row_verdicts import REWARDS, SUCCESSES
from graphcredit.collector.importers.formats.scores import as_score
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.rollout import Omission, Rollouts
from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    field_at,
    fields_of,
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
_APART = (
    *(*_TASKS, *_VERDICTS),
    *("agent", "agent_id", "agent_name", "agent_role", "role"),
)
"""Fields that are equal in calls of one rollout."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record may be a call: it has a request and an answer, or messages."""
    row = parsed_row(fields_of(value))
    is_call = is_exchange(row) or calls_within(row) is not None
    return is_call or chat_rows.is_row(value, path)


def is_log(sample: Sequence[Record]) -> bool:
    """Return whether rows are calls of conversations: a session has several, or messages grow."""
    rows = [parsed_row(fields_of(record.value)) for record in sample]
    if any(is_exchange(row) or calls_within(row) for row in rows):
        return True
    groups = Groups()
    return sum(groups.add(row)[1] for row in rows) >= _LEAST * len(rows)


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each rollout that rows of a file may be."""
    groups = Groups()
    known: list[tuple[str, Record]] = []
    verdicts: dict[str, dict[str, Any]] = {}
    for record in records:
        row = parsed_row(fields_of(record.value))
        record = replace(record, value=row) if row else record
        name = calls_within(row)
        if name is not None:
            inner = [replace(record, value=parsed_row(fields_of(item))) for item in row[name]]
            yield from _together(inner, outer=without(row, (name,)))
        elif is_row(record.value, record.path):
            known.append((groups.add(row)[0], record))
        elif session_of(row) and any(row.get(name) is not None for name in _VERDICTS):
            verdicts.setdefault(session_of(row) or "", {}).update(row)
        else:
            yield record
    rows: dict[str, list[Record]] = {}
    for name, record in known:
        rows.setdefault(groups.final(name), []).append(record)
    for name, of_one in rows.items():
        yield from _together(of_one, outer=verdicts.get(name, {}))


def _together(records: list[Record], *, outer: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the record of a session, or its rows where these are rollouts of their own."""
    are_calls = bool(outer) or any(is_exchange(fields_of(record.value)) for record in records)
    if len(records) == 1 and not are_calls:
        yield from records
        return
    path = _path(_in_order(records))
    calls: list[Call] = []
    for number, record in enumerate(path):
        try:
            calls.append(_call(record, path[number - 1] if number else None))
        except (RecordError, *MALFORMED) as error:
            yield replace(record, value=RowError(str(error)))
    rewarded = _with_rewards(calls)
    chains = joined_calls(rewarded)
    is_growing = any(chain.num_calls > 1 for chain in chains)
    if not is_growing and len(calls) > 1 and are_turns(calls) and _are_one(calls):
        chains, is_growing = [in_turn(rewarded)], True
    if not is_growing and not are_calls:
        yield from path
        return
    if calls and not any(call.prompt for call in calls):
        yield replace(records[0], value=RowError(_NO_INPUT))
        return
    main = best_chain(chains) if is_growing else None
    kept = (
        [chain_of(call) for call in calls]
        if main is None
        else [chain for chain in chains if chain is main or _is_apart(chain, main)]
    )
    rows = [source.value for chain in kept for source in chain.sources]
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
    for chain in cast("list[Chain]", value["conversations"]):
        outer = without(value, ("calls", "conversations", "num_others"))
        yield rollout_of_chain(replace(chain, facts=[*chain.facts, outer]))


def _with_rewards(calls: list[Call]) -> list[Call]:
    """Return calls whose answers have the rewards of their rows, where these differ."""
    rewards = [as_score(call.facts.get("reward")) for call in calls]
    numbers = [reward for reward in rewards if reward is not None]
    if len(numbers) < len(calls) or len(set(numbers)) < 2:
        return calls
    return [
        replace(call, answers=(*call.answers[:-1], replace(call.answers[-1], reward=reward)))
        if call.answers
        else call
        for call, reward in zip(calls, numbers, strict=True)
    ]


def _are_one(calls: Sequence[Call]) -> bool:
    """Return whether calls of a session are steps: they have numbers, or are not judged apart."""
    for name in _NUMBERS:
        numbers = [call.facts.get(name) for call in calls]
        if all(isinstance(n, int) for n in numbers) and len(set(numbers)) == len(calls):
            return True
    told = ([call.facts[name] for call in calls if name in call.facts] for name in _APART)
    return all(len(set(map(str, values))) < 2 for values in told)


_NUMBERS = ("step", "step_index", "turn", "turn_index", "call", "call_index", "t", "index")


def _in_order(records: list[Record]) -> list[Record]:
    """Return rows by their time, if all have one of a kind; else as they are, the last one last.

    Without times, the row with the most messages is the last.
    """
    times = [time_of(fields_of(record.value)) for record in records]
    for kind in (int | float, str):
        if all(isinstance(time, kind) for time in times):
            order = sorted(range(len(times)), key=times.__getitem__)
            return [records[index] for index in order]
    lengths = [len(chat_in(exchange_of(fields_of(r.value))[0], "user")) for r in records]
    is_reversed = lengths[0] > lengths[-1] and lengths == sorted(lengths, reverse=True)
    return records[::-1] if is_reversed else records


def _path(records: list[Record]) -> list[Record]:
    """Return the rows on the longest way along the responses before; all if they name none."""
    by_id = {response_of(fields_of(record.value)): at for at, record in enumerate(records)}
    before = [by_id.get(response_before(fields_of(record.value)) or "") for record in records]
    lengths: list[int | None] = [None] * len(records)
    for start in range(len(records)):
        way: list[int] = []
        at: int | None = start
        while at is not None and lengths[at] is None:
            lengths[at] = 0  # where responses name one another in a circle, it ends here
            way.append(at)
            at = before[at]
        behind = 0 if at is None else lengths[at] or 0
        for length, each in enumerate(reversed(way), start=behind + 1):
            lengths[each] = length
    longest = max(lengths[at] or 0 for at in range(len(records)))
    if longest < 2:
        return records
    at, path = max(n for n, length in enumerate(lengths) if length == longest), []
    for _ in range(longest):
        path.append(records[at])
        at = before[at] or 0
    return path[::-1]


def _call(record: Record, before: Record | None) -> Call:
    row, last = fields_of(record.value), fields_of(before and before.value)
    response, conversation = response_before(row), field_at(row, "conversation.id")
    is_next = (response is not None and response == response_of(last)) or (
        conversation is not None and conversation == field_at(last, "conversation.id")
    )
    call = call_of(*exchange_of(row), facts_of(row))
    return replace(call, continues=is_next, source=record)


def _is_apart(chain: Chain, main: Chain) -> bool:
    """Return whether a conversation is another rollout, by its task, its reward or its start."""
    starts = [each.messages[: each.num_given] for each in (chain, main)]
    if chain.num_calls > 1 and len(starts[0]) == len(starts[1]) and all(map(is_same, *starts)):
        return True
    facts = [{k: v for each in one.facts for k, v in each.items()} for one in (chain, main)]
    names = (*_TASKS, *_VERDICTS)
    return any(facts[0].get(n) is not None and facts[0][n] != facts[1].get(n) for n in names)
