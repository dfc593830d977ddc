"""Who may import whom, down to imports inside functions: stages meet in Parquet only."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT: dict[str, frozenset[str]] = {
    "store": frozenset(),
    "collector": frozenset({"store"}),
    "credit": frozenset({"store"}),
    "trainer": frozenset({"store"}),
    "viewer": frozenset({"store", "credit.why"}),
    "loop": frozenset({"store", "collector", "credit", "trainer"}),
    "cli": frozenset({"store", "collector", "credit", "trainer", "viewer", "loop"}),
    "api": frozenset({"store", "collector", "credit", "trainer", "viewer", "loop"}),
}
"""Folder to the folders, or rooms of them, that it may import, besides itself."""

FACE = "api"
"""The folder that is `graphcredit` itself. Nobody of ours imports it."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "duckdb": ("store", "credit"),
    "textworld": ("collector",),
    "alfworld": ("collector",),
    # Types must hold without it: it is imported by its name, and is of any type.
    "fast_downward": (),
    "vllm": ("collector",),
    "orjson": ("collector",),
    "igraph": ("credit", "viewer"),
    "ray": ("store",),
    "tensorboard": ("trainer",),
    "sentence_transformers": ("credit",),
    "torch": ("trainer", "collector/policies"),
    "transformers": ("trainer", "collector/policies", "api/integrations", "store/confined"),
    "tokenizers": ("trainer", "viewer/chat"),
    "peft": ("trainer", "collector/policies"),
    "PIL": ("trainer",),
    "safetensors": ("trainer", "collector/policies"),
    "streamlit": ("viewer",),
    "trl": ("api/integrations",),
    "accelerate": ("trainer", "api/integrations"),
    "click": ("cli",),
    "rich": ("cli",),
}
"""Library to the only places that may import it."""

ROOMS = {
    "store": (
        "schema extras errors extensions plural log_text text_diff near_names text_table "
        "progress files chat confined options keywords layout tree images parquet state_rules "
        "provenance sql checks workers"
    ),
    "collector": (
        "options task_locks environments recording states importers exporters policies "
        "playing collection"
    ),
    "credit": (
        "options steps merging graph inputs estimators evidence audit why iteration stage assigning"
    ),
    "trainer": (
        "options config fingerprint data batching model messages loss engine output "
        "training_run card training preview"
    ),
    "viewer": "config sitemap origin queries widgets graph chat steps bundle pages app entry",
    "loop": "evidence_states used_states asked distrust exporting config summary layout open run",
    "cli": "output parameters options session commands table main",
    "api": "estimators kinds step_defaults crediting logs scanning showing asking integrations",
}
"""Folder to its rooms: a room may import those before it, and none after it."""

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
        if target not in MAY_IMPORT:  # `api/` is `graphcredit` itself
            target, rest = FACE, f"{FACE}.{rest}"
        if target == folder:
            return _is_in_order(relative, rest)
        return any(f"{rest}.".startswith(f"{place}.") for place in MAY_IMPORT[folder])
    if name == "a relative import" or package in MAY_IMPORT:
        return False
    places = ONLY_IN.get(package, (folder,))
    return any(relative == place or relative.startswith(f"{place}/") for place in places)


def _is_in_order(relative: str, name: str) -> bool:
    """Return whether a file's room is the room of what it imports, or one after that."""
    folder, _, rest = relative.removesuffix(".py").partition("/")
    room, _, wanted = rest.partition("/")[0], *name.partition(".")[1:]
    wanted = wanted.partition(".")[0]
    rooms = ROOMS[folder].split()
    if room == "__init__":  # the folder's face imports what it shows
        return True
    return wanted in rooms and rooms.index(wanted) <= rooms.index(room)


def test_every_room_has_a_place_in_the_order():
    found = {
        folder: {
            path.relative_to(ROOT / folder).parts[0].removesuffix(".py")
            for path in FILES
            if path.is_relative_to(ROOT / folder)
        }
        - {"__init__"}
        for folder in ROOMS
    }
    assert found == {folder: set(rooms.split()) for folder, rooms in ROOMS.items()}


def test_the_list_of_packages_is_that_of_the_tree():
    """A package that the list lacks is in no wheel, and nothing says so."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = listed["tool"]["setuptools"]["packages"]
    found = {
        ".".join(("graphcredit", *path.relative_to(ROOT).parent.parts)).replace(f".{FACE}", "", 1)
        for path in FILES
        if path.name == "__init__.py"
    }
    folders = {path.relative_to(ROOT).parent for path in FILES}
    assert sorted(found) == packages
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").exists()} == set()


def test_every_tool_sees_every_folder():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    scripts = {"benchmarks", "examples", "experiments", "tools"}
    assert set(project["pyright"]["include"]) == scripts | set(MAY_IMPORT)
    mapped = project["setuptools"]["package-dir"]
    assert mapped == {
        "graphcredit": FACE,
        **{f"graphcredit.{folder}": folder for folder in MAY_IMPORT if folder != FACE},
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    watched = re.search(r"find (.*?) -type d", makefile)
    assert watched is not None
    assert set(watched[1].split()) == set(MAY_IMPORT)


def test_a_file_imports_only_what_its_folder_may():
    sources = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in FILES}
    forbidden = {relative: _forbidden(relative, source) for relative, source in sources.items()}
    assert {relative: names for relative, names in forbidden.items() if names} == {}


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
        ("store/files/a.py", "from graphcredit.store.layout import Store"),
        ("credit/steps/a.py", "from graphcredit.credit import stage"),
        ("credit/graph/a.py", "from graphcredit.credit.stage import assign_credit"),
        ("cli/a.py", "import graphcredit"),
        ("loop/a.py", "from graphcredit import compute"),
        ("api/kinds.py", "from graphcredit.crediting import compute"),
        ("api/kinds.py", "import duckdb"),
        ("viewer/a.py", "from graphcredit.credit.audit.run import audit"),
    ],
)
def test_a_forbidden_import_is_noticed(relative: str, source: str):
    assert len(_forbidden(relative, source)) == 1


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("store/sql/a.py", "from graphcredit.store.layout import Store\nimport duckdb, json"),
        ("collector/policies/a.py", "import torch"),
        ("cli/a.py", "def f():\n    from graphcredit import credit, trainer"),
        ("api/crediting.py", "from graphcredit.kinds import kind_of\nimport polars"),
        ("api/integrations/a.py", "from graphcredit.crediting import compute"),
        ("viewer/a.py", "from graphcredit.credit.why.decisions import decisions"),
    ],
)
def test_an_allowed_import_passes(relative: str, source: str):
    assert _forbidden(relative, source) == []


def test_the_store_compute_and_the_help_import_no_heavy_library():
    heavy = "torch transformers igraph networkx streamlit textworld vllm sentence_transformers"
    code = (
        "import graphcredit.store, graphcredit.credit.iteration.in_memory\n"
        "import sys; sys.argv = ['graphcredit', '--help']\n"
        "from graphcredit.cli.main import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"sys.stderr.write(str(sorted(sys.modules.keys() & {set(heavy.split())})))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert result.stderr == "[]"
