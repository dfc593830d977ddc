"""A store is copied to object storage and back; what is there stays, and nothing is half there."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, cycle
from pathlib import Path
from threading import Event
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.copying import locations
from graphcredit.store.copying.copy_store import copy_store
from graphcredit.store.copying.locations import Location
from graphcredit.store.errors import (
    DamagedFileError,
    InputError,
    MissingDependencyError,
    ReplacedError,
    StoreFormatError,
)
from graphcredit.store.provenance.freshness import credit_freshness
from tests.cli.in_process import run as graphcredit
from tests.worlds import trajectory, write_store

REMOTE = "memory://bucket/store"


def credited(root: Path, *estimators: str) -> Store:
    """Return a store with two runs, of which one has two iterations, and their credit."""
    win, loss = ["A", "go", "B", "go", "C"], ["A", "go", "B", "back", "A"]
    for run_id, iteration in (("r0", 0), ("r0", 1), ("r1", 0)):
        shards = [trajectory("1", win, success=True), trajectory("2", loss)]
        write_store(root, *shards, run_id=run_id, iteration=iteration)
    (root / "states.toml").write_text('[[keep]]\ntext = "{number}"\n')
    assign_credit(root, CreditSettings(estimators=configure(estimators or ("grpo",))))
    (root / "images").mkdir(exist_ok=True)
    (root / "images" / "a.png").write_bytes(b"a picture")
    return open_store(root)


def files(root: Path) -> dict[str, bytes]:
    """Return what a copy has to have."""
    skipped = {"store.duckdb", "spool", "quarantine"}
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in skipped
        if path.name != ".lock"
    }


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    yield
    memory.store.clear()


def test_there_and_back_is_the_same_store_and_nothing_is_copied_twice(tmp_path: Path):
    root = credited(tmp_path / "one").root
    sent = copy_store(str(root), REMOTE)
    back = copy_store(REMOTE, str(tmp_path / "two"))
    assert files(tmp_path / "two") == files(root)
    # The mark of a store is not counted.
    assert sent.num_files == back.num_files == len(files(root)) - 1
    assert sent.num_bytes == back.num_bytes > 0
    assert check_store(open_store(tmp_path / "two")).violations == ()
    for source, target in ((str(root), REMOTE), (REMOTE, str(tmp_path / "two"))):
        again = copy_store(source, target)
        assert (again.num_files, again.num_equal) == (0, sent.num_files)


def test_what_changed_is_copied_and_what_is_more_stays(tmp_path: Path):
    root = credited(tmp_path / "one").root
    copy_store(f"file://{root}", str(tmp_path / "two"))
    more = tmp_path / "two" / "steps" / "run_id=r9" / "iteration=000000"
    shutil.copytree(tmp_path / "two" / "steps" / "run_id=r1" / "iteration=000000", more)
    credited(root, "gigpo")
    found = copy_store(str(root), str(tmp_path / "two"))
    assert 0 < found.num_files < len(files(root))
    assert files(tmp_path / "two").items() > files(root).items()


def test_an_iteration_comes_with_what_belongs_to_all(tmp_path: Path):
    root = credited(tmp_path / "one", "spo3").root
    copy_store(str(root), REMOTE, run_id="r0", iteration=1)
    copy_store(REMOTE, str(tmp_path / "two"))
    store = open_store(tmp_path / "two")
    assert (store.runs(), store.iterations("r0")) == (["r0"], [1])
    there = files(tmp_path / "two")
    assert {"states.toml", "images/a.png", "history/run_id=r0/state_scores.parquet"} <= there.keys()
    assert files(root).items() > there.items()
    with pytest.raises(InputError, match="must have a file of run r0, iteration 7: it has none"):
        copy_store(str(root), REMOTE, run_id="r0", iteration=7)


def test_steps_that_are_in_no_shard_are_counted(tmp_path: Path):
    root = credited(tmp_path / "one").root
    (root / "spool").mkdir()
    (root / "spool" / "w0.jsonl").write_bytes(b"steps")
    (root / "spool" / "w1.arrows").write_bytes(b"steps of an older version")
    (root / "spool" / ".lock").touch()
    assert copy_store(str(root), REMOTE).left == {"spool": 2}


def test_a_damaged_file_is_not_copied_either_way(tmp_path: Path):
    root = credited(tmp_path / "one").root
    copy_store(str(root), REMOTE)
    (credit,) = (root / "credit" / "run_id=r1").rglob("w0*.parquet")
    content = bytearray(credit.read_bytes())
    content[20] ^= 1
    credit.write_bytes(content)
    with pytest.raises(DamagedFileError, match="pages"):
        copy_store(str(root), "memory://bucket/other")
    name = f"/bucket/store/{credit.relative_to(root).as_posix()}"
    fsspec.filesystem("memory").pipe_file(name, bytes(content))
    with pytest.raises(DamagedFileError, match="pages"):
        copy_store(REMOTE, str(tmp_path / "two"))
    assert not (tmp_path / "two" / credit.relative_to(root)).exists()
    # What came before it is a store that can be read, and the rest comes once it is whole.
    assert "digest" not in {v.rule for v in check_store(open_store(tmp_path / "two")).violations}


def _stopped_before(call: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Let writes and renames in object storage fail from one call on; return whether it came."""
    calls = count()
    is_stopped = Event()

    def stopping(kind: str) -> None:
        real = getattr(fs.PyFileSystem, kind)

        def stop_or(self: fs.PyFileSystem, *arguments: object) -> object:
            if is_stopped.is_set() or next(calls) == call:
                is_stopped.set()
                raise KeyboardInterrupt
            return real(self, *arguments)

        monkeypatch.setattr(Renaming, kind, stop_or)

    for kind in ("open_output_stream", "move"):
        stopping(kind)
    return is_stopped.is_set


class Renaming(fs.PyFileSystem):
    """A file system of fsspec whose methods a test may replace."""


@pytest.fixture
def renaming(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Renaming(fs.FSSpecHandler(fsspec.filesystem("memory")))
    monkeypatch.setattr(locations, "_by_fsspec", lambda *_: (memory, "/bucket/store"))


@pytest.mark.usefixtures("renaming")
def test_a_copy_that_stops_anywhere_leaves_no_cut_file_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = credited(tmp_path / "one")
    memory = fsspec.filesystem("memory")
    for stop in count():
        memory.store.clear()
        with monkeypatch.context() as patch:
            is_stopped = _stopped_before(stop, patch)
            with suppress(KeyboardInterrupt):
                copy_store(str(store.root), REMOTE)
        names = {name.removeprefix("/bucket/store/") for name in memory.find("/bucket/store")}
        there = {name: memory.cat(f"/bucket/store/{name}") for name in names}
        finished = {name: text for name, text in there.items() if not name.endswith(".tmp")}
        assert finished.items() <= files(store.root).items()
        for name in filter(lambda name: name.startswith("credit/"), finished):
            assert name.replace("credit/", "steps/", 1) in finished
        if not is_stopped():
            assert len(finished) == len(files(store.root))
            break
    assert stop > 2 * len(files(store.root)) - 2


def test_credit_appears_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A new credit reaches a copy of the old one; the copy stops before each of its files."""
    source, copied = credited(tmp_path / "one"), tmp_path / "two"
    copy_store(str(source.root), str(copied))
    credited(source.root, "gigpo")
    old, new = files(copied), files(source.root)
    changed = {name for name in new if old.get(name) != new[name]}
    real = Location.writing
    for stop in range(len(changed) + 1):
        calls = count()

        def writing(
            self: Location, path: str, *rest: Any, at: int = stop, n: Any = calls, **options: Any
        ) -> Any:
            if next(n) >= at:
                raise KeyboardInterrupt
            return real(self, path, *rest, **options)

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(Location, "writing", writing)
            copy_store(str(source.root), str(copied))
        states = {(s.run_id, s.iteration, s.state) for s in credit_freshness(open_store(copied))}
        assert {state for *_, state in states} == {"current"}
        assert not list(copied.rglob("*.tmp"))
    assert files(copied) == new


def test_credit_that_is_replaced_while_it_is_copied_is_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = credited(tmp_path / "one")
    read, estimators = Location.read, iter(["gigpo", "graphgpo"])
    first = next(name for name in files(source.root) if name.startswith("credit/run_id=r1"))

    def replacing(self: Location, path: str) -> Any:
        if path == first and (estimator := next(estimators, None)):
            credited(source.root, estimator)
        return read(self, path)

    monkeypatch.setattr(Location, "read", replacing)
    copy_store(str(source.root), str(tmp_path / "two"))
    assert {s.state for s in credit_freshness(open_store(tmp_path / "two"))} == {"current"}
    estimators = cycle(["gigpo", "graphgpo"])
    with pytest.raises(ReplacedError, match="must stay the same while it is copied"):
        copy_store(str(source.root), str(tmp_path / "three"))


@pytest.mark.parametrize("size", [100, 1 << 17], ids=["short", "long"])
@pytest.mark.parametrize("target", [REMOTE, "two"])
def test_files_of_one_size_without_a_digest_are_compared_whole(
    tmp_path: Path, target: str, size: int
):
    root = credited(tmp_path / "one").root
    shard = min((root / "steps" / "run_id=r1").rglob("*.parquet"))
    noise = np.random.default_rng(0).bytes(size).hex()
    steps = pq.read_table(shard).replace_schema_metadata({b"note": noise})
    rewards = np.arange(float(len(steps)))

    def write(values: np.ndarray) -> int:
        column = steps.schema.get_field_index("reward")
        table = steps.set_column(column, "reward", pa.array(values))
        pq.write_table(table, shard, compression="none", use_dictionary=False)
        return shard.stat().st_size

    before = write(rewards)
    picture = root / "images" / "a.png"
    picture.write_bytes(b"1" + bytes(size))
    where = target if "://" in target else str(tmp_path / target)
    copy_store(str(root), where)
    assert write(rewards[::-1]) == before
    picture.write_bytes(b"2" + bytes(size))
    assert copy_store(str(root), where).num_files == 2
    assert copy_store(where, str(tmp_path / "back")).num_equal == 0
    assert files(tmp_path / "back") == files(root)


def test_links_are_not_copied_and_linked_folders_refused(tmp_path: Path):
    root = credited(tmp_path / "one").root
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "images" / "x.png").symlink_to(tmp_path / "secret")
    report = copy_store(str(root), REMOTE)
    assert report.links == ("images/x.png",)
    memory = fsspec.filesystem("memory")
    assert b"secret" not in map(memory.cat, memory.find("/bucket"))
    assert "1 link not copied, such as images/x.png" in graphcredit("copy", root, REMOTE).out
    for folder, behind in (
        ("images/more", "images"),
        ("loop", "."),
        ("run_id=r9", "steps/run_id=r0"),
    ):
        link = root / folder if folder == "loop" else root / "steps" / Path(folder).name
        link.symlink_to(root / behind)
        with pytest.raises(InputError, match="must be in it"):
            copy_store(str(root), REMOTE)
        link.unlink()


def test_places_that_are_no_stores_are_refused(tmp_path: Path):
    root = str(credited(tmp_path / "one").root)
    with pytest.raises(StoreFormatError, match="is not a store"):
        copy_store(REMOTE, str(tmp_path / "two"))
    with pytest.raises(InputError, match="one of both places must be on this machine"):
        copy_store(REMOTE, "memory://bucket/other")
    fsspec.filesystem("memory").pipe_file("/bucket/store/notes.txt", b"mine")
    with pytest.raises(StoreFormatError, match="is not a store"):
        copy_store(root, REMOTE)
    with pytest.raises(InputError, match="Arrow or fsspec can reach"):
        copy_store("nowhere://bucket", root)
    with pytest.raises(MissingDependencyError, match="adl://"):
        copy_store("adl://bucket", root)


def test_the_command_says_what_it_copied(tmp_path: Path):
    root = credited(tmp_path / "one").root
    (root / "spool").mkdir()
    (root / "spool" / "w0.jsonl").write_bytes(b"steps")
    first = graphcredit("copy", root, tmp_path / "two")
    assert first.exit_code == 0
    number = len(files(root)) - 1
    assert first.out.splitlines()[0].startswith(f"{number} files copied (0.1 MiB), 0 there already")
    assert "1 file of spool/ not copied: steps that are in no shard yet" in first.out
    again = graphcredit("copy", root, tmp_path / "two", "--json")
    report = json.loads(again.out)
    assert (report["num_files"], report["num_equal"], report["left"]) == (0, number, {"spool": 1})
    refused = graphcredit("copy", root, "nowhere://bucket")
    assert (refused.exit_code, "Arrow or fsspec can reach" in refused.err) == (2, True)
