"""The options of an import."""

from collections.abc import Mapping
from typing import ClassVar

from graphcredit.store.errors import OptionError
from graphcredit.store.options import AtLeastOne, Count, Options, PathOption, Percent

_FULL_NAMES = {"task": "task_id", "trajectory": "trajectory_id", "step": "step_index"}


class ImportOptions(Options):
    """What must be decided to make steps of a foreign log."""

    owner: ClassVar[str] = "import"

    format: str | None = None
    """Name of the format; by default it is recognised for each file. docs/formats.md lists them."""
    columns: str = ""
    """What the log calls the parts that a reader looks for, such as
    'state=obs.text,action=move,task=level', or a part of the path of its file: 'task=path:2'.
    For steps: task, trajectory, step, state, next_state,
    action, reward, done, truncated, success."""
    state: str = "last"
    """What identifies a state. last: what the agent last saw. results: the set of results that it
    has seen. calls: the set of its successful calls. effects: those that changed something, as the
    log shows it, or of tools that effects:TOOL,TOOL names. facts: the fields of all results.
    worktree: the files that it read and wrote, and its tests.
    last-tool: the last tool. With +, such as effects+last-tool: all of them.
    window:K: what it saw in the last K turns, and its actions between. regex:PATTERN or
    json:PATH: a part of what it last saw. column:NAME: a field of a message."""
    decimals: Count | None = None
    """Round the numbers in states to so many decimals."""
    success: str = "auto"
    """What counts as success: a threshold such as 'reward>=1', or a field such as info.success.
    auto: what the log itself says, else a reward of 1 where all are 1, 0 or -1; where others are,
    rewards say nothing of winning. returns: no reward does."""
    verdicts: PathOption | None = None
    """A file, or a folder of files, that say how rollouts ended: a report of SWE-bench
    (resolved_ids), or ids with verdicts or scores as JSON or CSV. Its ids are those of
    rollouts, sessions, instances or tasks, or names of files and folders. By default, the
    verdicts in files beside a log that has none."""
    group: str = "auto"
    """Which rollouts form a group: task, prompt, a field, or a part of the path of their file
    (path:2, path:-1, path:PATTERN); with +, such as suite+task_id, all of them. auto: the group or
    task that the log names, else the prompt."""
    reward: str = "end"
    """end: the log's reward at the last step. turns: the reward of each turn. Otherwise a sum of
    named rewards at the last step, such as 'correct+0.5*format-0.1*length'."""
    score: str = "auto"
    """How good the state after each turn is, by whoever judged it: a field of the message or of its
    results, or a list of the record with a number or null for each turn, such as info.turn_scores.
    auto: turn_scores, step_scores or state_scores, and what the format has."""
    agent: str | None = None
    """Of several agents of a log, take the steps of this one: what others say is what it sees. By
    default the steps of all."""
    run: str | None = None
    """The run to record; by default the run that the log names, else 'imported'."""
    iteration: Count | None = None
    """The iteration to record; by default the training step that the log names, else 0."""
    drop_equal: bool = False
    """Take equal records of several files for copies of one. By default these are rollouts in which
    the agent did the same, unless the records have an id or a time that no two rollouts have."""
    max_record: AtLeastOne = 128
    """Most MiB of one record after decompression; a longer one is a bad row. Reading a record takes
    several times as much memory."""
    max_unread: Percent = 50.0
    """Most % of a file's text that may become part of no step; a file with more is refused. The
    report names the fields."""
    try_: AtLeastOne | None = None
    """Show what the first N rollouts would become, and write nothing."""

    @property
    def names(self) -> Mapping[str, str]:
        """The name that a reader knows, to the field of the log.

        Raises:
            OptionError: `columns` is no list of names.
        """
        pairs = [pair.partition("=") for pair in self.columns.split(",") if pair.strip()]
        if not all(name.strip() and field.strip() for name, _, field in pairs):
            raise OptionError(
                "import.columns must be NAME=FIELD, with commas between several, such as "
                f"'state=obs,action=move': got {self.columns!r}"
            )
        names = {name.strip(): field.strip() for name, _, field in pairs}
        if len(names) < len(pairs):
            raise OptionError(f"import.columns must give each name one field: got {self.columns!r}")
        return {_FULL_NAMES.get(name, name): field for name, field in names.items()}

    @property
    def record_bytes(self) -> int:
        """Most bytes of one record."""
        return self.max_record << 20
