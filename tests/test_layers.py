"""Who may import whom, down to imports inside functions: stages meet in Parquet only."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT: dict[str, frozenset[str]] = {
    "store": frozenset(),
    "collector": frozenset({"store"}),
    "credit": frozenset({"store"}),
    "trainer": frozenset({"store"}),
    "viewer": frozenset({"store"}),
    "cli": frozenset({"store", "collector", "credit", "trainer", "viewer"}),
}
"""Folder to the folders it may import, besides itself."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "duckdb": ("store", "credit"),
    "textworld": ("collector",),
    "alfworld": ("collector",),
    "vllm": ("collector",),
    "igraph": ("credit", "viewer"),
    "ray": ("credit",),
    "tensorboard": ("trainer",),
    "wandb": ("trainer",),
    "trackio": ("trainer",),
    "networkx": ("credit",),
    "sentence_transformers": ("credit",),
    "torch": ("trainer", "collector/policies"),
    "transformers": ("trainer", "collector/policies"),
    "peft": ("trainer", "collector/policies"),
    "safetensors": ("trainer", "collector/policies"),
    "streamlit": ("viewer",),
    "altair": ("viewer",),
    "typer": ("cli",),
    "rich": ("cli",),
}
"""Library to the only places that may import it."""

FILES = sorted(path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py"))


def _imports(source: str) -> Iterator[str]:
    """Yield the full name of every module and of every name taken from one."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.ImportFrom():
                yield "a relative import"
            case _:
                pass


def _forbidden(relative: str, source: str) -> list[str]:
    folder = relative.partition("/")[0]
    return [name for name in _imports(source) if not _is_allowed(relative, folder, name)]


def _is_allowed(relative: str, folder: str, name: str) -> bool:
    package, _, rest = name.partition(".")
    if package == "graphcredit":
        target = rest.partition(".")[0]
        return target == folder or target in MAY_IMPORT[folder]
    if name == "a relative import" or package in MAY_IMPORT:
        return False
    return any(relative.startswith(f"{place}/") for place in ONLY_IN.get(package, (folder,)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_imports_only_what_its_folder_may(path: Path):
    relative = path.relative_to(ROOT).as_posix()
    assert _forbidden(relative, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("store/a.py", "def f():\n    from graphcredit.credit.stage import run"),
        ("store/a.py", "from graphcredit import credit"),
        ("collector/a.py", "import graphcredit.credit"),
        ("credit/a.py", "if True:\n    import torch.nn"),
        ("collector/a.py", "from torch import nn"),
        ("cli/a.py", "import duckdb"),
        ("store/a.py", "from rich.text import Text"),
        ("store/a.py", "from . import layout"),
        ("store/a.py", "import trainer"),
    ],
)
def test_a_forbidden_import_is_noticed(relative: str, source: str):
    assert len(_forbidden(relative, source)) == 1


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("store/a.py", "from graphcredit.store.layout import Store\nimport duckdb, json"),
        ("collector/policies/a.py", "import torch"),
        ("cli/a.py", "def f():\n    from graphcredit import credit, trainer"),
    ],
)
def test_an_allowed_import_passes(relative: str, source: str):
    assert _forbidden(relative, source) == []


@pytest.mark.parametrize(
    "code",
    [
        "import graphcredit.store",
        "import graphcredit.cli.main",
        "import sys; sys.argv = ['graphcredit', '--help']\n"
        "from graphcredit.cli.main import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code",
    ],
    ids=["store", "command line", "help"],
)
def test_the_store_and_the_help_need_no_heavy_library(code: str):
    heavy = "torch transformers igraph networkx streamlit textworld vllm sentence_transformers"
    report = f"import sys; sys.stderr.write(str(sorted(sys.modules.keys() & {set(heavy.split())})))"
    code = f"{code}\n{report}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stderr == "[]"
