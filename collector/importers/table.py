"""The literal table of the formats. A new one is a file in `formats/` and a row here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
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
    row_verdicts,
    step_episodes,
    step_rows,
    swe_agents,
    tau2,
    training_logs,
    verifiers_traces,
    verl,
)
from graphcredit.collector.importers.formats.calls import log as calls
from graphcredit.collector.importers.formats.calls import rows as call_rows
from graphcredit.collector.importers.formats.sessions import (
    claude_code,
    codex,
    gemini_cli,
    message_lines,
)
from graphcredit.collector.importers.formats.traces import spans, traces
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.collector.importers.messages.values import fields_of
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.near_names import must_be_one_of


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One row of the table."""

    name: str
    is_row: Callable[[object, Path], bool]
    """Whether a record of the file at a path looks like this format."""
    read: Callable[[Record], Rollouts]
    """Returns the rollouts of a record; raises RecordError where it breaks the format."""
    gather: Callable[[Iterator[Record], int], Iterator[Record]] | None = None
    """Puts together the records of a file that are one rollout, which may have so many bytes
    (`logs/groups.py` keeps them on disk until then)."""
    _: KW_ONLY
    is_log: Callable[[Sequence[Record]], bool] | None = None
    """Whether the first records of a file together look like it, where one tells little."""
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
    LogFormat("verifiers", verifiers_traces.is_row, verifiers_traces.read),
    LogFormat(
        "verifiers-results",
        completion_rows.is_verifiers,
        completion_rows.read_verifiers,
        is_loose=True,
    ),
    LogFormat("atif", atif.is_row, atif.read, atif.gather, aside=atif.ASIDE),
    LogFormat("harbor", harbor.is_result, harbor.read_result),
    LogFormat("nemo-gym", nemo.is_gym, nemo.read_gym),
    LogFormat("inspect", inspect_logs.is_row, inspect_logs.read, aside=inspect_logs.ASIDE),
    LogFormat(
        "swe-agent", swe_agents.is_swe_agent, swe_agents.read_swe_agent, aside=swe_agents.ASIDE
    ),
    LogFormat(
        "mini-swe-agent",
        swe_agents.is_mini,
        swe_agents.read_mini,
        aside=("info", "trajectory_format", "messages.*.extra", "messages.*.thinking_blocks"),
    ),
    LogFormat("openhands", openhands.is_row, openhands.read, aside=openhands.ASIDE),
    LogFormat(
        "openhands-events",
        openhands.is_event_row,
        openhands.read,
        openhands.gather_events,
        aside=openhands.ASIDE,
    ),
    LogFormat(
        "openhands-completions",
        openhands.is_completion,
        calls.read,
        openhands.gather_completions,
        aside=openhands.COMPLETIONS_ASIDE,
    ),
    LogFormat(
        "claude-code",
        claude_code.is_row,
        claude_code.read,
        claude_code.gather,
        aside=claude_code.ASIDE,
    ),
    LogFormat("codex", codex.is_row, codex.read, codex.gather, aside=codex.ASIDE),
    LogFormat(
        "gemini-cli", gemini_cli.is_row, gemini_cli.read, gemini_cli.gather, aside=gemini_cli.ASIDE
    ),
    LogFormat(
        "smolagents",
        agent_runs.is_smolagents,
        agent_runs.read_smolagents,
        agent_runs.gather_smolagents,
        aside=agent_runs.SMOLAGENTS_ASIDE,
    ),
    LogFormat(
        "browser-use",
        agent_runs.is_browser_use,
        agent_runs.read_browser_use,
        aside=agent_runs.BROWSER_USE_ASIDE,
    ),
    LogFormat("tau2", tau2.is_row, tau2.read),
    LogFormat(
        "rllm",
        has_fields("episode_id", "trajectories", "task"),
        training_logs.read_rllm,
        aside=training_logs.RLLM_ASIDE,
    ),
    LogFormat(
        "art",
        has_fields("group_index", "messages", "reward"),
        training_logs.read_art,
        is_loose=True,
    ),
    LogFormat(
        "trl",
        completion_rows.is_trl,
        completion_rows.read_trl,
        aside=("step", "gen_step"),
        is_loose=True,
    ),
    LogFormat(
        "verl-agent", verl.is_agent, verl.read_agent, verl.gather_agent, aside=verl.AGENT_ASIDE
    ),
    LogFormat("verl", verl.is_verl, verl.read_verl, is_loose=True),
    LogFormat("traces", traces.is_row, traces.read, traces.gather, aside=spans.ASIDE),
    LogFormat(
        "calls",
        calls.is_row,
        calls.read,
        calls.gather,
        is_log=calls.is_log,
        instead_of="messages",
        aside=call_rows.ASIDE,
        is_loose=True,
    ),
    LogFormat(
        "message-lines",
        message_lines.is_row,
        message_lines.read,
        message_lines.gather,
        aside=("session",),
        is_loose=True,
    ),
    LogFormat(
        "steps",
        step_rows.is_row,
        step_rows.read,
        step_episodes.gather,
        aside=("steps.*.extra",),
        keeps_rest=True,
        is_loose=True,
    ),
    LogFormat(
        "messages",
        chat_rows.is_row,
        chat_rows.read,
        aside=(*row_messages.ASIDE, *row_verdicts.ASIDE, "outcome", "verdict", *_OF_EVALUATIONS),
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
