"""The rules about files, declared as data: to add a rule, add a row.

The code that reads files finds the violations and names the rule. `step_relations.py` and
`table_relations.py` have the rules about rows.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a broken rule is."""

    ERROR = "error"
    NOTICE = "notice"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRule:
    """A rule about files."""

    name: str
    holds: str
    """The rule as a sentence, for the message."""
    remedy: str
    """The advice if the rule is broken."""
    severity: Severity = Severity.ERROR
    is_movable: bool = True
    """Whether taking a file out that breaks it mends the store."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRule(FileRule):
    """A rule about rows."""

    condition: str
    """SQL condition: true for a row that keeps the rule."""
    found: str
    """SQL expression that describes a row that breaks the rule."""


REWRITE = "correct the program that wrote it"
RECREDIT = "run `graphcredit credit` again"


def _notice(name: str, holds: str, remedy: str) -> FileRule:
    return FileRule(name=name, holds=holds, remedy=remedy, severity=Severity.NOTICE)


FILE_RULES: dict[str, FileRule] = {
    rule.name: rule
    for rule in (
        FileRule(
            name="path_name",
            holds="a shard must lie in run_id=<name>/iteration=<number>",
            remedy="move it to where readers look for it",
        ),
        FileRule(
            name="readable",
            holds="a .parquet file must be whole, readable Parquet",
            remedy="write it again from its source",
        ),
        FileRule(
            name="schema_version",
            holds="a file must have a schema version that this program knows",
            remedy="install a newer graphcredit",
            is_movable=False,
        ),
        FileRule(
            name="accessible",
            holds="a file of the store must exist and be readable",
            remedy="make it readable",
            is_movable=False,
        ),
        FileRule(
            name="one_name",
            holds="a file or folder must have one name in the store: with two it counts twice",
            remedy="remove one of the names",
            is_movable=False,
        ),
        FileRule(
            name="columns",
            holds="every required column must be there once, with values that fit its type",
            remedy=REWRITE,
        ),
        FileRule(
            name="credit_pair",
            holds="a credit shard must have the name and place of a step shard",
            remedy="bring the step shard back",
        ),
        FileRule(
            name="credit_rows",
            holds="a credit shard must have the rows of its step shard, in the same order",
            remedy=RECREDIT,
        ),
        FileRule(
            name="credit_configuration",
            holds="the configuration in a credit shard's metadata must be a JSON object",
            remedy=RECREDIT,
        ),
        FileRule(
            name="mixed_credit",
            holds="all credit shards of an iteration must be made by one run of each estimator",
            remedy="run `graphcredit credit` with that estimator again",
            is_movable=False,
        ),
        FileRule(
            name="graph_pair",
            holds="edges.parquet must have its nodes.parquet beside it",
            remedy=RECREDIT,
        ),
        FileRule(
            name="relation_pair",
            holds="relations.parquet must have its entities.parquet beside it",
            remedy=REWRITE,
        ),
        FileRule(
            name="state_rules",
            holds="states.toml must follow the schema of docs/store.md",
            remedy="correct it: until then `graphcredit credit` refuses to run",
            is_movable=False,
        ),
        _notice(
            "unknown_column",
            "columns are those of the schema",
            "nothing needs doing: it is ignored; the column `extra` is for data of your own",
        ),
        _notice(
            "left_over_spool",
            "no spool is left over",
            "nothing needs doing while its worker records; if that is dead, `graphcredit check "
            "STORE --recover` makes a shard of it",
        ),
        _notice(
            "left_over_temporary",
            "no temporary file is left over",
            "if nothing is writing to the store, its writer was killed: the next writer removes "
            "it, and so may you",
        ),
        _notice(
            "link",
            "files and folders have one name, and no links",
            "nothing needs doing: shards and folders of the layout are read through it",
        ),
        _notice(
            "stale_credit",
            "credit is made of the current step shards, entities and rules of states, by the "
            "formulas of this program",
            "run `graphcredit credit` with that estimator again",
        ),
        _notice(
            "old_history",
            "history is counted by this program's version of the spo3 formula",
            "it is not read; `graphcredit credit --estimator spo3` counts it again",
        ),
        _notice(
            "unknown_file",
            "files are those of the layout",
            "nothing needs doing: no reader looks at it",
        ),
    )
}
