"""Fixtures of several folders, and which tests are slow."""

import gc
import os
import re
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

# No limits of time: a busy machine is no fault, and speed is measured in `benchmarks/`.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=12, **_UNTIMED)
settings.register_profile("thorough", max_examples=100, **_UNTIMED)
settings.load_profile("fast")


def pytest_configure(config: pytest.Config) -> None:
    """Let no test wait for the disk: none cuts the power, and 29 of training wait 680 times.

    Little of what imports make is garbage, and to look for it took a tenth of their time.
    """
    os.fsync = _fsync
    if config.getoption("--hypothesis-profile") != "thorough":  # at night, as users have it
        duckdb.connect = _connect
    gc.disable()


def _connect(
    *where: Any, config: dict[str, Any] | None = None, connect: Any = duckdb.connect, **rest: Any
) -> duckdb.DuckDBPyConnection:
    """Give a database one thread: to start a second one is a fifth of what small queries take."""
    return connect(*where, config={"threads": 1} | (config or {}), **rest)


def _fsync(descriptor: int) -> None:
    os.fstat(descriptor)  # a closed one is still refused


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no file that has nothing for `make test-slow`, which is most of them."""
    if collection_path.suffix != ".py" or not config.option.markexpr.startswith("slow"):
        return None
    marked = re.search(r"\.mark\.(slow|one_in)\b", collection_path.read_text(encoding="utf-8"))
    return None if marked else True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "_ByFile":
    """Give whole files to workers, and all that need a browser to one: it starts for a while."""
    return _ByFile(config, log)


class _ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "flows" if "/flows/" in file else file


_LONGEST = re.compile(
    r"/flows/|test_(alfworld|claims|collect|demo|engines|helpers|language_store|loop|pipeline"
    r"|preview|rollout|textworld|train|vllm_server|warm_up|why)\.py"
)
"""Files that take eight seconds and more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left with it at the end."""
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (not _LONGEST.search(item.nodeid), -counts[item.path]))


def pytest_collection_finish() -> None:
    """Keep the garbage collector off the imports, and run it less: it took a third of a page."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 20)


def pytest_unconfigure() -> None:
    """Let the end of the process free what the imports made: nanobind reports what stays."""
    gc.unfreeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark most cases of a test as slow, or as nightly, where `one_in` says so."""
    spread = item.get_closest_marker("one_in")
    if spread is not None and isinstance(item, pytest.Function):
        (number,) = spread.args
        if max(item.callspec.indices.values()) % number:
            item.add_marker(spread.kwargs.get("others", "slow"))


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    """Let each test hear what `compute` says once in a process."""
    if in_memory := sys.modules.get("graphcredit.credit.iteration.in_memory"):
        in_memory.said.clear()


@pytest.fixture(scope="session")
def games_dir(pytestconfig: pytest.Config) -> Path:
    """Return where generated games are kept, for all suites until the code that makes them changes.

    It is where the commands keep them if `XDG_CACHE_HOME` is the folder two above it.
    """
    root = pytestconfig.rootpath
    files = sorted((root / "collector" / "environments" / "textworld").glob("*.py"))
    code = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    return root / ".pytest_cache" / f"games-{code}" / "graphcredit" / "games"
