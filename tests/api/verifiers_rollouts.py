"""Rollouts through the classes of verifiers."""

from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.graph import prepare_turn
from verifiers.v1.types import (
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
from verifiers.v1.utils.trace_store import read_episodes, write_episode

GROUP = vf.GroupInfo(id="g0")
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
    return [vf.Episode(id=t.id, task=t.task, group=GROUP, ok=True, traces=[t]) for t in traces]


def branch_off(trace: Any) -> None:
    """Let a trace have a turn that does not go on from its others, of one sampled token."""
    turn = prepare_turn(trace, [SystemMessage(content="sum it up"), UserMessage(content="so far")])
    tokens = TurnTokens(prompt_ids=[90], completion_ids=[91], completion_logprobs=[-1.0])
    message = AssistantMessage(content="a kitchen")
    turn.commit(
        Response(id="r", created=0, model="m", message=message, finish_reason="stop", tokens=tokens)
    )


def write(folder: Path, traces: list[Any], **options: Any) -> None:
    """Write each trace as an episode that has ended, and read them back."""
    for trace in traces:
        trace.ok = trace.is_completed = True
        write_episode(folder, vf.Episode(task=trace.task, ok=True, traces=[trace], **options))
    assert len(read_episodes(folder, vf.Trace)) == len(traces)
