"""The credit stage: step shards in, credit shards and graph tables out."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.inputs.run_history.timeline import Timeline
from graphcredit.credit.iteration.credit_batch import BatchWork
from graphcredit.credit.iteration.earlier_steps import Window
from graphcredit.credit.iteration.engines.local import LOCAL, BatchEngine
from graphcredit.credit.iteration.kept_columns import PreviousCredit
from graphcredit.credit.iteration.report import CreditReport, merge_reports, notices_of
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.iteration.writer import CreditWriter
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.merger import Merger, open_merger
from graphcredit.credit.steps.batches import Plan, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS
from graphcredit.store.credit_marks.sources import Sources
from graphcredit.store.errors import InputError, NothingToCreditError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.er_graph import ErGraph
from graphcredit.store.parquet.shards import refuse_newer


def assign_credit(
    store: Store,
    settings: CreditSettings,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    engine: BatchEngine = LOCAL,
    on_progress: Callable[[float, int], None] = lambda done, total: None,
) -> dict[tuple[str, int], CreditReport]:
    """Assign credit to every complete trajectory of a store, or of one run or iteration.

    Columns of estimators that are not in `settings` are kept as they are.

    Args:
        store: The store.
        settings: What to compute.
        run_id: Only this run.
        iteration: Only this iteration.
        engine: Computes the batches; the bytes that are written are the same with any.
        on_progress: Called with the iterations done, as a fraction, and their number.

    Returns:
        A report for each (run, iteration), in that order.

    Raises:
        InputError: There are no step shards to credit, no entities where an estimator needs them,
            or another process credits one of the iterations; those before it are done.
        OptionError: An option is out of its range.
        NewerSchemaError: A shard or a table that would be read or replaced is of a newer schema;
            nothing was written.
        SchemaError: A shard cannot be read.
        MissingDependencyError: An estimator needs an extra that is not installed.
        NothingToCreditError: No trajectory is complete; no file was changed.
        EngineError: The engine cannot finish; iterations that it did not finish are unchanged.
    """
    # A worker on another machine has another current directory.
    store = Store(store.root.absolute())
    listed = store.shards(run_id)
    shards = [shard for shard in listed if iteration in (None, shard.iteration)]
    if not shards:
        raise InputError(_nothing_found(store, run_id, iteration))
    of_iteration: dict[tuple[str, int], list[Shard]] = {}
    for shard in shards:
        of_iteration.setdefault((shard.run_id, shard.iteration), []).append(shard)
    refuse_newer(path for shard in shards for path in (shard.path, shard.credit_path))
    for place in of_iteration:
        refuse_newer(store.graph_dir(*place).glob("*.parquet"))
    merger = open_merger(settings.merge, partial(CachedEmbedder, store))
    timelines = _timelines(store, [run for run, _ in of_iteration], settings, merger)
    sources = Sources(store, listed)
    er_graph = sources.er_graph if settings.needs_entities else None
    reports: dict[tuple[str, int], CreditReport] = {}
    # What has nothing to credit is written when another iteration has.
    with ExitStack() as waiting:
        for done, ((run, number), members) in enumerate(of_iteration.items()):
            with ExitStack() as written:
                written.enter_context(_alone(store, run, number))
                reports[run, number] = _credit_iteration(
                    store,
                    members,
                    settings,
                    merger,
                    sources,
                    timelines.get(run),
                    er_graph,
                    engine,
                    lambda share, done=done: on_progress(done + share, len(of_iteration)),
                    written,
                )
                if not any(report.num_trajectories for report in reports.values()):
                    waiting.push(written.pop_all())
        _refuse_nothing(store, reports)
    for timeline in timelines.values():
        timeline.finish()
    return reports


def _timelines(
    store: Store, run_ids: Sequence[str], settings: CreditSettings, merger: Merger
) -> dict[str, Timeline]:
    """Return the past of each run, where an estimator asks for it."""
    scores = settings.state_scores
    if scores is None:
        return {}
    return {
        run: Timeline(
            store,
            run,
            scores,
            merge=settings.merge,
            teach=partial(_taught, merger),
            batch_rows=settings.batch_rows,
        )
        for run in run_ids
    }


def _taught(merger: Merger, shards: Sequence[Shard], plan: Plan) -> Merger:
    """Return the merger that has learned from an iteration; one that need not reads nothing."""
    batches = read_batches(shards, plan, (*COLUMNS, *merger.settings.columns))
    return merger.learn(pa.concat_tables([p.steps for p in pieces]) for pieces in batches)


def _alone(store: Store, run_id: str, iteration: int) -> AbstractContextManager[None]:
    """Keep others from an iteration: of two at a time, one would lose what the other adds."""
    refusal = (
        f"run {run_id}, iteration {iteration} of {store.root} must be credited by one process at a "
        "time, but another is doing so: wait until it has ended, then run this command again"
    )
    return alone_in(store.credit_dir(run_id, iteration), refusal)


def _credit_iteration(
    store: Store,
    shards: Sequence[Shard],
    settings: CreditSettings,
    merger: Merger,
    sources: Sources,
    timeline: Timeline | None,
    er_graph: ErGraph | None,
    engine: BatchEngine,
    on_progress: Callable[[float], None],
    written: ExitStack,
) -> CreditReport:
    """Credit an iteration; its files get their names when `written` is closed."""
    plan = plan_batches(shards, settings.batch_rows)
    place = (shards[0].run_id, shards[0].iteration)
    marks = settings.as_json(partial(sources.marks, *place))
    previous = PreviousCredit.load(
        shards, settings.estimators, partial(sources.outdated, *place), settings.graph_as_json()
    )
    configuration = previous.configuration | marks
    merger = _taught(merger, shards, plan)
    past = timeline.enter(place[1], shards, plan, merger) if timeline else None
    graph = store.graph_dir(*place)
    work = BatchWork(
        shards=shards,
        plan=plan,
        previous=previous,
        settings=settings,
        merger=merger,
        past=past,
        er_graph=er_graph,
        window=Window.before(store, *place, settings.graph_window),
    )
    report = CreditReport(notices=list(previous.notices))
    writer = written.enter_context(CreditWriter(store, shards, plan.num_rows, configuration))
    for number, done in enumerate(engine.map(work)):
        _put(writer, plan, number, done.columns)
        writer.append(graph / "edges.parquet", done.edges)
        writer.append(graph / "nodes.parquet", done.nodes)
        report.add(done.report)
        on_progress((number + 1) / len(plan.shards_of_batch))
    if timeline:
        timeline.leave()
    report.notices += notices_of(report, settings.rows)
    return report


def _put(
    writer: CreditWriter, plan: Plan, batch: int, columns: Mapping[str, NDArray[np.generic]]
) -> None:
    start = 0
    for shard in plan.shards_of_batch[batch]:
        rows = plan.rows_of(shard, batch)
        stop = start + len(rows)
        part = {name: values[start:stop] for name, values in columns.items()}
        writer.put(shard, rows, part)
        start = stop


def _refuse_nothing(store: Store, reports: Mapping[tuple[str, int], CreditReport]) -> None:
    total = merge_reports(reports.values())
    if total.num_trajectories:
        return
    reasons = [f"{count:,}: {reason}" for reason, count in total.incomplete_reasons.items()]
    listed = "\n".join([*reasons, f"for example {total.incomplete_example}"] if reasons else [])
    raise NothingToCreditError(
        f"{store.root} must have a complete trajectory to credit: none of {total.num_incomplete:,} "
        f"({total.num_rows:,} steps) is complete, and credit that was there is as it was. "
        f"`graphcredit check {store.root}` names file and row\n{listed}".rstrip()
    )


def _nothing_found(store: Store, run_id: str | None, iteration: int | None) -> str:
    wanted = f" for run {run_id!r}" if run_id else ""
    wanted += f" and iteration {iteration}" if iteration is not None else ""
    if run_id in store.runs():
        there = f"iterations: {', '.join(map(str, store.iterations(run_id))) or 'none'}"
    else:
        there = f"runs: {', '.join(store.runs()) or 'none'}"
    num_spools = len(list(store.spool_dir.glob("*.arrows")))
    waiting = f"; {num_spools} spools wait for `graphcredit check STORE --recover`"
    return f"{store.root} must have step shards{wanted}: found none ({there})" + (
        waiting if num_spools else ""
    )
