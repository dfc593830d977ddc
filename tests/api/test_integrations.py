"""The adapters on batches of the frameworks' shape, and the blocks of their document.

Two trajectories of one task, x: hall -east-> kitchen -take-> won with reward 1, y: hall -west->
nowhere. Whether their steps are compared by return (GiGPO) or by distance to the goal (GraphGPO),
x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the kitchen,
seen once, has the episode's part only.
"""

import ast
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import graphcredit
from graphcredit.estimators import GraphGpo
from graphcredit.integrations import StepCredit, prime_rl
from graphcredit.integrations.token_rows import Row, token_advantages
from graphcredit.store.errors import CreditWarning, InputError, OptionError
from tests.worlds import trajectory, write_store

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF

both = pytest.mark.parametrize("estimator", ["gigpo", "graphgpo"])


FENCES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_what_the_document_imports_is_there():
    names = [
        (str(node.module), alias.name)
        for fence in FENCES
        for node in ast.walk(ast.parse(fence))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("graphcredit")
        for alias in node.names
    ]
    assert len(names) >= 6
    for module, name in names:
        if name != "StepCreditGRPOTrainer":  # needs TRL: see test_trl.py
            assert find_spec(f"{module}.{name}"), name


WORDS = ["find", "hall", "east", "kitchen", "take", "west"]


def row(name: str, prompt: str, response: str, mask: list[int], **more: Any) -> Row:
    def ids(text: str) -> list[int]:
        return [WORDS.index(word) for word in text.split()]

    reward = float(name == "x")
    return Row(
        task_id="t",
        trajectory_id=name,
        prompt=ids(prompt),
        response=ids(response),
        mask=mask,
        reward=reward,
        **more,
    )


def decode(tokens: list[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


Y = row("y", "find hall", "west", [1])
ONE_ROW = [row("x", "find hall", "east kitchen take take", [1, 0, 1, 1])]
APPENDED = [row("x", "find hall", "east", [1]), row("x", "find hall east kitchen", "take", [1])]
RENDERED_ANEW = [row("x", "find hall", "east", [1]), row("x", "find hall kitchen", "take", [1])]
ANEW = [row("x", "find hall", "east", [1]), row("x", "kitchen", "take", [1])]
OF_THE_ROLLOUT = [
    row("x", "west", "east", [1], states=["find hall"]),
    row("x", "west", "take", [1], states=["kitchen"]),
]


@both
@pytest.mark.parametrize("rows", [ONE_ROW, APPENDED, RENDERED_ANEW, ANEW, OF_THE_ROLLOUT])
def test_rows_of_tokens(rows: list[Row], estimator: str, tmp_path: Path):
    """However the turns lie in rows, the states and the credit are the same."""
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r0", iteration=0, worker_id="w"
    ) as recorder:
        credit = StepCredit(estimator=estimator, recorder=recorder)
        *x, y = token_advantages([*rows, Y], decode, credit)
    steps = graphcredit.scan(tmp_path / "s", "steps").sort("trajectory_id", "step_index").collect()
    assert steps["state"].to_list() == ["find hall", "kitchen", "find hall"]
    assert steps["reward"].to_list() == [0.0, 1.0, 0.0]
    expected = [EAST, 0.0, TAKE, TAKE] if rows is ONE_ROW else [EAST, TAKE]
    assert [value for values in x for value in values] == pytest.approx(expected, rel=1e-4)
    assert y == pytest.approx([WEST], rel=1e-4)


def test_rows_that_are_not_right():
    with pytest.raises(InputError, match="x must have a mask for each of 2 tokens: found 1"):
        token_advantages([row("x", "hall", "east west", [1])], decode)
    with pytest.raises(InputError, match=r"a state for each of 1 turns.*: found 2"):
        token_advantages([row("x", "hall", "east", [1], states=["a", "b"])], decode)
    assert token_advantages([row("x", "hall", "kitchen", [0])], decode) == [[0.0]]
    assert token_advantages([], decode) == []


@dataclass
class Node:
    """A node as verifiers has it."""

    message: Any
    parent: int | None
    sampled: bool = False
    mask: list[bool] = field(default_factory=lambda: [False, False])
    advantages: list[float] | None = None


def episode(name: str, reward: float, *messages: Any) -> SimpleNamespace:
    """Return an episode as verifiers has it: text is told, a mapping is said."""
    nodes = [
        Node({"role": "user", "content": message}, number - 1 if number else None)
        if isinstance(message, str | list)
        else Node(message, number - 1, sampled=True, mask=[False, True, True])
        for number, message in enumerate(messages)
    ]
    agent = SimpleNamespace(name="policy", trainable=True)
    trace = SimpleNamespace(id=name, reward=reward, nodes=nodes, agent=agent, has_error=False)
    return SimpleNamespace(group=SimpleNamespace(id="mug"), traces=[trace])


def said(action: str) -> dict[str, Any]:
    """Return a tool call without text."""
    call = {"id": "1", "type": "function", "function": {"name": action, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_prime_rl_with_parts_and_without_content(tmp_path: Path):
    parts = [{"type": "text", "text": "hall"}, {"type": "image_url", "image_url": {"url": "u"}}]
    x = episode("x", 1.0, parts, {"role": "assistant"}, "kitchen", said("take"))
    y = episode("y", 0.0, parts, said("west"))
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r0", iteration=0, worker_id="w"
    ) as recorder:
        credit = StepCredit(estimator="gigpo", recorder=recorder)
        prime_rl.score_group([x, y], credit)
    rows = graphcredit.scan(tmp_path / "s", "steps").sort("trajectory_id", "step_index").collect()
    seen = rows["state"][0]
    assert re.fullmatch(r"hall\n\[image_url [0-9a-f]{12}\]", seen)
    assert rows.select("task_id", "state", "action", "reward", "success").rows() == [
        ("mug:policy", seen, "", 0.0, None),
        ("mug:policy", "kitchen", "take({})", 1.0, True),
        ("mug:policy", seen, "west({})", 0.0, False),
    ]
    assert x.traces[0].nodes[1].advantages == pytest.approx([EAST] * 2, rel=1e-4)


def test_prime_rl_with_a_parent_that_is_none():
    x = episode("x", 1.0, "hall", said("east"))
    x.traces[0].nodes[1].parent = 4
    with pytest.raises(InputError, match="parent of node 1 of trace x must be an earlier node"):
        prime_rl.score_group([x])
    prime_rl.score_group([])


def test_empty_batches_are_credited_with_nothing():
    prime_rl.score_group([episode("x", 0.0, "hall")])


def test_a_batch_is_credited_by_one_estimator():
    with pytest.raises(OptionError, match="credited by one estimator: got grpo, rloo"):
        token_advantages([Y], decode, StepCredit(estimator="grpo,rloo"))


def test_the_options_of_step_credit_matter():
    other = row("y", "", "west", [1], states=["Find hall"])
    apart = token_advantages([*ONE_ROW, other], decode, StepCredit(estimator="gigpo"))
    np.testing.assert_allclose(apart[1], [-HALF], rtol=1e-4)
    merge = graphcredit.MergeSettings(normalise=("casefold",))
    together = token_advantages(
        [*ONE_ROW, other], decode, StepCredit(estimator="gigpo", merge=merge)
    )
    np.testing.assert_allclose(together[1], [WEST], rtol=1e-4)
    # A success is worth two: nobody succeeds, and the graph has no goal.
    options = GraphGpo(distance_discount=0.5)
    with pytest.warns(CreditWarning, match="graphgpo knows who won, and no returns: 1 of 1 pair"):
        never = token_advantages(
            [*ONE_ROW, Y], decode, StepCredit(estimator=options, success_at=2.0)
        )
    np.testing.assert_allclose(never[1], [-HALF], rtol=1e-4)


def test_the_default_is_reach():
    steps = pl.DataFrame(
        {
            "task_id": ["t"] * 3,
            "trajectory_id": ["x", "x", "y"],
            "state": ["find hall", "kitchen", "find hall"],
            "action": ["east", "take", "west"],
            "reward": [0.0, 1.0, 0.0],
            "success": [True, True, False],
        }
    )
    expected = graphcredit.compute(steps, estimators="reach")["reach_advantage"].to_list()
    assert len(set(expected)) == 3
    found = token_advantages([*APPENDED, Y], decode)
    assert [value for values in found for value in values] == pytest.approx(expected)


@both
def test_a_store(estimator: str, tmp_path: Path):
    names: dict[str, Any] = {}
    exec(FENCES[-1], names)
    steps = [
        *trajectory("x", "hall east kitchen take won", rewards=[0, 1], success=True),
        *trajectory("y", "hall west garden"),
    ]
    write_store(tmp_path / "s", steps, run_id="r1", iteration=3)
    found = names["advantage_of_step"](tmp_path / "s", "r1", 3, estimator)
    assert found == pytest.approx({("x", 0): EAST, ("x", 1): TAKE, ("y", 0): WEST}, rel=1e-4)
