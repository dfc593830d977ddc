"""The stores that the viewer's tests share; what each of them leaves as it was."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from streamlit.components.v2 import manifest_scanner

from graphcredit.store import Store
from graphcredit.viewer.config import STORE_VARIABLE
from tests.viewer.stores import Rows, Shared, credited


@pytest.fixture(autouse=True)
def process_of_a_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore what a page changes: the store's name, and `__main__`, which processes import."""
    monkeypatch.setenv(STORE_VARIABLE, "")
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session", autouse=True)
def scanned_once() -> Iterator[None]:
    """Search the installed packages for components once; each app of a test would, in .2 CPU s."""
    once = cache(manifest_scanner.scan_component_manifests)
    with patch.object(manifest_scanner, "scan_component_manifests", once):
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Return a function that makes a store of rows once for all tests, which only read it."""
    made: dict[tuple[Rows, tuple[str, ...]], Store] = {}
    files: dict[Path, int] = {}

    def store_of(rows: Rows, *names: str) -> Store:
        if (rows, names) not in made:
            root = tmp_path_factory.mktemp("shared") / "s"
            made[rows, names] = credited(root, rows(), names=names or ("graphgpo",))
            files.update(_changes(root))
        return made[rows, names]

    yield store_of
    now = [_changes(store.root) for store in made.values()]
    assert files == {path: time for each in now for path, time in each.items()}


def _changes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
