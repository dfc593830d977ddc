"""What to distrust in what `why` says of a log or a store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from graphcredit.collector.importers.notes import NOT_USED
from graphcredit.collector.importers.policies import IF_SEVERAL
from graphcredit.collector.importers.report import ImportReport
from graphcredit.credit.audit.run import audit_in
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.loop.asked import Asked
from graphcredit.loop.used_states import UsedStates, used_states
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress
from graphcredit.store.sql.catalog import Connection, with_views

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Distrust:
    """Doubts about a log, its states and its credit."""

    states: UsedStates
    first: tuple[str, ...]
    """What must be read before the answer: that policies are compared as one."""
    doubts: tuple[str, ...]
    """The others, each a sentence; the last one says how far to trust the states."""
    numbers: dict[str, Any]
    """What the audit counted."""


def with_distrust(
    found: Asked, rule: str, ask: Callable[[Connection], _Answer], *, on_progress: OnProgress
) -> tuple[_Answer, Distrust]:
    """Return the answer to a question, and what to distrust in it.

    Args:
        found: A store, or what was made of a log.
        rule: The states that the log was to have.
        ask: The question, which is put to the store's views.
        on_progress: Called with what is done.
    """
    report, answer = with_views(
        found.store,
        lambda views: (
            audit_in(views, found.store, None, None, AuditThresholds(), on_progress),
            ask(views),
        ),
    )
    states = used_states(found.store, rule=None if found.imported is None else rule)
    notes = [] if found.imported is None else found.imported.notes
    unread = [] if found.imported is None else _unread(found.imported)
    warned = (each.message for each in report.worth_a_warning)
    return answer, Distrust(
        states=states,
        first=tuple(note for note in notes if IF_SEVERAL in note),
        doubts=(*states.doubts, *unread, *warned, states.told),
        numbers=report.numbers,
    )


def _unread(report: ImportReport) -> Iterator[str]:
    """Yield what of a log has no part in the credit, or is a guess; `import` says more of it."""
    if report.num_bad_rows:
        bad = report.bad_rows[0]
        rows = counted(report.num_bad_rows, "bad row")
        more = "; `graphcredit import` names all" * (report.num_bad_rows > 1)
        yield f"{rows}, such as {bad.where}: {bad.reason}{more}"
    if report.num_unjudged:
        yield f"{counted(report.num_unjudged, 'rollout')} without a verdict, so without credit"
    yield from (f"left out: {number:,} × {reason}" for reason, number in report.left_out.items())
    yield from (note for note in report.notes if note.startswith(NOT_USED))
