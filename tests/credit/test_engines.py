"""The engines: the same bytes from any, whatever happens to the workers."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import ESTIMATORS, configure
from graphcredit.credit.inputs.run_history.counts import NAME_SCHEMA, RunHistory
from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.iteration.engines.local import LOCAL, BatchEngine, LocalEngine, open_engine
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.exact import ExactMerge
from graphcredit.credit.merging.merger import Merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import EngineError, SchemaError
from graphcredit.store.extras import how_to_install
from graphcredit.store.files.lock import LOCK_NAME
from graphcredit.store.parquet.er_graph import merge_er_graph
from tests.cli.test_credit import graphcredit
from tests.credit.entity_world import entity, er_graph, relations
from tests.credit.test_embedding import CountingEmbedder
from tests.examples import nightly
from tests.worlds import worked_example, write_store

TASKS = [f"t{number}" for number in range(6)]
GRPO = CreditSettings(estimators=configure(["grpo"]), batch_rows=8)
"""Each task is a batch of its own."""


@pytest.fixture(scope="module")
def ray_engine() -> Iterator[BatchEngine]:
    """Return the engine of a cluster of two machines, as far as Ray can tell, with a CPU each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        from ray.cluster_utils import Cluster

        machine: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 << 20}
        cluster = Cluster(initialize_head=True, head_node_args=machine)
        cluster.add_node(**machine)
        with open_engine("ray", cluster.address) as engine:
            yield engine
        cluster.shutdown()


def _two_iterations(root: Path) -> Store:
    """Write six tasks twice, two to a shard, with what 3SPO and SAPO want to know of them."""
    for iteration in range(2):
        shards = [worked_example(TASKS[n]) + worked_example(TASKS[n + 3]) for n in range(3)]
        store = write_store(root, *shards, iteration=iteration)
    entities = [e for t in TASKS for e in (entity("A", task_id=t), entity("C", task_id=t))]
    entities += [entity("B", task_id=t, answers=True) for t in TASKS]
    related = [relation for t in TASKS for relation in relations("A-B", task_id=t)]
    merge_er_graph(store, er_graph(entities, related))
    return store


def _written(store: Store) -> dict[str, bytes]:
    """Return the content of every file that the stage wrote."""
    made = [path for name in ("credit", "graph", "history") for path in store.root.glob(name)]
    return {
        str(path.relative_to(store.root)): path.read_bytes()
        for folder in made
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK_NAME
    }


RULES = """
[[ignore]]
text = "A|B"
by = "A"
[[keep]]
text = "A"
tasks = "*1"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("merge", "rules"),
    [
        nightly(MergeSettings(), ""),
        (MergeSettings(merge="segments", normalise=("whitespace",), substitute=(r"\d=>",)), RULES),
        nightly(MergeSettings(merge="embedding", threshold=0.9, guard=False), ""),
    ],
    ids=("exact", "segments", "embedding"),
)
def test_a_cluster_writes_the_bytes_that_one_process_writes(
    tmp_path: Path, ray_engine: BatchEngine, merge: MergeSettings, rules: str
):
    without = {"rloo", "spo3"} if merge.goes_on else {"rloo"}
    others = [row.name for row in ESTIMATORS if row.name not in without]
    wanted = GRPO.changed(estimators=configure(others), merge=merge)
    written, reports = [], []
    for name, engine in (("local", LOCAL), ("ray", ray_engine)):
        store = _two_iterations(tmp_path / name)
        store.state_rules_path.write_text(rules)
        assign_credit(store, GRPO.changed(estimators=configure(["rloo"])))
        reports.append(assign_credit(store, wanted, engine=engine))
        written.append(_written(store))
    assert written[0] == written[1]
    assert reports[0] == reports[1]
    # Three credit shards, two graph tables of each iteration, one history.
    assert len(written[0]) == 10 + ("spo3" in others)
    columns = set(pq.read_schema(store.shards()[0].credit_path).names)
    assert columns >= {f"{name}_advantage" for name in others}


def test_processes_write_the_bytes_that_one_process_writes(tmp_path: Path):
    """The exact merge, which learns nothing, is that of the slow tests of killed workers."""
    merge = MergeSettings(merge="segments")
    wanted = GRPO.changed(estimators=configure(["grpo", "graphgpo"]), merge=merge)
    written, reports = [], []
    for name, engine in (("local", LOCAL), ("processes", LocalEngine(2))):
        store = _two_iterations(tmp_path / name)
        reports.append(assign_credit(store, wanted, engine=engine))
        written.append(_written(store))
    assert written[0] == written[1]
    assert reports[0] == reports[1]


@dataclass(frozen=True)
class _With:
    """An engine that changes the work before it begins."""

    engine: BatchEngine
    change: Callable[[BatchWork], BatchWork]

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        return self.engine.map(self.change(work))


def _merging(engine: BatchEngine, merger: Merger) -> _With:
    return _With(engine, lambda work: replace(work, merger=merger))


class _Recording(Merger):
    """Leaves a file in a folder for every batch that a worker comes to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(MergeSettings(), ExactMerge())
        folder.mkdir()
        self.folder = folder

    def nodes(self, steps: Any, table: pa.Table) -> Any:
        (self.folder / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        return super().nodes(steps, table)


class _Deadly(Merger):
    """Kills the worker that it is in, so many times in all."""

    def __init__(self, folder: Path, deaths: int) -> None:
        super().__init__(MergeSettings(), ExactMerge())
        folder.mkdir()
        self.folder, self.deaths = folder, deaths

    def nodes(self, steps: Any, table: pa.Table) -> Any:
        for number in range(self.deaths):
            with suppress(FileExistsError):
                (self.folder / str(number)).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().nodes(steps, table)


def _wait_for(number: int, folder: Path) -> None:
    deadline = time.monotonic() + 300
    while len(list(folder.iterdir())) < number:
        assert time.monotonic() < deadline, f"{folder} should have had {number} files"
        time.sleep(0.02)


def _tasks_apart(root: Path) -> Store:
    return write_store(root, *map(worked_example, TASKS))


def _by_one_process(root: Path) -> dict[str, bytes]:
    store = _tasks_apart(root)
    assign_credit(store, GRPO)
    return _written(store)


@pytest.mark.slow
def test_the_batch_of_a_killed_worker_is_done_again(tmp_path: Path, ray_engine: BatchEngine):
    expected = _by_one_process(tmp_path / "local")
    for name, engine in (("ray", ray_engine), ("processes", LocalEngine(2))):
        store = _tasks_apart(tmp_path / name)
        deadly = _Deadly(tmp_path / f"deaths-{name}", deaths=2)
        assign_credit(store, GRPO, engine=_merging(engine, deadly))
        assert len(list(deadly.folder.iterdir())) == 2
        assert _written(store) == expected


@pytest.mark.slow
def test_a_batch_that_kills_every_worker_ends_the_run_and_changes_nothing(
    tmp_path: Path, ray_engine: BatchEngine
):
    store = write_store(tmp_path / "s", *map(worked_example, TASKS[:2]))
    assign_credit(store, GRPO)
    before = _written(store)
    for name, engine in (("ray", ray_engine), ("processes", LocalEngine(2))):
        deadly = _Deadly(tmp_path / f"deaths-{name}", deaths=100)
        with pytest.raises(EngineError, match="one of the 4 workers"):
            assign_credit(
                store, GRPO.changed(invalid_action_penalty=1.0), engine=_merging(engine, deadly)
            )
        assert 4 <= len(list(deadly.folder.iterdir())) <= 8
        assert _written(store) == before


@pytest.mark.slow
def test_a_machine_without_the_store_is_named(tmp_path: Path, ray_engine: BatchEngine):
    def elsewhere(work: BatchWork) -> BatchWork:
        moved = [replace(s, path=tmp_path / "elsewhere" / s.path.name) for s in work.shards]
        return replace(work, shards=moved)

    store = _tasks_apart(tmp_path / "s")
    with pytest.raises(EngineError, match=r"same path: .*elsewhere/w0-000000.parquet is not"):
        assign_credit(store, GRPO, engine=_With(ray_engine, elsewhere))
    assert _written(store) == {}


@pytest.mark.slow
def test_a_fault_in_the_store_reads_the_same_from_any_engine(
    tmp_path: Path, ray_engine: BatchEngine
):
    store = _tasks_apart(tmp_path / "s")
    path = store.shards()[3].path
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns("cost"), path)
    messages = []
    for engine in (LOCAL, ray_engine):
        with pytest.raises(SchemaError) as caught:
            assign_credit(store, GRPO, engine=engine)
        assert caught.type is SchemaError
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert str(path) in messages[0]


@pytest.mark.slow
def test_no_more_batches_are_under_way_than_two_for_each_cpu(
    tmp_path: Path, ray_engine: BatchEngine
):
    folder = tmp_path / "begun"
    begun: list[int] = []

    class Slow:
        def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
            results = _merging(ray_engine, _Recording(folder)).map(work)
            yield next(results)
            _wait_for(4, folder)
            time.sleep(0.2)
            begun.append(len(list(folder.iterdir())))
            yield from results

    assign_credit(_tasks_apart(tmp_path / "s"), GRPO, engine=Slow())
    assert begun == [4]  # both machines take part
    assert len(list(folder.iterdir())) == len(TASKS)


def _names(tasks: list[str], states: list[str | None], signatures: list[int | None]) -> pa.Table:
    columns = [tasks, states, [None] * len(tasks), signatures]
    arrays = map(pa.array, columns, NAME_SCHEMA.types)
    return pa.table([*arrays], schema=NAME_SCHEMA)


def test_counts_travel_between_processes():
    history = RunHistory({"merge": "exact"})
    names = _names(["t", "t"], ["A", "B"], [None, 7])
    counts = names.append_column("num_total", [[3, 1]]).append_column("num_success", [[1, 1]])
    history.add(4, "mark", history.keyed(counts), 3)
    copy: RunHistory = pickle.loads(pickle.dumps(history))
    # Nobody acts at a goal, which has no name.
    wanted = _names(["t", "t", "u", "t"], ["B", "A", "A", None], [None] * 4)
    assert copy.signed(wanted)["signature"].to_pylist() == [7, None, None, None]
    found = [numbers.tolist() for numbers in copy.look_up(copy.signed(wanted))]
    assert found == [[1, 3, 0, 0], [1, 1, 0, 0]]
    assert copy.iterations == {4: "mark"}
    assert (copy.num_trajectories, copy.merge) == (3, {"merge": "exact"})


@pytest.mark.slow
def test_workers_that_embed_a_text_at_a_time_leave_a_cache_that_reads(tmp_path: Path):
    store = write_store(tmp_path / "s")
    embedders = [CountingEmbedder(), CountingEmbedder()]
    workers = [CachedEmbedder(store, embedder) for embedder in embedders]
    for worker in workers:
        worker.embed([])
    for worker in workers:
        assert worker.embed(["a", "bb"]).tolist() == [[1, 1], [2, 1]]
    assert [embedder.asked for embedder in embedders] == [["a", "bb"]] * 2
    later = CountingEmbedder()
    assert CachedEmbedder(store, later).embed(["bb", "a"]).tolist() == [[2, 1], [1, 1]]
    assert later.asked == []


@pytest.mark.parametrize(
    ("arguments", "message", "exit_code"),
    [
        (["--engine", "spark"], "--engine must be one of local, ray: got 'spark'", 2),
        (["--engine", "local:none"], "local:N must name 1 process or more: got 'local:none'", 2),
        (["--engine", "ray:127.0.0.1:1"], "answer at '127.0.0.1:1'", 1),
        (["--engine", "ray:nonsense"], "answer at 'nonsense'", 2),
    ],
)
def test_an_engine_that_is_not_there_is_said_to_be_so(
    tmp_path: Path, arguments: list[str], message: str, exit_code: int
):
    store = write_store(tmp_path / "s", worked_example())
    result = graphcredit("credit", store.root, "-e", "grpo", *arguments)
    assert result.returncode == exit_code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_only_the_ray_engine_needs_ray():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from graphcredit.credit.stage import assign_credit\n"
        "from graphcredit.credit.iteration.engines.local import open_engine\n"
        "from graphcredit.store.errors import MissingDependencyError\n"
        "try:\n"
        "    with open_engine('ray'): pass\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert how_to_install("ray") in result.stdout
