"""`show`: the viewer's HTML exports, in a frame that cannot reach the notebook."""

import re
from html import unescape
from pathlib import Path

import pytest

import graphcredit
from graphcredit.store.errors import InputError, PathError
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example, write_store


def framed(page: object) -> str:
    """Return the document that the frame in a notebook shows."""
    text = page._repr_html_()  # pyright: ignore[reportAttributeAccessIssue]
    (document,) = re.findall(r'srcdoc="([^"]*)"', text)
    return unescape(document)


def test_the_graph_of_a_task(tmp_path: Path):
    credited(tmp_path / "s", worked_example())
    page = graphcredit.show(tmp_path / "s", task_id="t0")
    assert framed(page) == page.html
    assert 'sandbox="allow-scripts"' in page._repr_html_()
    assert "<h1>t0 · run r0, iteration 0</h1>" in page.html
    assert '"advantage":"graphgpo advantage"' in page.html
    assert page.html.count('"kind":"goal"') == 1


def test_the_steps_of_a_trajectory(tmp_path: Path):
    credited(tmp_path / "s", worked_example(), names=("grpo", "graphgpo"))
    page = graphcredit.show(tmp_path / "s", trajectory_id="x", estimator="grpo")
    assert 'sandbox=""' in page._repr_html_()
    assert "The rollout succeeded after 4 steps with return 10." in page.html
    assert "Advantage of each step by grpo" in page.html
    page.save(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(PathError, match="No such file"):
        page.save(tmp_path / "none" / "x.html")


def test_a_trajectory_without_credit_can_be_shown(tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    page = graphcredit.show(tmp_path / "s", trajectory_id="y")
    assert "No credit was assigned to it." in page.html


def test_of_a_large_graph_what_matters_is_shown(tmp_path: Path):
    chain = [word for number in range(60) for word in (f"s{number}", f"a{number}")]
    steps = [*trajectory("x", "s0 win won", success=True), *trajectory("y", [*chain, "end"])]
    credited(tmp_path / "s", steps)
    page = graphcredit.show(tmp_path / "s", task_id="t0")
    # Start and goal, and s1, where the failed rollout went instead.
    assert page.title.endswith("3 of 62 states")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "show needs a task_id or a trajectory_id: got None and None"),
        ({"task_id": "t0", "trajectory_id": "x"}, "got 't0' and 'x'"),
        ({"task_id": "t7"}, "no task 't7'"),
        ({"trajectory_id": "q"}, "has no rollout 'q'"),
        ({"task_id": "t0", "estimator": "grpo"}, "has no grpo_advantage"),
        ({"trajectory_id": "x", "estimator": "grpo"}, "no credit by 'grpo' for 'x'"),
    ],
)
def test_what_is_not_there_is_named(asked: dict[str, str], message: str, tmp_path: Path):
    credited(tmp_path / "s", worked_example())
    with pytest.raises(InputError, match=message):
        graphcredit.show(tmp_path / "s", **asked)


def test_a_graph_needs_credit(tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    with pytest.raises(InputError, match="must have credit to show its graph: found none"):
        graphcredit.show(tmp_path / "s", task_id="t0")
