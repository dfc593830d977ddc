"""The credit stage: step shards in; credit shards and graph tables out."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.inputs.material import InputProvider, IterationSteps, Opening, StoredRun
from graphcredit.credit.inputs.table import open_inputs
from graphcredit.credit.iteration.credit_batch import BatchWork
from graphcredit.credit.iteration.engines.local import LOCAL, BatchEngine
from graphcredit.credit.iteration.kept_columns import PreviousCredit
from graphcredit.credit.iteration.report import CreditReport, merge_reports, notices_of
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.iteration.writer import CreditWriter
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.merger import Merger, open_merger
from graphcredit.credit.steps.batches import Plan, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS
from graphcredit.store.errors import InputError, NothingToCreditError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.layout import AnyStore, Shard, Store, open_store
from graphcredit.store.parquet.shards import open_parquet, refuse_newer
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.provenance.configuration import configuration_of
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.state_rules import read_state_rules


def assign_credit(
    store: AnyStore,
    settings: CreditSettings,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    only_new: bool = False,
    engine: BatchEngine = LOCAL,
    on_progress: OnProgress = silent,
) -> dict[tuple[str, int], CreditReport]:
    """Assign credit to every complete trajectory of a store, or of one run or iteration.

    Columns of estimators that are not in `settings` are kept as they are.

    Args:
        store: A store, or its path.
        settings: What to compute.
        run_id: Only this run.
        iteration: Only this iteration.
        only_new: Only iterations whose credit by these estimators is missing, stale or made with
            other settings.
        engine: Computes the batches; the bytes that are written are the same with any.
        on_progress: Called with the iterations done, as a fraction, and their number.

    Returns:
        A report for each (run, iteration) that was credited, in that order.

    Raises:
        InputError: There are no step shards to credit, no entities where an estimator needs them,
            or another process credits one of the iterations; those before it are done.
        OptionError: An option is out of its range, or `states.toml` breaks its schema.
        NewerSchemaError: A shard or a table that would be read or replaced is of a newer schema;
            nothing was written.
        SchemaError: A shard cannot be read.
        MissingDependencyError: An estimator needs an extra that is not installed.
        NothingToCreditError: No trajectory is complete; no file was changed.
        EngineError: The engine cannot finish; iterations that it did not finish are unchanged.
    """
    # A worker on another machine has another current directory.
    store = Store(open_store(store).root.absolute())
    listed = [shard.with_state(settings.state) for shard in store.shards(run_id)]
    iterations = _by_iteration(listed, iteration)
    if not iterations:
        raise InputError(_nothing_found(store, run_id, iteration))
    _refuse_newer(store, iterations)
    settings = settings.changed(merge=settings.merge.changed(state_rules=read_state_rules(store)))
    stage = _Stage.open(store, settings, engine, listed, [run for run, _ in iterations])
    reports: dict[tuple[str, int], CreditReport] = {}
    # Files of iterations with nothing to credit wait: if all are like that, none is replaced.
    with ExitStack() as waiting:
        for done, (key, shards) in enumerate(iterations.items()):
            if only_new and stage.is_current(shards):
                continue
            with ExitStack() as written:
                written.enter_context(_alone(store, *key))
                reports[key] = stage.credit(
                    shards,
                    written,
                    lambda share, done=done: on_progress("credit", done + share, len(iterations)),
                )
                if not any(report.num_trajectories for report in reports.values()):
                    waiting.push(written.pop_all())
        if reports:
            _refuse_nothing(store, reports)
    for of_run in stage.providers.values():
        for provider in of_run.values():
            provider.finish()
    return reports


def _by_iteration(
    shards: Iterable[Shard], iteration: int | None
) -> dict[tuple[str, int], list[Shard]]:
    """Return the shards of each run and iteration, or of one iteration of each run."""
    iterations: dict[tuple[str, int], list[Shard]] = {}
    for shard in shards:
        if iteration in (None, shard.iteration):
            iterations.setdefault((shard.run_id, shard.iteration), []).append(shard)
    return iterations


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stage:
    """Everything that the iterations of one call have in common."""

    store: Store
    settings: CreditSettings
    engine: BatchEngine
    merger: Merger
    """Has not learned from any iteration."""
    sources: Sources
    providers: Mapping[str, Mapping[str, InputProvider]]
    """Run to input to what provides it."""

    @classmethod
    def open(
        cls,
        store: Store,
        settings: CreditSettings,
        engine: BatchEngine,
        shards: Sequence[Shard],
        run_ids: Iterable[str],
    ) -> "_Stage":
        """Prepare to credit some runs.

        Args:
            store: The store.
            settings: What to compute.
            engine: Computes the batches.
            shards: All step shards of these runs, those of other iterations too.
            run_ids: The runs.
        """
        merger = open_merger(settings.merge, partial(CachedEmbedder, store))
        sources = Sources(store, shards)
        providers = {
            run: open_inputs(
                settings.inputs,
                Opening(
                    options=settings.estimators,
                    stored=StoredRun(
                        run_id=run,
                        sources=sources,
                        merge=settings.merge,
                        fit=partial(_fitted, merger),
                        batch_rows=settings.batch_rows,
                    ),
                ),
            )
            for run in dict.fromkeys(run_ids)
        }
        return cls(
            store=store,
            settings=settings,
            engine=engine,
            merger=merger,
            sources=sources,
            providers=providers,
        )

    def is_current(self, shards: Sequence[Shard]) -> bool:
        """Return whether an iteration has this credit: made in this way of the present files."""
        run_id, iteration = shards[0].run_id, shards[0].iteration
        wanted = self.settings.as_json(partial(self.sources.marks, run_id, iteration))
        wanted = json.loads(json.dumps(wanted))
        return all(_configuration(shard).items() >= wanted.items() for shard in shards)

    def credit(
        self, shards: Sequence[Shard], written: ExitStack, on_progress: Callable[[float], None]
    ) -> CreditReport:
        """Credit one iteration; its files get their names when `written` is closed."""
        run_id, iteration = shards[0].run_id, shards[0].iteration
        plan = plan_batches(shards, self.settings.batch_rows)
        marks = self.settings.as_json(partial(self.sources.marks, run_id, iteration))
        work = self._work(run_id, iteration, shards, plan)
        writer = CreditWriter(
            self.store,
            shards,
            plan.num_rows,
            configuration=work.previous.configuration | marks,
            rules_met=work.merger.rules_met,
        )
        report = self._compute(work, written.enter_context(writer), on_progress)
        for provider in self.providers[run_id].values():
            provider.leave()
        return report

    def _work(self, run_id: str, iteration: int, shards: Sequence[Shard], plan: Plan) -> BatchWork:
        """Return what an engine needs to credit the batches of an iteration."""
        settings = self.settings
        outdated = partial(self.sources.outdated, run_id, iteration)
        previous = PreviousCredit.load(shards, settings, outdated)
        merger = _fitted(self.merger, shards, plan)
        entered = IterationSteps(number=iteration, shards=shards, plan=plan, merger=merger)
        providers = self.providers[run_id].items()
        return BatchWork(
            shards=shards,
            plan=plan,
            previous=previous,
            settings=settings,
            merger=merger,
            provided={name: provider.enter(entered) for name, provider in providers},
        )

    def _compute(
        self, work: BatchWork, writer: CreditWriter, on_progress: Callable[[float], None]
    ) -> CreditReport:
        """Compute the batches, and hand their columns and tables to the writer."""
        report = CreditReport(
            notices=list(work.previous.notices), state_rules=work.merger.rules_met
        )
        key = work.shards[0].run_id, work.shards[0].iteration
        graph_dir = self.store.graph_dir(*key)
        for number, batch in enumerate(self.engine.map(work)):
            _put(writer, work.plan, number, batch.columns)
            writer.append(graph_dir / "edges.parquet", batch.edges)
            writer.append(graph_dir / "nodes.parquet", batch.nodes)
            report.add(batch.report)
            # Freed texts that the allocator keeps would double the memory where states are long.
            pa.default_memory_pool().release_unused()
            on_progress((number + 1) / len(work.plan.shards_of_batch))
        report.notices += notices_of(report, self.settings)
        return report


def _configuration(shard: Shard) -> dict[str, Any]:
    """Return how the credit of a shard was made, by estimator; nothing where it has none."""
    if not shard.credit_path.is_file():
        return {}
    with open_parquet(shard.credit_path, whole=False) as file:
        return configuration_of(file.schema_arrow)


def _fitted(merger: Merger, shards: Sequence[Shard], plan: Plan) -> Merger:
    """Return the merger that has learned from an iteration; one that need not reads nothing."""
    batches = read_batches(shards, plan, (*COLUMNS, *merger.settings.columns))
    tables = (pa.concat_tables([piece.steps for piece in pieces]) for pieces in batches)
    return merger.learn(tables)


def _refuse_newer(store: Store, iterations: Mapping[tuple[str, int], Sequence[Shard]]) -> None:
    """Raise NewerSchemaError if a file that would be read or replaced has a newer schema."""
    for key, shards in iterations.items():
        refuse_newer(path for shard in shards for path in (shard.path, shard.credit_path))
        refuse_newer(store.graph_dir(*key).glob("*.parquet"))


def _alone(store: Store, run_id: str, iteration: int) -> AbstractContextManager[None]:
    """Keep others from an iteration: of two at a time, one would lose what the other adds."""
    refusal = (
        f"run {run_id}, iteration {iteration} of {store.root} must be credited by one process at a "
        "time, but another is doing so: wait until it has ended, then run this command again"
    )
    return alone_in(store.credit_dir(run_id, iteration), refusal)


def _put(
    writer: CreditWriter, plan: Plan, batch: int, columns: Mapping[str, NDArray[np.generic]]
) -> None:
    start = 0
    for shard in plan.shards_of_batch[batch]:
        rows = plan.rows_of(shard, batch)
        stop = start + len(rows)
        share = {name: values[start:stop] for name, values in columns.items()}
        writer.put(shard, rows, share)
        start = stop


def _refuse_nothing(store: Store, reports: Mapping[tuple[str, int], CreditReport]) -> None:
    total = merge_reports(reports.values())
    if total.num_trajectories:
        return
    reasons = [f"{count:,}: {reason}" for reason, count in total.incomplete_reasons.items()]
    listed = "\n".join([*reasons, f"for example {total.incomplete_example}"] if reasons else [])
    raise NothingToCreditError(
        f"{store.root} must have a complete rollout to credit: found "
        f"{counted(total.num_incomplete, 'incomplete rollout')} "
        f"({counted(total.num_rows, 'step')}). No file was changed. "
        "A rollout is complete if its last step has an end: `graphcredit import --success`, "
        f"or the recorder's `end`. `graphcredit check {store.root}` says more\n{listed}".rstrip()
    )


def _nothing_found(store: Store, run_id: str | None, iteration: int | None) -> str:
    wanted = f" for run {run_id!r}" if run_id else ""
    wanted += f" and iteration {iteration}" if iteration is not None else ""
    if run_id in store.runs():
        there = f"iterations: {', '.join(map(str, store.iterations(run_id))) or 'none'}"
    else:
        there = f"runs: {', '.join(store.runs()) or 'none'}"
    message = f"{store.root} must have step shards{wanted}: found none ({there})"
    if num_spools := len(store.spools()):
        spools = counted(num_spools, "spool")
        message += f". Run `graphcredit check STORE --recover` to recover {spools}"
    return message
