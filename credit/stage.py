"""The credit stage: step shards in, credit shards and graph tables out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.assembly import assemble
from graphcredit.credit.columns import common_columns, estimator_columns, scatter
from graphcredit.credit.entities import find_mentions
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.estimators.spo3 import Spo3
from graphcredit.credit.graph_tables import edge_schema, edge_table, node_table
from graphcredit.credit.merging import Merger, MergeSettings, open_merger
from graphcredit.credit.options import check_options, options_as_json
from graphcredit.credit.plan import BATCH_ROWS, Piece, fingerprint_of, plan_batches, read_batches
from graphcredit.credit.previous import PreviousCredit
from graphcredit.credit.report import CreditReport, entity_notices, report_of
from graphcredit.credit.table import Assigner, estimator_named
from graphcredit.credit.timeline import IterationPast, Timeline
from graphcredit.credit.trajectories import COLUMNS
from graphcredit.credit.window import Window
from graphcredit.credit.writer import CreditWriter
from graphcredit.store.er_graph import ErGraph, read_er_graph
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.layout import Shard, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditSettings:
    """What to compute, and how."""

    estimators: Mapping[str, Assigner]
    """Name to options, as `table.configure` returns them."""
    merge: MergeSettings = field(default_factory=MergeSettings)
    """Which texts are one state."""
    invalid_action_penalty: float = 0.0
    """Taken off the reward of every invalid step before anything else."""
    graph_window: int = 0
    """Distances are found on the transitions of this and the last so many iterations, of the same
    tasks; 0 is the papers'."""
    batch_rows: int = BATCH_ROWS
    """Rows that are processed together: bounds the memory, changes no number."""


def assign_credit(
    store: Store,
    settings: CreditSettings,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: Callable[[float, int], None] = lambda done, total: None,
) -> dict[tuple[str, int], CreditReport]:
    """Assign credit to every complete trajectory of a store, or of one run or iteration.

    Columns of estimators that are not in `settings` are kept as they are.

    Args:
        store: The store.
        settings: What to compute.
        run_id: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the iterations done, as a fraction, and their number.

    Returns:
        A report for each (run, iteration), in that order.

    Raises:
        InputError: There are no step shards to credit, or no entities where an estimator needs
            them.
        OptionError: An option is out of its range.
        SchemaError: A shard cannot be read.
        MissingDependencyError: An estimator needs an extra that is not installed.
    """
    _check(settings)
    shards = store.shards(run_id, iteration)
    if not shards:
        raise InputError(_nothing_found(store, run_id, iteration))
    of_iteration: dict[tuple[str, int], list[Shard]] = {}
    for shard in shards:
        of_iteration.setdefault((shard.run_id, shard.iteration), []).append(shard)
    timelines = _timelines(store, [run for run, _ in of_iteration], settings)
    er_graph = read_er_graph(store) if _reads("thought", settings) else None
    reports = {
        key: _credit_iteration(
            store,
            members,
            settings,
            timelines.get(key[0]),
            er_graph,
            lambda share, done=done: on_progress(done + share, len(of_iteration)),
        )
        for done, (key, members) in enumerate(of_iteration.items())
    }
    for timeline in timelines.values():
        timeline.finish()
    return reports


def _reads(column: str, settings: CreditSettings) -> bool:
    """Return whether an estimator that is asked for declares a column beyond `COLUMNS`."""
    return any(column in estimator_named(name).reads for name in settings.estimators)


def _timelines(
    store: Store, run_ids: Sequence[str], settings: CreditSettings
) -> dict[str, Timeline]:
    """Return the past of each run, where an estimator asks for it."""
    spo3 = settings.estimators.get("spo3")
    if not isinstance(spo3, Spo3):
        return {}
    merger = open_merger(settings.merge, store)
    return {run: Timeline(store, run, spo3, merger, settings.batch_rows) for run in run_ids}


def _credit_iteration(
    store: Store,
    shards: Sequence[Shard],
    settings: CreditSettings,
    timeline: Timeline | None,
    er_graph: ErGraph | None,
    on_progress: Callable[[float], None],
) -> CreditReport:
    plan = plan_batches(shards, settings.batch_rows)
    mark = fingerprint_of(shards, plan.num_rows)
    previous = PreviousCredit.load(shards, settings.estimators, mark)
    configuration = previous.configuration | _configuration(settings, mark, er_graph)
    past = timeline.enter(shards[0].iteration, shards, plan) if timeline else None
    graph = store.graph_dir(shards[0].run_id, shards[0].iteration)
    work = _Work(
        shards=shards,
        previous=previous,
        settings=settings,
        merger=open_merger(settings.merge, store).taught_by(shards, plan),
        past=past,
        er_graph=er_graph,
        window=Window.before(store, shards[0].run_id, shards[0].iteration, settings.graph_window),
    )
    columns = work.columns()
    report = CreditReport(notices=list(previous.notices))
    with CreditWriter(shards, plan.num_rows, configuration) as writer:
        for number, pieces in enumerate(read_batches(shards, plan, columns)):
            done = work.credit_batch(number, pieces)
            _put(writer, pieces, done.columns)
            writer.append(graph / "edges.parquet", done.edges)
            writer.append(graph / "nodes.parquet", done.nodes)
            report.add(done.report)
            on_progress((number + 1) / len(plan.shards_of_batch))
    if timeline:
        timeline.leave()
    report.notices += entity_notices(report)
    return report


@dataclass(frozen=True, kw_only=True, slots=True)
class _Done:
    """What one batch came to."""

    columns: Mapping[str, NDArray[np.generic]]
    edges: pa.Table
    nodes: pa.Table
    report: CreditReport


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    """One iteration, ready to be credited batch by batch, in any order."""

    shards: Sequence[Shard]
    previous: PreviousCredit
    settings: CreditSettings
    merger: Merger
    past: IterationPast | None
    er_graph: ErGraph | None
    window: Window

    def columns(self) -> tuple[str, ...]:
        """Return the step columns to read."""
        thought = () if self.er_graph is None else ("thought",)
        return (*COLUMNS, *thought, *self.settings.merge.columns)

    def credit_batch(self, number: int, pieces: Sequence[Piece]) -> _Done:
        """Build the graph of a batch, and compute every column and table."""
        table = pa.concat_tables([piece.steps for piece in pieces])
        assembly = assemble(
            table,
            merger=self.merger,
            invalid_action_penalty=self.settings.invalid_action_penalty,
            read_window=self._read_window if self.window.shards else None,
        )
        if self.past:
            past = self.past.of_batch(number, assembly)
            assembly = replace(assembly, batch=replace(assembly.batch, past=past))
        if self.er_graph:
            mentions = find_mentions(self.er_graph, assembly.steps, table["thought"])
            assembly = replace(assembly, batch=replace(assembly.batch, mentions=mentions))
        kept = self.previous.read(self.shards, pieces)
        columns = common_columns(assembly.batch)
        columns |= estimator_columns(assembly.batch, self.settings.estimators)
        columns |= {name: values[assembly.steps.row] for name, values in kept.items()}
        rewardflow = self._rewardflow()
        value = rewardflow.value(assembly.batch) if rewardflow else None
        return _Done(
            columns={name: scatter(assembly, values) for name, values in columns.items()},
            edges=edge_table(assembly, columns, edge_schema(list(columns))),
            nodes=node_table(assembly, value),
            report=report_of(assembly),
        )

    def _read_window(self, tasks: pa.Array) -> pa.Table | None:
        return self.window.read(tasks, self.columns())

    def _rewardflow(self) -> RewardFlow | None:
        """Return RewardFlow as its columns were or will be made, for the nodes' potential."""
        made_by = self.previous.configuration.get("rewardflow")
        kept = RewardFlow(**made_by["options"]) if made_by else None
        asked_for = self.settings.estimators.get("rewardflow", kept)
        return asked_for if isinstance(asked_for, RewardFlow) else None


def _put(
    writer: CreditWriter, pieces: Sequence[Piece], columns: Mapping[str, NDArray[np.generic]]
) -> None:
    start = 0
    for piece in pieces:
        stop = start + len(piece.rows)
        part = {name: values[start:stop] for name, values in columns.items()}
        writer.put(piece.shard, piece.rows, part)
        start = stop


def _configuration(settings: CreditSettings, mark: str, er_graph: ErGraph | None) -> dict[str, Any]:
    """Return, per estimator, all that its columns depend on."""
    configuration: dict[str, Any] = {
        name: {
            "options": options_as_json(options),
            **settings.merge.as_json(),
            "invalid_action_penalty": settings.invalid_action_penalty,
            "graph_window": settings.graph_window,
            "steps": mark,
        }
        for name, options in settings.estimators.items()
    }
    if er_graph is not None and "sapo" in configuration:
        configuration["sapo"]["er_graph"] = er_graph.digest()
    return configuration


def _check(settings: CreditSettings) -> None:
    if not settings.estimators:
        raise OptionError("name at least one estimator")
    settings.merge.check()
    for name, options in settings.estimators.items():
        check_options(options, owner=estimator_named(name).name)
    if settings.graph_window < 0:
        raise OptionError(f"graph_window must be 0 or more: got {settings.graph_window}")
    if not np.isfinite(settings.invalid_action_penalty) or settings.invalid_action_penalty < 0:
        raise OptionError(
            f"invalid_action_penalty must be 0 or more: got {settings.invalid_action_penalty}"
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
