"""Installed packages add rows to the tables; what cannot be used is named once, and left out."""

import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from graphcredit.collector.environments.registry import EnvironmentKind, all_environments
from graphcredit.collector.importers.table import format_named
from graphcredit.credit.estimators.table import all_estimators, estimator_named
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store import extensions, open_store
from graphcredit.store.errors import ExtensionWarning, OptionError
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import imported
from tests.worlds import step_table, worked_example

EXAMPLE = Path(__file__).parent.parent / "examples" / "extension"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what installs a package: its entry points, beside the folder with its code."""
    monkeypatch.setattr(extensions, "_LOADED", {})
    monkeypatch.setattr(extensions, "_all_points", extensions.entry_points)

    def installed(entry_points: str, code: Path = tmp_path) -> None:
        folder = tmp_path / "site" / "a_package-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: a-package\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(str(folder.parent))
        monkeypatch.syspath_prepend(str(code))

    return installed


def _entry_points_of_the_example() -> str:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return "\n".join(
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in rows.items())
        for group, rows in project["entry-points"].items()
    )


def test_the_example_adds_an_estimator_and_a_format(tmp_path: Path, install: Callable[..., None]):
    install(_entry_points_of_the_example(), EXAMPLE)
    assert list(all_estimators())[-1] == "brevity"
    thoughts = ["a", "abc", None, "abcdef", "", "ab", "abcd", "abcde"]
    rows = [row | {"thought": t} for row, t in zip(worked_example(), thoughts, strict=True)]
    advantage = compute(step_table(rows), estimators="brevity")["brevity_advantage"].to_pylist()
    assert sorted(advantage, reverse=True) == [
        advantage[i] for i in sorted(range(8), key=lambda i: len(thoughts[i] or ""))
    ]
    assert sum(advantage) == pytest.approx(0, abs=1e-6)
    games = [
        {"game": "g1", "won": won, "moves": [["a door", "open"], ["a hall", move]]}
        for won, move in ((True, "win"), (False, "wait"))
    ]
    assert format_named("moves").name == "moves"
    report = imported(write_lines(tmp_path / "log" / "w.jsonl", *games), tmp_path / "store")
    assert report.num_trajectories == 2
    store = open_store(tmp_path / "store")
    assert len(store.shards()) == 1


BROKEN = """
[graphcredit.estimators]
grpo = json:loads
gone = no_such_module:ROW
odd = json:dumps
[graphcredit.merges]
bad = json:dumps
[graphcredit.environments]
bad = json:dumps
"""


def test_what_cannot_be_used_is_named_once_and_left_out(install: Callable[..., None]):
    install(BROKEN)
    with pytest.warns(ExtensionWarning) as caught:
        names = list(all_estimators())
    assert [str(warning.message).partition(" is not used")[0] for warning in caught] == [
        "odd of a-package",
        "grpo of a-package",
        "gone of a-package",
    ]
    reasons = "\n".join(str(warning.message) for warning in caught)
    assert "the name 'grpo' is taken" in reasons
    assert "ModuleNotFoundError: No module named 'no_such_module'" in reasons
    assert "it must be of class Estimator" in reasons
    assert {"odd", "gone"}.isdisjoint(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimator_named("grpo").name == "grpo"
    with pytest.warns(ExtensionWarning, match="bad of a-package"):
        assert MergeSettings(merge="exact").is_exact
    with pytest.warns(ExtensionWarning, match="bad of a-package"):
        assert "bad" not in all_environments()
    with pytest.raises(OptionError, match="no estimator is called 'gone'"):
        estimator_named("gone")


def test_an_environment_of_a_package_is_in_the_table(tmp_path: Path, install: Callable[..., None]):
    code = "from graphcredit.collector.environments.registry import ENVIRONMENTS\n"
    (tmp_path / "corridors.py").write_text(code + "ROW = ENVIRONMENTS['search']\n")
    install("[graphcredit.environments]\nhallway = corridors:ROW\n")
    assert isinstance(all_environments()["hallway"], EnvironmentKind)
