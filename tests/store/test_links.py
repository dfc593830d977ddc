"""Files and folders with two names are reported; runs may lie on other disks."""

import os
from pathlib import Path

import pytest

from graphcredit.store import Store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import StoreFormatError
from graphcredit.store.sql.catalog import connect
from tests.store.whole_store import STEPS, add_file, whole_store

RUN = "steps/run_id=r0"
ITERATION = f"{RUN}/iteration=000000"


def _symbolic(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


# Name, what it stands for, and the rule that names it.
TWICE: dict[str, tuple[str, str, str]] = {
    "a name for the newest run": ("steps/latest", RUN, "link"),
    "a run": ("steps/run_id=r1", RUN, "one_name"),
    "an iteration": (f"{RUN}/iteration=000001", ITERATION, "one_name"),
    "an iteration of another run": ("steps/run_id=r1/iteration=000000", ITERATION, "one_name"),
    "a shard": (f"{ITERATION}/w9-000000.parquet", STEPS, "one_name"),
    "the store in itself": (f"{ITERATION}/loop", ".", "link"),
    "the store as a run": ("steps/run_id=r1", ".", "one_name"),
}


def _files(store: Store) -> set[Path]:
    return {path for path in store.root.rglob("*.parquet") if path.is_file()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target", "rule"), TWICE.values(), ids=TWICE)
def test_what_has_two_names_is_named(tmp_path: Path, name: str, target: str, rule: str):
    store = whole_store(tmp_path / "store")
    _symbolic(store.root / name, store.root / target)
    report = check_store(store)
    assert rule in {
        violation.rule.name for violation in report.violations if violation.file == name
    }
    add_file(STEPS, b"noise")(store.root)
    report = check_store(store)
    assert ("readable", STEPS) in {(error.rule.name, error.file) for error in report.errors}


@pytest.mark.parametrize("name", ["steps/run_id=r1", f"{RUN}/iteration=000001"])
def test_readers_refuse_a_folder_of_two_names(tmp_path: Path, name: str):
    store = whole_store(tmp_path / "store")
    _symbolic(store.root / name, store.root / (RUN if "r1" in name else ITERATION))
    with pytest.raises(StoreFormatError, match=r"must have one name: .* would count twice"):
        list(read_steps(store))
    with pytest.raises(StoreFormatError, match="Remove the link"):
        connect(store)


def test_a_run_on_another_disk_is_read(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    (store.root / RUN).rename(tmp_path / "disk")
    (store.root / RUN).symlink_to(tmp_path / "disk")
    assert sum(table.num_rows for table in read_steps(store)) == 10
    report = check_store(store)
    assert (report.errors, report.num_steps) == ((), 10)
    (notice,) = report.notices
    assert (notice.rule.name, notice.file) == ("link", RUN)
    assert str(tmp_path / "disk") in notice.found


@pytest.mark.parametrize("kind", ["nowhere", "itself", "folder", "pipe"])
def test_what_is_no_file_in_a_shards_place_is_said(tmp_path: Path, kind: str):
    store = whole_store(tmp_path / "store")
    add_file(STEPS, b"noise")(store.root)
    place = store.root / ITERATION / "w9-000000.parquet"
    match kind:
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
        case _:
            place.symlink_to(place if kind == "itself" else "nowhere")
    named = {(v.rule.name, v.file) for v in check_store(store).errors}
    assert ("accessible", f"{ITERATION}/w9-000000.parquet") in named
