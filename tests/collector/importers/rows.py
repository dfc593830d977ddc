"""A small record of each format, written by hand, beside those of `logs`."""

from typing import Any

from tests.collector.importers.logs import (
    SWE_TRAJ,
    WALKS,
    atif,
    called,
    episode,
    gym_row,
    inspect_log,
    inspect_sample,
    said,
)


def mini_swe_agent(**more: Any) -> dict[str, Any]:
    """Return a trajectory of version 2: the action is a block of the text, `exit` ends it."""
    return {
        "info": {
            "mini_version": "2.4.6",
            "exit_status": "Submitted",
            "config": {"model": {"model_name": "m", "model_kwargs": {"temperature": 0.5}}},
        },
        "messages": [
            said("system", "You fix."),
            said("user", "Fix the bug."),
            said("assistant", "I look.\n```mswea_bash_command\nls /\n```"),
            said("user", "bin etc"),
            said("assistant", "I submit.\n```bash\nsubmit\n```"),
            said("exit", "diff"),
        ],
        "trajectory_format": "mini-swe-agent-1.1",
        **more,
    }


def openhands_row(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"instance_id": "repo-1", "instruction": "Fix it.", "history": list(events), **more}


def openhands_action(command: str, thought: str, **more: Any) -> dict[str, Any]:
    args = {"command": command, "thought": thought, "hidden": False}
    return {"source": "agent", "action": "run", "args": args, **more}


def openhands_result(content: str) -> dict[str, Any]:
    return {"source": "agent", "observation": "run", "content": content, "extras": {}}


def tau2_simulation(trial: int = 0, reward: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """Return a simulation in which the user turns on the data of its phone."""
    call = {"id": "1", "name": "lookup", "arguments": {"id": 7}, "requestor": "assistant"}
    toggle = {"id": "2", "name": "toggle_data", "arguments": {}, "requestor": "user"}
    return {
        "id": f"s-{trial}",
        "task_id": "3",
        "trial": trial,
        "termination_reason": "user_stop",
        "reward_info": {"reward": reward, "reward_breakdown": {"DB": 1.0, "COMMUNICATE": 0.5}},
        "messages": [
            said("assistant", "Hi! How can I help you today?"),
            said("user", "No data."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "id": "1", "content": "found", "requestor": "assistant"},
            said("assistant", "Turn your data on."),
            {"role": "user", "content": None, "tool_calls": [toggle]},
            {"role": "tool", "id": "2", "content": "on", "requestor": "user"},
            said("user", "It works."),
        ],
        **more,
    }


def tau2_results(*simulations: object) -> dict[str, Any]:
    info = {
        "environment_info": {"domain_name": "telecom"},
        "agent_info": {"llm": "m", "llm_args": {"temperature": 0.0}},
    }
    return {"timestamp": "2026", "info": info, "tasks": [], "simulations": list(simulations)}


def verl_row(output: str = "six", score: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"input": "user\n3+3?\nassistant\n", "output": output, "score": score, "step": 4, **more}


def verl_agent_row(
    *past: tuple[str, str], now: str, action: str, score: float = 0.0, **more: Any
) -> dict[str, Any]:
    """Return a row of a step that remembers its last two steps."""
    first = max(0, len(past) - 2)
    lines = [
        f"[Observation {number + 1}: '{seen}', Action {number + 1}: '{done}']"
        for number, (seen, done) in enumerate(past)
    ][first:]
    history = (
        f"Prior to this step, you have already taken {len(past)} step(s). Below are "
        f"the most recent {len(lines)}: "
        + "\n".join(lines)
        + f"\nYou are now at step {len(past) + 1}"
        " and your"
    )
    prompt = (
        f"{history if past else 'Your'} current observation is: {now}\n"
        "Your admissible actions of the current situation are: ['east'\n 'west'].\n\nNow act.\n"
    )
    output = f"<think>hm</think><action>{action}</action>"
    return {"input": prompt, "output": output, "score": score, "step": 7, **more}


ROWS: dict[str, tuple[object, str]] = {
    "verifiers": (episode(), "traces.jsonl"),
    "verifiers-results": (
        {"id": 0, "answer": "1", "reward": 1.0, "prompt": [said("user", "q")]}
        | {"completion": [said("assistant", "a")]},
        "results.jsonl",
    ),
    "atif": (atif(), "trajectory.json"),
    "harbor": ({"id": "1", "trial_name": "a__1", "task_name": "a"}, "result.json"),
    "nemo-gym": (gym_row(), "rollouts.jsonl"),
    "inspect": (inspect_log(inspect_sample()), "log.json"),
    "swe-agent": (SWE_TRAJ, "django-1.traj"),
    "mini-swe-agent": (mini_swe_agent(), "django-1.traj.json"),
    "openhands": (openhands_row(openhands_action("ls", "")), "output.jsonl"),
    "openhands-events": (
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it."}},
        "trajectory.json",
    ),
    "openhands-completions": (
        {
            "messages": [said("user", "q")],
            "response": said("assistant", "a"),
            "cost": 0.1,
            "timestamp": 1.5,
            "kwargs": {},
        },
        "gpt-1769035075.json",
    ),
    "claude-code": (
        {"type": "user", "uuid": "u", "sessionId": "s", "message": said("user", "Fix it.")},
        "5f0c.jsonl",
    ),
    "codex": ({"type": "session_meta", "payload": {"id": "c"}}, "rollout-2026.jsonl"),
    "gemini-cli": ({"sessionId": "s", "projectHash": "p"}, "session-2026.jsonl"),
    "smolagents": (
        {"step_number": 1, "model_output": "I look.", "observations": "a.py"},
        "steps.json",
    ),
    "browser-use": (
        {"history": [{"model_output": None, "result": [], "state": {"url": "about:blank"}}]},
        "history.json",
    ),
    "tau2": (tau2_results(tau2_simulation()), "results.json"),
    "rllm": ({"episode_id": "h:0", "task": {}, "trajectories": []}, "episode_hashh_id0.json"),
    "art": ({"group_index": 0, "reward": 1.0, "messages": [said("user", "q")]}, "0007.parquet"),
    "trl": (
        {"step": 4, "prompt": "q", "completion": "a", "advantage": 0.5},
        "completions_00004.parquet",
    ),
    "verl-agent": (verl_agent_row(now="hall", action="east"), "7.jsonl"),
    "verl": (verl_row(), "4.jsonl"),
    "traces": ({"name": "llm", "context": {"trace_id": "1", "span_id": "2"}}, "spans.json"),
    "calls": (
        {"request": {"messages": [said("user", "q")]}, "response": said("assistant", "a")},
        "calls.jsonl",
    ),
    "message-lines": (said("user", "hall"), "chat.jsonl"),
    "steps": ({"episode": 0, "t": 0, "obs": 3, "action": 1, "reward": 0.0}, "walks.jsonl"),
    "messages": ({**WALKS[0], "messages": [said("user", "hall"), called("go", to="x")]}, "w.jsonl"),
}
"""Name of a format to a record of it, and what its file is called."""
