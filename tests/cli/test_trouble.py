"""Errors of the system end every command in one line: path, reason and remedy."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from graphcredit.cli.main import main
from graphcredit.collector import StepRecorder
from graphcredit.store import Store, create_store
from graphcredit.store.errors import DiskError, PathError, missing_extras, system_errors
from graphcredit.store.extras import how_to_install
from tests.cli.in_process import Ended, run
from tests.store.full_disk import full_disk
from tests.store.whole_store import CREDIT
from tests.worlds import worked_example, write_store

ORDERS = str(Path("examples/orders.jsonl").resolve())


def _loop(folder: Path) -> Path:
    path = folder / "loop"
    path.symlink_to(path)
    return path


def _long(folder: Path) -> Path:
    return folder / ("n" * 300)


def _below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("a file")
    return folder / "file" / "below"


def _forbidden(folder: Path) -> Path:
    del folder
    return Path("/sys/graphcredit")  # not even for root


_PLACES = (_loop, _long, _below_a_file, _forbidden)

_READERS = (
    "check IN",
    "audit IN",
    "credit IN -e grpo",
    "sql IN SELECT_1",
    "view IN",
    "export IN OUT",
    "loop IN",
    "train STORE --config IN",
)
_WRITERS = (
    "collect OUT --env search --policy random --tasks 1 --group-size 1 --workers 0",
    "export STORE OUT",
)
_RESULTS = tuple(
    f"sql STORE FROM_steps --unlocked --format {kind} --output OUT"
    for kind in ("csv", "json", "table", "parquet")
)
# Here a link that leads nowhere may be replaced.
_WRITES = [
    *((command, place) for command in _WRITERS for place in _PLACES),
    *((_RESULTS[0], place) for place in _PLACES if place is not _loop),
    *((command, _below_a_file) for command in _RESULTS[1:]),
]


def _words(command: str, known: Mapping[str, object]) -> list[str]:
    return [str(known.get(word, word.replace("_", " "))) for word in command.split()]


def _record(path: Path) -> StepRecorder:
    return StepRecorder(path, run_id="r0", iteration=0, worker_id="w0")


def _assert_one_line(ended: Ended, exit_code: int) -> str:
    assert ended.exit_code == exit_code, ended
    assert ended.err.startswith("graphcredit: ")
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 700
    return ended.err


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "store", worked_example())


@pytest.mark.parametrize("place", [_loop, _long])
@pytest.mark.parametrize("command", _READERS)
def test_what_cannot_be_opened_is_named(
    store: Store, tmp_path: Path, command: str, place: Callable[[Path], Path]
):
    path = place(tmp_path)
    words = {"STORE": store.root, "IN": path, "OUT": tmp_path / "out"}
    error = _assert_one_line(run(*_words(command, words)), 2)
    assert str(path) in error
    reason = "Too many levels of symbolic links" if place is _loop else "File name too long"
    assert reason in error


@pytest.mark.parametrize("command", [reader for reader in _READERS if "STORE" not in reader][:-1])
def test_a_folder_that_is_no_store_is_refused(tmp_path: Path, command: str):
    error = _assert_one_line(run(*_words(command, {"IN": tmp_path, "OUT": tmp_path / "out"})), 2)
    assert f"{tmp_path} is not a store: it has no store.json" in error


@pytest.mark.parametrize(("command", "place"), _WRITES)
def test_an_output_that_cannot_be_there_is_named(
    store: Store, tmp_path: Path, command: str, place: Callable[[Path], Path]
):
    path = place(tmp_path)
    error = _assert_one_line(run(*_words(command, {"STORE": store.root, "OUT": path})), 2)
    # Of the path below a file, the system may name the file.
    assert str(path.parent if place is _below_a_file else path) in error


@pytest.mark.parametrize("command", [*_WRITERS, *_RESULTS, "credit STORE -e graphgpo -e spo3"])
def test_a_full_disk_is_a_line_and_leaves_what_was_there(
    store: Store, tmp_path: Path, command: str
):
    out = tmp_path / "out"
    before = _contents(tmp_path)
    with full_disk():
        ended = run(*_words(command, {"STORE": store.root, "OUT": out}))
    error = _assert_one_line(ended, 1)
    assert str(tmp_path) in error
    assert "File too large" in error
    assert "then give the same command again" in error
    after = {path: content for path, content in _contents(tmp_path).items() if content is not None}
    kept = {path: content for path, content in after.items() if path.suffix != ".lock"}
    new = {path.name for path in kept.keys() - before.keys()}
    assert new <= {"store.json", ".lock"}, new
    assert all(kept[path] == content for path, content in before.items() if content is not None)


def _contents(root: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def test_a_directory_where_a_shard_of_credit_belongs_is_named(store: Store):
    (store.root / CREDIT).mkdir(parents=True)
    error = _assert_one_line(run("credit", store.root, "-e", "grpo"), 2)
    assert str(store.root / CREDIT) in error


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("make", [create_store, _record])
def test_what_the_library_raises_is_of_its_own_tree_and_still_an_oserror(
    tmp_path: Path, make: Callable[[Path], object], place: Callable[[Path], Path]
):
    with pytest.raises(PathError, match=str(tmp_path) if place is not _forbidden else "/sys") as e:
        make(place(tmp_path))
    assert isinstance(e.value, OSError)


@pytest.mark.parametrize("make", [create_store, _record])
def test_a_full_disk_is_no_wrong_use(tmp_path: Path, make: Callable[[Path], object]):
    path = tmp_path / "s"
    if make is _record:
        create_store(path)
    with full_disk(), pytest.raises(DiskError, match=r"w0\.jsonl: |store\.json: ") as e:
        make(path)
    assert isinstance(e.value, OSError)


def test_a_full_standard_output_is_a_line(store: Store):
    command = [sys.executable, "-m", "graphcredit.cli.main", "check", str(store.root), "--json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.stderr == (
        "graphcredit: No space left on device. Free some space, then give the same command again\n"
    )
    assert ended.returncode == 1


def test_a_reader_that_went_away_is_no_error(store: Store):
    command = [sys.executable, "-m", "graphcredit.cli.main", "check", str(store.root), "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        ended = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize(
    "bug", [KeyError("a bug"), OSError("a bug"), ConnectionResetError(104, "a bug")]
)
def test_a_bug_keeps_its_traceback(bug: Exception):
    with pytest.raises(type(bug), match="a bug"), system_errors():
        raise bug


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("torch", "train"),
        ("transformers", "train"),
        ("peft.tuners", "train"),
        ("textworld", "play"),
        ("streamlit", "view"),
        ("altair", "view"),
        ("ray", "ray"),
        ("vllm", "vllm"),
        ("sentence_transformers", "embed"),
        ("ahocorasick_rs", "er"),
        ("igraph", None),
        ("nowhere", None),
    ],
)
def test_a_package_of_an_extra_is_asked_for_and_any_other_is_a_bug(package: str, extra: str | None):
    expected = how_to_install(extra) if extra else "No module"
    with pytest.raises(ImportError) as caught, missing_extras():
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        "train STORE --model M --advantage grpo --out OUT",
        "collect OUT --env search --policy hf:M --tasks 1 --workers 0",
    ],
)
def test_without_torch_a_command_says_how_to_install_it(store: Store, tmp_path: Path, command: str):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    places = {"STORE": store.root, "OUT": tmp_path / "out", "M": model, "hf:M": f"hf:{model}"}
    words = _words(command, places)
    code = (
        f"import sys; sys.modules['torch'] = None; sys.argv = ['graphcredit', *{words!r}]\n"
        f"from {main.__module__} import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == (
        "graphcredit: this needs the package 'torch', which is not installed: "
        f"{how_to_install('train')}"
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("import", ORDERS, "S", "--format", "mesages"), "messages"),
        (("import", ORDERS, "S", "--state", "fact"), "facts"),
        (("import", ORDERS, "S", "--state", "windw:2"), "window"),
        (("import", ORDERS, "S", "--group", "taskid"), "task_id"),
        (("import", ORDERS, "S", "--success", "rewrd"), "reward"),
        (("import", ORDERS, "S", "--columns", "task=taskid"), "task_id"),
        (("credit", "S", "--merge", "segment"), "segments"),
        (("credit", "S", "-e", "reech"), "reach"),
        (("credit", "S", "--set", "reach.dout=1"), "doubt"),
        (("states", "S", "--set", "fact"), "facts"),
        (("export", "S", "T", "--to", "turn"), "turns"),
        (("sql", "S", "SELECT 1", "--format", "jsn"), "json"),
    ],
)
def test_a_value_that_is_none_of_some_names_is_told_the_nearest(
    arguments: tuple[str, ...], nearest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    create_store(tmp_path / "S")
    monkeypatch.chdir(tmp_path)
    ended = run(*arguments)
    assert ended.exit_code
    assert f"Did you mean '{nearest}'" in ended.err
