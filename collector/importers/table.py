"""The literal table of the formats. A new one is a file in `formats/` and a row here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.formats import (
    agent_runs,
    atif,
    chat_exports,
    chat_rows,
    completion_rows,
    harbor,
    inspect_logs,
    nemo,
    openhands,
    row_messages,
    scores,
    step_episodes,
    step_rows,
    swe_agents,
    tau2,
    text_dumps,
    training_logs,
    verifiers_traces,
    verl_agent,
)
from graphcredit.collector.importers.formats.calls import log as calls
from graphcredit.collector.importers.formats.calls import rows as call_rows
from graphcredit.collector.importers.formats.sessions import (
    claude_code,
    codex,
    completions,
    gemini_cli,
    lines,
    message_lines,
)
from graphcredit.collector.importers.formats.traces import spans, traces
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFormat:
    """One row of the table."""

    name: str
    title: str
    """What writes it."""
    tried_on: str | None
    """Files of the framework that the reader was tried on: real ones, or those of its own writer,
    whose version is named. None: it has seen files written by hand only."""
    is_row: Callable[[object, Path], bool]
    """Whether a record of the file at a path looks like this format."""
    read: Callable[[Record], Rollouts]
    """Returns the rollouts of a record; raises RecordError where it breaks the format."""
    is_log: Callable[[Sequence[Record]], bool] | None = None
    """Whether the first records of a file together look like it, where one tells little."""
    gather: Callable[[Iterator[Record], int], Iterator[Record]] | None = None
    """Puts together the records of a file that are one rollout, which may have so many bytes
    (`logs/groups.py` keeps them on disk until then)."""
    instead_of: str | None = None
    """The format that reads the same records one by one: it is none where `is_log` says yes."""
    aside: tuple[str, ...] = ()
    """Fields that the reader leaves out on purpose, such as `info` or `messages.*.usage`. Other
    texts of a record that become part of no step are reported (`coverage/`)."""
    keeps_rest: bool = False
    """Whether `extra` has all that is not read. States may be numbers, so that the share of the
    texts that is read tells nothing: it is reported, and no file is refused for it."""
    is_loose: bool = False
    """Whether rows that others write may have its fields too: such a format does not take rows of
    which another one reads more than twice as many answers."""


FORMATS: tuple[LogFormat, ...] = (
    LogFormat(
        name="verifiers",
        title="verifiers v1 and prime-rl: `traces.jsonl`",
        tried_on="its own writer, 0.4.0",
        is_row=verifiers_traces.is_row,
        read=verifiers_traces.read,
    ),
    LogFormat(
        name="verifiers-results",
        title="older verifiers: `results.jsonl`, with `metadata.json` beside it",
        tried_on="real files",
        is_row=completion_rows.is_verifiers,
        read=completion_rows.read_verifiers,
        is_loose=True,
    ),
    LogFormat(
        name="atif",
        title="ATIF 1.0 to 1.8: `trajectory.json`, also in a Harbor job",
        tried_on="its own models, atif 1.8.0",
        is_row=atif.is_row,
        read=atif.read,
        gather=atif.gather,
        aside=atif.ASIDE,
    ),
    LogFormat(
        name="harbor",
        title="Harbor: `result.json` of jobs and trials, beside their trajectories",
        tried_on=None,
        is_row=harbor.is_result,
        read=harbor.read_result,
    ),
    LogFormat(
        name="nemo-gym",
        title="NeMo Gym: rollouts of `ng_collect_rollouts`",
        tried_on="real files",
        is_row=nemo.is_gym,
        read=nemo.read_gym,
    ),
    LogFormat(
        name="nemo-rl",
        title="NeMo-RL: `train_data_step{n}.jsonl`",
        tried_on=None,
        is_row=nemo.is_rl,
        read=nemo.read_rl,
    ),
    LogFormat(
        name="inspect",
        title="Inspect: `.eval` archives and `.json` logs",
        tried_on="real files, and its own writer, 0.3.285",
        is_row=inspect_logs.is_row,
        read=inspect_logs.read,
        aside=inspect_logs.ASIDE,
    ),
    LogFormat(
        name="swe-agent",
        title="SWE-agent: `.traj`",
        tried_on="real files",
        is_row=swe_agents.is_swe_agent,
        read=swe_agents.read_swe_agent,
        aside=swe_agents.ASIDE,
    ),
    LogFormat(
        name="mini-swe-agent",
        title="mini-swe-agent 1 and 2: `.traj.json`",
        tried_on="its own writer, 2.4.6",
        is_row=swe_agents.is_mini,
        read=swe_agents.read_mini,
        aside=("info", "trajectory_format", "messages.*.extra", "messages.*.thinking_blocks"),
    ),
    LogFormat(
        name="openhands",
        title="OpenHands: `output.jsonl` of its evaluations",
        tried_on="a real file of 2024; the events of its agent SDK by their description",
        is_row=openhands.is_row,
        read=openhands.read,
        aside=openhands.ASIDE,
    ),
    LogFormat(
        name="openhands-events",
        title="OpenHands: saved trajectories, and folders of events of its agent SDK",
        tried_on=None,
        is_row=openhands.is_event_row,
        read=openhands.read,
        gather=openhands.gather_events,
        aside=openhands.ASIDE,
    ),
    LogFormat(
        name="openhands-completions",
        title="OpenHands: folders of completions, a file a call",
        tried_on=None,
        is_row=completions.is_row,
        read=completions.read,
        gather=completions.gather,
        aside=completions.ASIDE,
    ),
    LogFormat(
        name="claude-code",
        title="Claude Code: sessions of `~/.claude/projects`, and its `stream-json`",
        tried_on=None,
        is_row=claude_code.is_row,
        read=claude_code.read,
        gather=claude_code.gather,
        aside=(*lines.ASIDE, *claude_code.ASIDE),
    ),
    LogFormat(
        name="codex",
        title="Codex: rollouts of `~/.codex/sessions`, and the events of `codex exec --json`",
        tried_on=None,
        is_row=codex.is_row,
        read=codex.read,
        gather=codex.gather,
        aside=(*lines.ASIDE, *codex.ASIDE),
    ),
    LogFormat(
        name="gemini-cli",
        title="Gemini CLI: sessions of `~/.gemini/tmp/*/chats`",
        tried_on=None,
        is_row=gemini_cli.is_row,
        read=gemini_cli.read,
        gather=gemini_cli.gather,
        aside=(*lines.ASIDE, *gemini_cli.ASIDE),
    ),
    LogFormat(
        name="copilot",
        title="Copilot in VS Code: exported chats, and `chatSessions/*.json`",
        tried_on=None,
        is_row=chat_exports.is_copilot,
        read=chat_exports.read_copilot,
        aside=chat_exports.COPILOT_ASIDE,
    ),
    LogFormat(
        name="chatgpt",
        title="ChatGPT: `conversations.json` of its export",
        tried_on=None,
        is_row=chat_exports.is_chatgpt,
        read=chat_exports.read_chatgpt,
        gather=chat_exports.gather_chatgpt,
        aside=chat_exports.CHATGPT_ASIDE,
    ),
    LogFormat(
        name="smolagents",
        title="smolagents: steps of an agent's memory",
        tried_on=None,
        is_row=agent_runs.is_smolagents,
        read=agent_runs.read_smolagents,
        gather=agent_runs.gather_smolagents,
        aside=agent_runs.SMOLAGENTS_ASIDE,
    ),
    LogFormat(
        name="trae-agent",
        title="trae-agent: `trajectory_*.json`",
        tried_on=None,
        is_row=agent_runs.is_trae,
        read=agent_runs.read_trae,
        aside=agent_runs.TRAE_ASIDE,
    ),
    LogFormat(
        name="browser-use",
        title="browser-use: histories of `save_to_file`",
        tried_on=None,
        is_row=agent_runs.is_browser_use,
        read=agent_runs.read_browser_use,
        aside=agent_runs.BROWSER_USE_ASIDE,
    ),
    LogFormat(
        name="tau2",
        title="tau2-bench: `results.json`",
        tried_on=None,
        is_row=tau2.is_row,
        read=tau2.read,
    ),
    LogFormat(
        name="rllm",
        title="rLLM: `episode_*.json` of `trainer.log_episodes`",
        tried_on=None,
        is_row=training_logs.is_rllm,
        read=training_logs.read_rllm,
        aside=training_logs.RLLM_ASIDE,
    ),
    LogFormat(
        name="art",
        title="OpenPipe ART: `trajectories/{split}/{step}.parquet`",
        tried_on="its own writer, 0.5.18; version 2 by the code that writes it",
        is_row=training_logs.is_art,
        read=training_logs.read_art,
        is_loose=True,
    ),
    LogFormat(
        name="titan-rl",
        title="TitanRL: `rollout_samples.jsonl`",
        tried_on=None,
        is_row=training_logs.is_titan,
        read=training_logs.read_titan,
        is_loose=True,
    ),
    LogFormat(
        name="trl",
        title="TRL: `completions_*.parquet`, and ms-swift's `completions.jsonl`",
        tried_on=None,
        is_row=completion_rows.is_trl,
        read=completion_rows.read_trl,
        aside=("step", "gen_step"),
        is_loose=True,
    ),
    LogFormat(
        name="verl-agent",
        title="verl-agent: `{step}.jsonl`, a row for each step",
        tried_on=None,
        is_row=verl_agent.is_row,
        read=verl_agent.read,
        gather=verl_agent.gather,
    ),
    LogFormat(
        name="verl",
        title="verl: `{step}.jsonl` of `rollout_data_dir`",
        tried_on=None,
        is_row=text_dumps.is_verl,
        read=text_dumps.read_verl,
        is_loose=True,
    ),
    LogFormat(
        name="areal",
        title="AReaL: `{version}/{task_id}.jsonl`",
        tried_on=None,
        is_row=text_dumps.is_areal,
        read=text_dumps.read_areal,
    ),
    LogFormat(
        name="traces",
        title="traces of OpenTelemetry (GenAI, OpenInference, Traceloop), Langfuse, LangSmith and "
        "OpenAI's Agents",
        tried_on=None,
        is_row=traces.is_row,
        read=traces.read,
        gather=traces.gather,
        aside=spans.ASIDE,
    ),
    LogFormat(
        name="calls",
        title="calls of a model: requests and answers, LiteLLM, Responses objects, or rows whose "
        "messages grow",
        tried_on=None,
        is_row=calls.is_row,
        is_log=calls.is_log,
        instead_of="messages",
        read=calls.read,
        gather=calls.gather,
        aside=call_rows.ASIDE,
        is_loose=True,
    ),
    LogFormat(
        name="message-lines",
        title="files with a message a line, of one conversation or of several by their session",
        tried_on=None,
        is_row=message_lines.is_row,
        read=message_lines.read,
        gather=message_lines.gather,
        aside=("session",),
        is_loose=True,
    ),
    LogFormat(
        name="steps",
        title="steps as they are: a row a step, or episodes with lists of states and actions",
        tried_on=None,
        is_row=step_rows.is_row,
        read=step_rows.read,
        gather=step_episodes.gather,
        aside=("steps.*.extra",),
        keeps_rest=True,
        is_loose=True,
    ),
    LogFormat(
        name="messages",
        title="any rows with messages, or prompt and answer, in any dialect: OpenAI-style, "
        "tau-bench, SWE-smith, ShareGPT, LangChain, SkyRL, Agent-R1, Atropos",
        tried_on="real files of tau-bench and mini-swe-agent 1",
        is_row=chat_rows.is_row,
        read=chat_rows.read,
        aside=(*row_messages.ASIDE, *scores.ASIDE, "outcome", "verdict"),
        is_loose=True,
    ),
)
"""Recognised in this order: the most particular first."""


_NAMES = {row.name for row in FORMATS}


def all_formats() -> tuple[LogFormat, ...]:
    """Return the formats of installed packages, and after them ours."""
    return (*installed("graphcredit.formats", LogFormat, _NAMES).values(), *FORMATS)


def format_named(name: str) -> LogFormat:
    """Return a row of the table.

    Raises:
        OptionError: There is none of this name.
    """
    rows = {row.name: row for row in all_formats()}
    if name not in rows:
        raise OptionError(f"import.format must be one of {', '.join(rows)}: got {name!r}")
    return rows[name]


def candidates(value: object, path: Path) -> list[LogFormat]:
    """Return the formats that a record looks like, the most particular first."""
    return [row for row in all_formats() if row.is_row(value, path)]
