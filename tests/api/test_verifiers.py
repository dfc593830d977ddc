"""verifiers' own classes write traces that `import` reads and that prime_rl credits.

x: hall, look(east), kitchen, take(mug), worth 1; y: hall, look(west), worth 0. Whether their steps
are compared by return (GiGPO) or by distance to the goal (GraphGPO), x and y differ by one in their
episode and at the hall, so each part is ±1/√2, and the kitchen, seen once, has the episode's part
only.
"""

from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip(
    "verifiers.v1", reason="verifiers is not installed: pip install 'graphcredit[integrations]'"
)

from verifiers.v1.graph import prepare_turn  # noqa: E402
from verifiers.v1.types import (  # noqa: E402
    AssistantMessage,
    ImageUrlContentPart,
    ImageUrlSource,
    Response,
    SystemMessage,
    TextContentPart,
    ToolCall,
    ToolMessage,
    TurnTokens,
    UserMessage,
)
from verifiers.v1.utils.trace_store import read_episodes, write_episode  # noqa: E402

import graphcredit  # noqa: E402
from graphcredit.integrations import StepCredit, prime_rl  # noqa: E402

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF

START = [
    SystemMessage(content="find the mug"),
    UserMessage(
        content=[
            TextContentPart(text="hall"),
            ImageUrlContentPart(image_url=ImageUrlSource(url="data:,")),
        ]
    ),
]


class Play:
    """A rollout through verifiers' graph builder, with tokens that count up."""

    def __init__(self, name: str, *, reward: float) -> None:
        task: Any = vf.TraceTask(type="Mug", data=vf.TaskData(idx=0, prompt="hall"))
        agent: Any = vf.AgentInfo(name="policy", config=vf.AgentConfig())
        self.trace: Any = vf.Trace(id=name, task=task, agent=agent)
        self.prompt: list[Any] = list(START)
        self.num_tokens = 0
        self.trace.record_reward("won", reward)
        self.trace.ok = True

    def call(self, tool: str, place: str) -> None:
        """Call a tool, with `content: null` and no text, two sampled tokens."""
        call = ToolCall(id=f"call-{self.num_tokens}", name=tool, arguments=f'{{"at": "{place}"}}')
        message = AssistantMessage(content=None, tool_calls=[call])
        prompt = list(range(self.num_tokens + len(self.prompt)))
        tokens = TurnTokens(
            prompt_ids=prompt,
            completion_ids=[len(prompt), len(prompt) + 1],
            completion_logprobs=[-0.5, -0.25],
        )
        turn = prepare_turn(self.trace, self.prompt)
        turn.commit(
            Response(
                id="r", created=0, model="m", message=message, finish_reason="stop", tokens=tokens
            )
        )
        self.prompt.append(message)
        self.num_tokens = len(prompt) + 2

    def see(self, text: str) -> None:
        last = self.prompt[-1].tool_calls[0].id
        self.prompt.append(ToolMessage(tool_call_id=last, content=text))


def played() -> list[Any]:
    x, y = Play("x", reward=1.0), Play("y", reward=0.0)
    x.call("go", "east")
    x.see("kitchen")
    x.call("take", "mug")
    y.call("go", "west")
    return [x.trace, y.trace]


def episodes(*traces: Any) -> list[Any]:
    """Return a group as prime-rl's `score_group` gets it."""
    group = vf.GroupInfo(id="g0")
    return [vf.Episode(task=t.task, group=group, ok=True, traces=[t]) for t in traces]


@pytest.mark.parametrize("estimator", ["gigpo", "graphgpo"])
def test_each_sampled_token_has_the_advantage_of_its_turn(estimator: str):
    x, y = played()
    prime_rl.score_group(episodes(x, y), StepCredit(estimator=estimator))
    assert [node.advantages for node in x.nodes if not node.sampled] == [None] * 3
    found = [node.advantages for trace in (x, y) for node in trace.nodes if node.sampled]
    assert found == [pytest.approx([value] * 2, rel=1e-4) for value in (EAST, TAKE, WEST)]
    (branch,) = x.branches
    # verifiers spreads them over the tokens of the branch, as prime-rl trains on them.
    assert len(branch.advantages) == len(branch.token_ids)
    assert [value for value in branch.advantages if value] == pytest.approx(
        [EAST, EAST, TAKE, TAKE], rel=1e-4
    )


def test_a_turn_of_another_branch_is_credited_once():
    x, y = played()
    side = prepare_turn(x, [SystemMessage(content="sum it up"), UserMessage(content="so far")])
    tokens = TurnTokens(prompt_ids=[90], completion_ids=[91], completion_logprobs=[-1.0])
    message = AssistantMessage(content="a kitchen")
    side.commit(
        Response(id="r", created=0, model="m", message=message, finish_reason="stop", tokens=tokens)
    )
    assert len(x.branches) == 2
    prime_rl.score_group(episodes(x, y), StepCredit(estimator="grpo"))
    found = [node.advantages for node in x.nodes if node.sampled]
    assert found == [pytest.approx([HALF] * length, rel=1e-4) for length in (2, 2, 1)]


def test_what_verifiers_writes_is_imported(tmp_path: Path):
    group = vf.GroupInfo(id="g0")
    for trace in played():
        trace.ok = trace.is_completed = True
        write_episode(tmp_path, vf.Episode(task=trace.task, group=group, ok=True, traces=[trace]))
    assert len(read_episodes(tmp_path, vf.Trace)) == 2
    report = graphcredit.import_log(tmp_path / "traces.jsonl", tmp_path / "s")
    assert dict(report.num_files) == {"verifiers": 1}
    assert (report.num_trajectories, report.num_steps, report.num_groups) == (2, 3, 1)
    assert report.num_bad_rows == 0
    graphcredit.assign(tmp_path / "s", estimators="gigpo")
    rows = graphcredit.scan(tmp_path / "s").sort("trajectory_id", "step_index").collect()
    assert rows["action"].to_list() == [
        'go({"at": "east"})',
        'take({"at": "mug"})',
        'go({"at": "west"})',
    ]
    assert rows["gigpo_advantage"].to_list() == pytest.approx([EAST, TAKE, WEST], rel=1e-4)


def test_import_and_score_group_see_the_same_steps(tmp_path: Path):
    traces = played()
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r", iteration=0, worker_id="w"
    ) as recorder:
        prime_rl.score_group(episodes(*traces), StepCredit(recorder=recorder))
    for trace in traces:
        trace.ok = trace.is_completed = True
        write_episode(tmp_path, vf.Episode(task=trace.task, ok=True, traces=[trace]))
    graphcredit.import_log(tmp_path / "traces.jsonl", tmp_path / "imported")
    recorded, imported = (
        graphcredit.scan(tmp_path / name, "steps")
        .sort("trajectory_id", "step_index")
        .select("trajectory_id", "state", "action", "reward", "success")
        .collect()
        for name in ("s", "imported")
    )
    assert recorded.equals(imported)
