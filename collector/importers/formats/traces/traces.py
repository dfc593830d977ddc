"""Traces to rollouts: the conversation that the calls of a trace, or of a session, are."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.coverage.fields import record_field, texts_within
from graphcredit.collector.importers.formats.calls.chains import (
    Chain,
    ModelCall,
    are_turns,
    best_chain,
    in_turn,
    joined_calls,
    told_once,
)
from graphcredit.collector.importers.formats.calls.rollouts import call_of, rollout_of_chain
from graphcredit.collector.importers.formats.row_verdicts import is_score, scores_of, target_of
from graphcredit.collector.importers.formats.traces.spans import Span, is_trace, spans_of
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.roles import opened, role_of
from graphcredit.collector.importers.messages.rollout import ASSISTANT, SYSTEM, Omission, Rollouts
from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    as_mapping,
    fields_of,
    joined,
)

NO_ANSWERS = (
    "the spans must have what the model was given and answered: no span has an answer, so this "
    "export has metadata or prompts only. Let the tracer capture content (for OpenTelemetry "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true), or export inputs and outputs too"
)

_MODELS = ("llm", "chat", "generation", "generate", "completion", "response", "dogenerate")
_HELPERS = ("retriev", "embedding", "rerank", "guardrail", "evaluator")
_TOOLS = ("tool", "function", *_HELPERS)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a span or a trace, or a score of one."""
    return is_trace(value) or is_score(value)


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each session of a file, or for each trace without one."""
    groups, first = RecordGroups(limit), None
    scores: dict[str | None, dict[str, float]] = {}
    sessions: dict[str, str] = {}
    has_answers, lengths = False, Counter[str]()
    for record in records:
        if isinstance(record.value, RowError):
            yield record
        elif is_score(record.value):
            found = scores_of({"scores": [record.value]}, {}, ())
            scores.setdefault(target_of(record.value), {}).update(found)
        elif is_trace(record.value):
            try:
                spans = list(spans_of(record.value))
            except (RecordError, *MALFORMED) as error:
                yield replace(record, value=RowError(f"it must be a span or a trace: {error!r}"))
                continue
            first = first or record
            if not has_answers:
                for place, text in texts_within(record.value, record_field()):
                    lengths[place.path] += len(text)
            for span in spans:
                has_answers = has_answers or _has_messages(span)
                groups.add(span["trace_id"], replace(record, value=span))
                if span["session"]:
                    sessions[span["trace_id"]] = span["session"]
        else:
            reason = "it must be a span or a trace, as the records before it"
            yield replace(record, value=RowError(reason))
    if first is not None and not has_answers:
        yield from groups.refused
        longest = next((name for name, _ in lengths.most_common(1)), None)
        said = "" if longest is None else f". Most of their text is in `{longest}`"
        yield replace(first, place="", value=RowError(NO_ANSWERS + said))
        return
    together: dict[tuple[bool, str], list[str]] = {}
    for trace in groups:
        session = sessions.get(trace)
        together.setdefault((session is None, session or trace), []).append(trace)

    def conversations(key: tuple[bool, str], of_one: list[Record]) -> Iterator[Record]:
        spans = [record.value for record in of_one]
        for span, name in product(spans, ("trace_id", "id", "session")):
            span["scores"] |= scores.pop(span[name], {})  # to the first of a trace or a session
        try:
            value: Any = _conversations(spans, None if key[0] else key[1])
        except (RecordError, *MALFORMED) as error:
            value = RowError(f"its messages cannot be read: {error}")
        yield replace(of_one[0], value=value, share=1.0)

    places = {key: f"{'trace' if key[0] else 'session'} {key[1]}" for key in together}
    yield from groups.made(conversations, together, places)


def _has_messages(span: Span) -> bool:
    """Return whether a span has an answer: as its output, or at the end of its input."""
    if _is(span, _TOOLS):
        return False
    last = fields_of((chat_in(span["input"], "user") or [None])[-1])
    return bool(chat_in(span["output"], ASSISTANT)) or role_of(opened(last)) == ASSISTANT


def _is(span: Span, kinds: Sequence[str]) -> bool:
    return any(kind in span["kind"] for kind in kinds)


def read(record: Record) -> Rollouts:
    """Yield the rollouts of a session."""
    value = as_mapping(record.value, "a trace")
    for reason, count in value["left_out"].items():
        yield Omission(reason=reason, count=count)
    for name, chain in value["conversations"]:
        yield replace(rollout_of_chain(chain), trajectory_id=name)


def _conversations(all_spans: Iterable[Span], session: str | None) -> dict[str, Any]:
    """Return the conversations of a session, with the spans that have them.

    Its traces are one conversation if each goes on where the one before ended.
    """
    traces: dict[str, list[Span]] = {}
    for span in sorted(all_spans, key=_time):
        traces.setdefault(span["trace_id"], []).append(span)
    mains: list[Chain] = []
    kept: list[Span] = []
    left_out: Counter[str] = Counter()
    for trace_id, spans in traces.items():
        found = _chains(spans)
        if found is None:
            left_out["trace without messages of the policy"] += 1
            continue
        main, chains = found
        others = {id(span) for chain in chains if chain is not main for span in chain.sources}
        left_out[_OTHER] += len(others)
        helpers = {id(span) for span in spans if _is(span, _HELPERS)}
        left_out[_HELPER] += len(helpers)
        new = dict(zip(map(id, main.sources), told_once(main.sources), strict=True))
        kept += [new.get(id(s), s) for s in spans if id(s) not in others | helpers]
        facts = {"trace_id": trace_id, "session_id": session, **_facts(spans)}
        mains.append(replace(main, facts=[facts], messages=list(main.with_context())))
    named: list[tuple[str, Chain]] = []
    for chain in _joined(mains):
        ids = [facts["trace_id"] for facts in chain.facts]
        named.append((session if session and len(ids) == len(mains) else ids[0], chain))
    return {"spans": kept, "conversations": named, "left_out": dict(+left_out)}


_HELPER = "span of a retriever, an embedding, a guardrail or an evaluator"
_OTHER = "model call that is not on the way to the last answer of its trace"


def _time(span: Span) -> tuple[float, str]:
    start = span["start_time"]
    try:
        return float(start), ""
    except (TypeError, ValueError, OverflowError):
        return 0.0, str(start or "")


def _chains(spans: Sequence[Span]) -> tuple[Chain, list[Chain]] | None:
    """Return the conversation of a trace, and all that are in it; None if there is none.

    The calls of the model tell them, unless others have more answers.
    """
    parents = {span["id"]: span for span in spans}
    answered: tuple[list[_Nested], list[_Nested]] = [], []
    for span in spans:
        if _has_messages(span):
            is_nested = any(_is(above, _TOOLS) for above in _above(span, parents))
            answered[not _is(span, _MODELS)].append((span, is_nested))
    found = [_of_spans(each) for each in answered if each]
    told = {chain.messages[-1].text for chain in found[-1]} if all(answered) else set[str]()
    mains = [best_chain(chains, told) for chains in found]
    most = max((main.num_answers for main in mains), default=0)
    best = next((n for n, main in enumerate(mains) if main.num_answers == most), None)
    return None if best is None else (mains[best], found[best])


_Nested = tuple[Span, bool]
"""A span, and whether a tool made it."""


def _of_spans(spans: Sequence[_Nested]) -> list[Chain]:
    """Return the conversations of calls, or the one of an agent that is told all in each call."""
    chains = joined_calls((_call(each) for each in spans), has_parts=True)  # prompts grow
    begin = chains[0].messages[: chains[0].num_given]
    if len(chains) == len(spans) > 1 and any(message.role == SYSTEM for message in begin):
        calls = [_call(each) for each in spans]
        return [in_turn(calls)] if are_turns(calls) else chains
    return chains


def _above(span: Span, parents: Mapping[str | None, Span]) -> Iterator[Span]:
    seen: set[str | None] = set()
    while span["parent_id"] in parents and span["parent_id"] not in seen:
        seen.add(span["parent_id"])
        span = parents[span["parent_id"]]
        yield span


def _call(answered: _Nested) -> ModelCall:
    """Return the call of a model that a span tells."""
    span, is_nested = answered
    call = call_of(span["input"], span["output"], {})
    return replace(call, is_nested=is_nested, source=span)


def _joined(mains: list[Chain]) -> list[Chain]:
    """Return the conversations of a session, given those of its traces.

    Traces whose prompts have nothing from before are one conversation too, unless they start alike
    or are judged one by one.
    """
    calls = [
        ModelCall(
            prompt=tuple(chain.messages[:-1]),
            answers=tuple(chain.messages[-1:]),
            facts=chain.facts[0],
        )
        for chain in mains
    ]
    chains = joined_calls(calls)
    judged = [facts["scores"] for chain in mains for facts in chain.facts if facts["scores"]]
    tasks = {str(task) for call in calls if (task := call.facts["metadata"].get("task_id"))}
    is_one = len(chains) == len(mains) > 1 and len(judged) < 2 and len(tasks) < 2
    return [in_turn(calls)] if is_one and are_turns(calls) else chains


def _facts(spans: Sequence[Span]) -> dict[str, Any]:
    """Return what the spans of a trace say of it; what a span says, one above it may say too."""
    metadata: dict[str, Any] = {}
    scores: dict[str, float] = {}
    for span in sorted(spans, key=lambda span: span["parent_id"] is None):
        metadata |= span["metadata"]
        scores |= span["scores"]
    names = [span["name"] for span in spans if span["parent_id"] is None and span["name"]]
    return {"name": joined(*names[:1]), "metadata": metadata, "scores": scores}
