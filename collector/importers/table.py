"""The literal table of the formats. A new one is a file in `formats/` and a row here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.formats import (
    atif,
    chat_rows,
    completion_rows,
    harbor,
    inspect_logs,
    nemo,
    openhands,
    spans,
    step_episodes,
    step_rows,
    swe_agents,
    tau2,
    text_dumps,
    training_logs,
    verifiers_traces,
    verl_agent,
)
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
    gather: Callable[[Iterator[Record]], Iterator[Record]] | None = None
    """Puts together the records of a file that are one rollout; it holds the file in memory."""
    aside: tuple[str, ...] = ()
    """Fields that the reader leaves out on purpose, such as `info` or `messages.*.usage`. Other
    texts of a record that become part of no step are reported (`coverage.py`)."""
    keeps_rest: bool = False
    """Whether `extra` has all that is not read. States may be numbers, so that the share of the
    texts that is read tells nothing: it is reported, and no file is refused for it."""


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
    ),
    LogFormat(
        name="atif",
        title="ATIF 1.0 to 1.8: `trajectory.json`, also in a Harbor job",
        tried_on="its own models, atif 1.8.0",
        is_row=atif.is_row,
        read=atif.read,
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
    ),
    LogFormat(
        name="mini-swe-agent",
        title="mini-swe-agent 1 and 2: `.traj.json`",
        tried_on="its own writer, 2.4.6",
        is_row=swe_agents.is_mini,
        read=swe_agents.read_mini,
    ),
    LogFormat(
        name="openhands",
        title="OpenHands: `output.jsonl` of its evaluations",
        tried_on="a real file of 2024; the events of its agent SDK by their description",
        is_row=openhands.is_row,
        read=openhands.read,
        aside=("error", "metadata", "instance", "test_result", "metrics", "result_explanation"),
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
    ),
    LogFormat(
        name="art",
        title="OpenPipe ART: `trajectories/{split}/{step}.parquet`",
        tried_on="its own writer, 0.5.18; version 2 by the code that writes it",
        is_row=training_logs.is_art,
        read=training_logs.read_art,
    ),
    LogFormat(
        name="titan-rl",
        title="TitanRL: `rollout_samples.jsonl`",
        tried_on=None,
        is_row=training_logs.is_titan,
        read=training_logs.read_titan,
    ),
    LogFormat(
        name="trl",
        title="TRL: `completions_*.parquet`",
        tried_on=None,
        is_row=completion_rows.is_trl,
        read=completion_rows.read_trl,
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
    ),
    LogFormat(
        name="areal",
        title="AReaL: `{version}/{task_id}.jsonl`",
        tried_on=None,
        is_row=text_dumps.is_areal,
        read=text_dumps.read_areal,
    ),
    LogFormat(
        name="spans",
        title="spans of OpenTelemetry, Phoenix, Langfuse: refused, with the reason",
        tried_on=None,
        is_row=spans.is_row,
        read=spans.read,
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
    ),
    LogFormat(
        name="messages",
        title="any rows with messages, or prompt and completion: OpenAI-style, tau-bench, "
        "SWE-smith, ShareGPT, LangChain, SkyRL",
        tried_on="real files of tau-bench and mini-swe-agent 1",
        is_row=chat_rows.is_row,
        read=chat_rows.read,
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
