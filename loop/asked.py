"""The store that a question is put to: one that is there, or that of a log, with credit."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.notes import NOT_USED
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.run import import_log
from graphcredit.credit.iteration.settings import settings_of
from graphcredit.credit.options import RECOMMENDED, CreditOptions
from graphcredit.credit.stage import assign_credit
from graphcredit.store.errors import InputError, NothingToCreditError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.layout import MARKER_NAME, Store, open_store
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.provenance.freshness import credit_freshness


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A store with credit by the recommended estimator."""

    store: Store
    imported: ImportReport | None
    """What was made of the log; None where a store was asked."""


@contextmanager
def asked(
    source: Path | str | Store,
    options: ImportOptions,
    *,
    keep: Path | str | None = None,
    on_progress: OnProgress = silent,
) -> Generator[Asked]:
    """Yield a store, or that of a log, after assigning the credit that it lacks.

    Args:
        source: A store, or its path; else a log, or a folder of logs.
        options: What to make of a log.
        keep: Where to keep the store of a log; by default it is thrown away at the end.
        on_progress: Called with what is done.

    Raises:
        InputError: The log has no trajectory, or does not say how any ended; or a store has other
            credit, or stale one: how it was made is not ours to change.
    """
    if isinstance(source, Store) or (Path(source) / MARKER_NAME).exists():
        store = open_store(source)
        _credit(store, on_progress)
        yield Asked(store=store, imported=None)
        return
    with ScratchFolder() as folder:
        path = Path(folder) / "store" if keep is None else Path(keep)
        report = import_log(source, path, options, on_progress=on_progress)
        _refuse_nothing(Path(source), report)
        store = open_store(path)
        _credit(store, on_progress)
        yield Asked(store=store, imported=report)


def _refuse_nothing(source: Path, report: ImportReport) -> None:
    if not report.num_trajectories + report.num_already_there:
        bad = [f"{each.where}: {each.reason}" for each in report.bad_rows]
        left = [f"left out: {number:,} × {reason}" for reason, number in report.left_out.items()]
        different = [report.difference] * bool(report.num_different)
        why = next(iter([*bad, *different, *left]), "it is empty")
        raise InputError(f"{source} must have rollouts that can be read: {why}")
    if not report.num_success + report.num_failed + report.num_truncated + report.num_by_return:
        notes = [n for n in report.notes if "without a verdict" in n or n.startswith(NOT_USED)]
        raise InputError(f"{source} must say how its rollouts ended: {'. '.join(notes[::-1])}")


def _credit(store: Store, on_progress: OnProgress) -> None:
    known = {(c.run_id, c.iteration, c.estimator): c for c in credit_freshness(store)}
    credited = {place[:2] for place in known}
    is_any, empty = bool(known), None
    for run_id in store.runs():
        for iteration in store.iterations(run_id):
            found = known.get((run_id, iteration, RECOMMENDED))
            if found is not None and found.state == "current":
                continue
            if (run_id, iteration) in credited:
                stale = f"is {found.state}: {found.reason}" if found is not None else None
                why = stale or "is of other estimators"
                raise InputError(
                    f"{store.root} must have current credit by {RECOMMENDED}: that of run "
                    f"{run_id}, iteration {iteration} {why}. Give `graphcredit credit STORE -e "
                    f"{RECOMMENDED}` with the --merge and the --state of the rest"
                )
            try:
                assign_credit(
                    store,
                    settings_of(CreditOptions()),
                    run_id=run_id,
                    iteration=iteration,
                    on_progress=on_progress,
                )
            except NothingToCreditError as error:
                empty = error  # its rollouts have no verdict; others may have
            else:
                is_any = True
    if empty is not None and not is_any:
        raise empty
