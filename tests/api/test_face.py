"""`import graphcredit`: what it has, what it costs, and that a path will do for a store."""

import ast
import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import graphcredit
from graphcredit import estimators
from graphcredit.cli.table import load
from graphcredit.credit import assigning
from graphcredit.credit.estimators.table import ESTIMATORS
from graphcredit.store.errors import InputError, OptionError
from tests.worlds import trajectory, worked_example, write_store


def test_every_name_is_there_once_for_the_checker_and_once_for_the_interpreter():
    source = Path(graphcredit.__file__).read_text(encoding="utf-8")
    block, _ = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imported = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*imported, "__version__"} == set(graphcredit.__all__)
    assert set(dir(graphcredit)) == {*graphcredit.__all__, "estimators", "integrations"}
    assert all(getattr(graphcredit, name) is not None for name in graphcredit.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'credits'"):
        _ = graphcredit.credits


def test_the_version_is_that_of_the_package_and_the_types_are_marked():
    assert graphcredit.__version__ == version("graphcredit")
    assert Path(graphcredit.__file__).with_name("py.typed").is_file()


def test_the_import_loads_nothing():
    code = "import sys; old = set(sys.modules); import graphcredit; print(*set(sys.modules) - old)"
    loaded = set(_printed(code).split())
    foreign = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"graphcredit"}
    assert loaded & {"importlib.metadata", "asyncio", "inspect"} == set()


def test_compute_needs_no_library_of_the_other_stages():
    code = "import sys; from graphcredit import compute; print(*sys.modules)"
    unwanted = {"torch", "streamlit", "textworld", "pandas", "click", "networkx", "transformers"}
    assert unwanted & set(_printed(code).split()) == set()


def test_showing_needs_no_streamlit():
    code = "import sys; from graphcredit import show; print('streamlit' in sys.modules)"
    assert _printed(code) == "False"


def _printed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_every_estimator_has_its_options_there():
    assert {row.options.__name__ for row in ESTIMATORS} == set(estimators.__all__)
    assert all(getattr(estimators, row.options.__name__) is row.options for row in ESTIMATORS)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_will_do_for_a_store(kind: type, tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    store = kind(tmp_path / "s")
    ((place, report),) = graphcredit.credit(store, estimators="grpo, graphgpo").items()
    assert place == ("r0", 0)
    assert (report.num_trajectories, report.num_steps) == (3, 8)
    assert graphcredit.credit(store, estimators="graphgpo", new=True) == {}
    assert graphcredit.audit(store).numbers
    judged = graphcredit.evidence(store)
    assert (judged.num_groups, judged.best) == (1, None)
    assert repr(judged).startswith("1 group; 1 of them with different outcomes")
    assert "\nas logged --merge segments" in str(judged)
    assert "<td" in judged._repr_html_()
    assert graphcredit.export(store, kind(tmp_path / "out")).num_steps == 8
    assert graphcredit.open_store(graphcredit.open_store(store)).root == tmp_path / "s"


def test_options_are_objects_or_names(tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    graphcredit.credit(
        tmp_path / "s",
        estimators=["grpo", estimators.GraphGpo(distance_discount=0.5)],
        merge=graphcredit.MergeSettings(merge="exact", normalise=("casefold",)),
    )
    steps = graphcredit.scan(tmp_path / "s", "credit").collect()
    # From C by d the goal is 0 away, so the step is worth 10 · 0.5¹; from A by a to B it is three
    # away: 10 · 0.5⁴.
    assert steps["graphgpo_step_reward"].to_list()[:4] == [0.625, 1.25, 2.5, 5.0]
    assert "grpo_advantage" in steps.columns


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("grppo", "no estimator is called 'grppo'; there are grpo, rloo"),
        (["grpo", "rloo,grpo"], "each estimator must be named once: grpo is named twice"),
        ([3], "an estimator must be a name or an object of its options: got 3; there are Grpo"),
        ([], "name at least one estimator"),
    ],
)
def test_a_choice_that_is_not_right_is_refused(choice: object, message: str, tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    with pytest.raises(OptionError, match=message):
        graphcredit.credit(tmp_path / "s", estimators=choice)  # pyright: ignore[reportArgumentType]


FUNCTIONS = {
    "import": (graphcredit.import_log, {"try", "format"}),
    "credit": (assigning.credit, {"set"}),
    "evidence": (graphcredit.evidence, set[str]()),
    "audit": (graphcredit.audit, set[str]()),
    "export": (graphcredit.export, set[str]()),
    "sql": (graphcredit.sql, {"format", "output"}),
    "train": (graphcredit.train, {"setting", "dry-run"}),
    "why": (graphcredit.why, {"markdown", "picture", "example"}),
}
"""Command to its function, and the flags for which Python needs none."""


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_function_has_the_options_of_its_command_with_their_defaults(command: str):
    function, only_flags = FUNCTIONS[command]
    keywords = inspect.signature(function).parameters
    for option in load(command).params:
        if option.param_type_name == "argument" or option.name in ("quiet", "as_json", "help"):
            continue
        name = str(option.name).rstrip("_")
        if name.replace("_", "-") in only_flags and name not in keywords:
            continue
        assert name in keywords, (command, name)
        if option.default not in (None, (), []):
            assert keywords[name].default == option.default
        assert f"\n        {name}: " in str(function.__doc__)


def test_an_unknown_option_names_the_nearest(tmp_path: Path):
    with pytest.raises(OptionError, match=r"evidence has no option 'runs'.*Did you mean 'run'\?"):
        graphcredit.evidence(tmp_path, runs="r")  # pyright: ignore[reportCallIssue]
    with pytest.raises(OptionError, match=r"import_log has no option 'sate'.*mean 'state'"):
        graphcredit.import_log("log.jsonl", tmp_path, sate="facts")
    with pytest.raises(OptionError, match=r"there are grpo.*Did you mean 'reach'"):
        graphcredit.credit(tmp_path, estimators="reech")


def test_a_target_is_what_its_name_says(tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    with pytest.raises(OptionError, match=r"--to turns writes \.jsonl"):
        graphcredit.export(tmp_path / "s", tmp_path / "turns.jsonl")
    with pytest.raises(OptionError, match=r"--to parquet writes \.csv"):
        graphcredit.export(tmp_path / "s", tmp_path / "steps.csv", to="turns")
    assert list(tmp_path.iterdir()) == [tmp_path / "s"]


def test_which_run_is_meant_must_be_said_where_there_are_two(tmp_path: Path):
    steps = trajectory("x", "A a B", success=True)
    write_store(tmp_path / "s", steps)
    write_store(tmp_path / "s", steps, run_id="r1", iteration=2)
    write_store(tmp_path / "s", steps, run_id="r1", iteration=4)
    graphcredit.credit(tmp_path / "s", estimators="grpo")
    with pytest.raises(InputError, match="run_id must say which run is meant: there are r0, r1"):
        graphcredit.show(tmp_path / "s", task_id="t0")
    with pytest.raises(
        InputError, match="iteration must say which iteration of run r1 is meant: there are 2, 4"
    ):
        graphcredit.show(tmp_path / "s", task_id="t0", run_id="r1")
    page = graphcredit.show(tmp_path / "s", task_id="t0", run_id="r1", iteration=4)
    assert "iteration 4" in page.title
