"""The literal table of the formats. A new one is a file in `formats/` and a row here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.formats import (
    agent_runs,
    atif,
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
from graphcredit.collector.importers.messages.values import fields_of
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.near_names import must_be_one_of


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFormat:
    """One row of the table."""

    name: str
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


def has_fields(*names: str) -> Callable[[object, Path], bool]:
    """Return the test whether a record has some fields."""
    return lambda value, path: set(names) <= fields_of(value).keys()


_OF_EVALUATIONS = ("evaluation_result.reason", "eval_metadata")
"""What Eval Protocol says of a score."""

FORMATS: tuple[LogFormat, ...] = (
    LogFormat(name="verifiers", is_row=verifiers_traces.is_row, read=verifiers_traces.read),
    LogFormat(
        name="verifiers-results",
        is_row=completion_rows.is_verifiers,
        read=completion_rows.read_verifiers,
        is_loose=True,
    ),
    LogFormat(
        name="atif", is_row=atif.is_row, read=atif.read, gather=atif.gather, aside=atif.ASIDE
    ),
    LogFormat(name="harbor", is_row=harbor.is_result, read=harbor.read_result),
    LogFormat(name="nemo-gym", is_row=nemo.is_gym, read=nemo.read_gym),
    LogFormat(name="nemo-rl", is_row=nemo.is_rl, read=nemo.read_rl),
    LogFormat(
        name="inspect", is_row=inspect_logs.is_row, read=inspect_logs.read, aside=inspect_logs.ASIDE
    ),
    LogFormat(
        name="swe-agent",
        is_row=swe_agents.is_swe_agent,
        read=swe_agents.read_swe_agent,
        aside=swe_agents.ASIDE,
    ),
    LogFormat(
        name="mini-swe-agent",
        is_row=swe_agents.is_mini,
        read=swe_agents.read_mini,
        aside=("info", "trajectory_format", "messages.*.extra", "messages.*.thinking_blocks"),
    ),
    LogFormat(
        name="openhands", is_row=openhands.is_row, read=openhands.read, aside=openhands.ASIDE
    ),
    LogFormat(
        name="openhands-events",
        is_row=openhands.is_event_row,
        read=openhands.read,
        gather=openhands.gather_events,
        aside=openhands.ASIDE,
    ),
    LogFormat(
        name="openhands-completions",
        is_row=completions.is_row,
        read=completions.read,
        gather=completions.gather,
        aside=completions.ASIDE,
    ),
    LogFormat(
        name="claude-code",
        is_row=claude_code.is_row,
        read=claude_code.read,
        gather=claude_code.gather,
        aside=(*lines.ASIDE, *claude_code.ASIDE),
    ),
    LogFormat(
        name="codex",
        is_row=codex.is_row,
        read=codex.read,
        gather=codex.gather,
        aside=(*lines.ASIDE, *codex.ASIDE),
    ),
    LogFormat(
        name="gemini-cli",
        is_row=gemini_cli.is_row,
        read=gemini_cli.read,
        gather=gemini_cli.gather,
        aside=(*lines.ASIDE, *gemini_cli.ASIDE),
    ),
    LogFormat(
        name="smolagents",
        is_row=agent_runs.is_smolagents,
        read=agent_runs.read_smolagents,
        gather=agent_runs.gather_smolagents,
        aside=agent_runs.SMOLAGENTS_ASIDE,
    ),
    LogFormat(
        name="trae-agent",
        is_row=has_fields("llm_interactions", "agent_steps"),
        read=agent_runs.read_trae,
        aside=agent_runs.TRAE_ASIDE,
    ),
    LogFormat(
        name="browser-use",
        is_row=agent_runs.is_browser_use,
        read=agent_runs.read_browser_use,
        aside=agent_runs.BROWSER_USE_ASIDE,
    ),
    LogFormat(name="tau2", is_row=tau2.is_row, read=tau2.read),
    LogFormat(
        name="rllm",
        is_row=has_fields("episode_id", "trajectories", "task"),
        read=training_logs.read_rllm,
        aside=training_logs.RLLM_ASIDE,
    ),
    LogFormat(
        name="art",
        is_row=has_fields("group_index", "messages", "reward"),
        read=training_logs.read_art,
        is_loose=True,
    ),
    LogFormat(
        name="titan-rl",
        is_row=has_fields("group_id", "rollout_id", "turns"),
        read=training_logs.read_titan,
        is_loose=True,
    ),
    LogFormat(
        name="trl",
        is_row=completion_rows.is_trl,
        read=completion_rows.read_trl,
        aside=("step", "gen_step"),
        is_loose=True,
    ),
    LogFormat(
        name="verl-agent", is_row=verl_agent.is_row, read=verl_agent.read, gather=verl_agent.gather
    ),
    LogFormat(name="verl", is_row=text_dumps.is_verl, read=text_dumps.read_verl, is_loose=True),
    LogFormat(
        name="areal",
        is_row=has_fields("task_id", "sample_idx", "tail_version", "prompt", "completion"),
        read=text_dumps.read_areal,
    ),
    LogFormat(
        name="traces",
        is_row=traces.is_row,
        read=traces.read,
        gather=traces.gather,
        aside=spans.ASIDE,
    ),
    LogFormat(
        name="calls",
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
        is_row=message_lines.is_row,
        read=message_lines.read,
        gather=message_lines.gather,
        aside=("session",),
        is_loose=True,
    ),
    LogFormat(
        name="steps",
        is_row=step_rows.is_row,
        read=step_rows.read,
        gather=step_episodes.gather,
        aside=("steps.*.extra",),
        keeps_rest=True,
        is_loose=True,
    ),
    LogFormat(
        name="messages",
        is_row=chat_rows.is_row,
        read=chat_rows.read,
        aside=(*row_messages.ASIDE, *scores.ASIDE, "outcome", "verdict", *_OF_EVALUATIONS),
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
        raise OptionError(must_be_one_of("import.format", rows, name))
    return rows[name]


def candidates(value: object, path: Path) -> list[LogFormat]:
    """Return the formats that a record looks like, the most particular first."""
    return [row for row in all_formats() if row.is_row(value, path)]
