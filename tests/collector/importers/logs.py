"""Small logs of each format, written by hand."""

import json
from pathlib import Path
from typing import Any


def write_lines(path: Path, *rows: object) -> Path:
    """Write rows as JSONL; text is written as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    """Return an assistant message with one tool call, as OpenAI writes it."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def walk(*rooms: str, task: str = "t", reward: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a row: the agent starts in the hall, and goes from room to room."""
    messages = [said("system", "Find the exit."), said("user", "hall")]
    for room in rooms[:-1]:
        messages += [called("go", to=room), said("tool", room)]
    messages.append(said("assistant", f"I am in the {rooms[-1]}."))
    return {"task_id": task, "messages": messages, "reward": reward, **more}


WALKS = [
    walk("kitchen", "garden", trial=0),
    walk("cellar", "cellar", trial=1, reward=0.0),
    walk("kitchen", "cellar", trial=2, reward=0.0),
]
"""A group of three: two go through the kitchen, and one of them arrives."""

NODES = [
    {"parent": None, "sampled": False, "message": said("user", "hall"), "token_ids": [1, 2]},
    {
        "parent": 0,
        "sampled": True,
        "message": said("assistant", "go east", reasoning_content="the exit is east"),
        "token_ids": [9, 3, 4],
        "mask": [False, True, True],
        "logprobs": [-0.5, -0.25],
    },
    {"parent": 1, "sampled": False, "message": said("user", "kitchen"), "token_ids": [5]},
    {
        "parent": 2,
        "sampled": True,
        "message": said("assistant", "go out"),
        "token_ids": [9, 6, 7],
        "mask": [False, True, False],
        "logprobs": [-1.0],
    },
    {
        "parent": 0,
        "sampled": True,
        "message": said("assistant", "a branch"),
        "token_ids": [8],
        "mask": [True],
        "logprobs": [-1.0],
    },
]


def episode(trace_id: str = "trace-1", **trace: Any) -> dict[str, Any]:
    """Return an episode of verifiers v1; the branch is before the last answer of the main one."""
    nodes = [
        *NODES[:1],
        NODES[4],
        *({**n, "parent": p} for n, p in zip(NODES[1:4], (0, 2, 3), strict=True)),
    ]
    return {
        "id": "e1",
        "env": {"id": "rooms", "name": "rooms"},
        "task": {"key": "rooms-7"},
        "group": {"id": "g1"},
        "run": {
            "id": "run-a",
            "work": {"type": "train", "step": 5, "policy": {"start": 4, "end": 5}},
        },
        "ok": True,
        "traces": [
            {
                "version": 1,
                "id": trace_id,
                "nodes": nodes,
                "calls": [
                    {"node": 2, "model": "m", "sampling": {"temperature": 0.7, "top_p": 0.9}},
                    {"node": 4, "model": "m", "sampling": {"temperature": 0.7}},
                ],
                "rewards": {
                    "exit": {"score": 1.0, "weight": 1.0},
                    "short": {"score": 0.5, "weight": 0.2},
                    "unused": None,
                },
                "ok": True,
                "stop_condition": "completed",
                **trace,
            }
        ],
    }


def atif(**more: Any) -> dict[str, Any]:
    """Return an ATIF trajectory with a side-chain and a step of copied context."""

    def agent(step_id: int, message: str, **step: Any) -> dict[str, Any]:
        return {"step_id": step_id, "source": "agent", "message": message, **step}

    call = {"tool_call_id": "c", "function_name": "ls", "arguments": {"path": "/"}}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s-1",
        "agent": {"name": "a", "version": "1", "model_name": "m"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "find it"},
            agent(2, "from before", is_copied_context=True),
            agent(
                3,
                "I look.",
                reasoning_content="where?",
                tool_calls=[call],
                observation={"results": [{"source_call_id": "c", "content": "bin etc"}]},
                metrics={
                    "prompt_tokens": 3,
                    "completion_tokens": 2,
                    "prompt_token_ids": [1, 2, 3],
                    "completion_token_ids": [4, 5],
                    "logprobs": [-0.1, -0.2],
                },
            ),
            agent(4, "helper", extra={"is_sidechain": True}),
            agent(5, "It is in etc."),
        ],
        **more,
    }


def gym_row(reward: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a rollout of NeMo Gym, whose board is a user message among the output."""
    return {
        "responses_create_params": {
            "input": [said("system", "Play.", type="message"), said("user", "board A")],
            "temperature": 0.5,
        },
        "response": {
            "model": "m",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "up"}],
                    "prompt_token_ids": [1, 2],
                    "generation_token_ids": [3],
                    "generation_log_probs": [-0.5],
                },
                {"type": "message", "role": "user", "content": "board B"},
                {"type": "function_call", "name": "move", "arguments": '{"x": 1}', "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "done"},
            ],
        },
        "reward": reward,
        "terminated": True,
        "truncated": False,
        "info": {"success": True},
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "agent_ref": {"name": "grid"},
        **more,
    }


def inspect_log(*samples: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "ctf", "model": "m", "model_generate_config": {"temperature": 0.3}},
        "plan": {},
        "samples": list(samples),
    }


def inspect_sample(epoch: int = 1, value: object = "C", **more: Any) -> dict[str, Any]:
    call = {"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}
    return {
        "id": "flag",
        "epoch": epoch,
        "messages": [
            said("user", "attachment://abc"),
            {"role": "assistant", "content": "", "tool_calls": [call]},
            said("tool", "cannot parse", error={"type": "parsing", "message": "bad"}),
            said("assistant", "flag{x}"),
        ],
        "scores": {"match": {"value": value}},
        "attachments": {"abc": "Find the flag."},
        **more,
    }


SWE_TRAJ = {
    "environment": "main",
    "history": [
        said("system", "You are a programmer."),
        said("user", "demo", is_demo=True),
        said("assistant", "demo answer", is_demo=True),
        said("user", "Fix the bug."),
        said("assistant", "I open it."),
    ],
    "trajectory": [
        {
            "action": "open a.py",
            "observation": "[File: a.py]",
            "response": "I open it.\n```\nopen a.py\n```",
            "thought": "I open it.",
            "state": '{"open_file": "a.py"}',
        },
        {
            "action": "submit",
            "observation": "",
            "response": "Done.",
            "thought": "Done.",
            "state": '{"open_file": "a.py"}',
        },
    ],
    "info": {"exit_status": "submitted"},
}
