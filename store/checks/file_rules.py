"""The rules that are about files, declared as data: adding a rule is adding a row.

The code that reads a file finds such a rule broken, and names it; `row_rules.py` has those about
rows.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a broken rule means."""

    ERROR = "error"
    NOTICE = "notice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Something that must hold of a file."""

    name: str
    holds: str
    """What must hold, as the start of a sentence."""
    remedy: str
    """What to do when it does not."""
    severity: Severity = Severity.ERROR
    is_movable: bool = True
    """Whether a file that breaks it may be put aside; one that others can read may not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRule(Rule):
    """Something that must hold of every row."""

    condition: str
    """SQL, true of a row that keeps the rule."""
    found: str
    """SQL for what a row that breaks it has instead."""


_MOVE = "`graphcredit check STORE --quarantine` moves it aside"
REWRITE = f"correct the program that wrote it; {_MOVE}"
RECREDIT = f"run `graphcredit credit` again; {_MOVE}"


def _notice(name: str, holds: str, remedy: str) -> Rule:
    return Rule(name=name, holds=holds, remedy=remedy, severity=Severity.NOTICE)


FILE_RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            name="path_name",
            holds="a shard must lie in run_id=<name>/iteration=<number>",
            remedy=f"move it to where readers look for it; {_MOVE}",
        ),
        Rule(
            name="readable",
            holds="a .parquet file must be whole, readable Parquet",
            remedy=f"write it again from its source; {_MOVE}",
        ),
        Rule(
            name="schema_version",
            holds="a file must have a schema version that this program knows",
            remedy="install a newer graphcredit; `--quarantine` leaves it where it is",
            is_movable=False,
        ),
        Rule(
            name="accessible",
            holds="a file of the store must be there and yours to read",
            remedy="have the system give it to you; `--quarantine` moves nothing until then",
            is_movable=False,
        ),
        Rule(
            name="one_name",
            holds="what is in the store must have one name there: under two it counts twice",
            remedy="remove one of the names; `--quarantine` leaves both alone until then",
            is_movable=False,
        ),
        Rule(
            name="columns",
            holds="every required column must be there once, with values that fit its type",
            remedy=REWRITE,
        ),
        Rule(
            name="credit_pair",
            holds="a credit shard must have the name and place of a step shard",
            remedy=f"bring the step shard back; {_MOVE}",
        ),
        Rule(
            name="credit_rows",
            holds="a credit shard must have the rows of its step shard, in the same order",
            remedy=RECREDIT,
        ),
        Rule(
            name="credit_configuration",
            holds="the configuration in a credit shard's metadata must be a JSON object",
            remedy=RECREDIT,
        ),
        Rule(
            name="mixed_credit",
            holds="all credit shards of an iteration must be made by one run of each estimator",
            remedy="run `graphcredit credit` with that estimator again; `graphcredit check STORE "
            "--quarantine` moves all of them aside",
        ),
        Rule(
            name="graph_pair",
            holds="edges.parquet must have its nodes.parquet beside it",
            remedy=RECREDIT,
        ),
        Rule(
            name="relation_pair",
            holds="relations.parquet must have its entities.parquet beside it",
            remedy=REWRITE,
        ),
        _notice(
            "iteration_padding",
            "iteration folders are zero-padded to 6 digits",
            "nothing needs doing: it is read all the same",
        ),
        _notice(
            "shard_name",
            "shard names are made of letters, digits, '.', '_' and '-'",
            "nothing needs doing: it is read all the same",
        ),
        _notice(
            "unknown_column",
            "columns are those of the schema",
            "nothing needs doing: it is ignored; the column `extra` is for data of your own",
        ),
        _notice(
            "left_over_spool",
            "no spool is left over",
            "if its worker is dead, `graphcredit check STORE --recover` makes a shard of it",
        ),
        _notice(
            "live_spool",
            "no process has a worker's lock",
            "nothing needs doing while the worker records; if it has died, and that process is "
            "only a child of it, end that, then run `graphcredit check STORE --recover`",
        ),
        _notice(
            "left_over_temporary",
            "no temporary file is left over",
            "if nothing is writing to the store, its writer was killed: the next removes it, and "
            "you may; `--quarantine` first finishes what a killed `--quarantine` began",
        ),
        _notice(
            "link",
            "files and folders are reached by one name, and by no link",
            "nothing needs doing: shards and folders of the layout are read through it; "
            "`--quarantine` leaves alone what it leads to, until it is removed",
        ),
        _notice(
            "stale_credit",
            "credit is made of the step shards and entities that there are now, by the formulas of "
            "this program",
            "run `graphcredit credit` with that estimator again",
        ),
        _notice(
            "old_history",
            "history is counted by the formula of spo3 that this program has",
            "nobody reads it; `graphcredit credit --estimator spo3` counts it anew",
        ),
        _notice(
            "unknown_file",
            "files are those of the layout",
            "nothing needs doing: no reader looks at it",
        ),
    )
}
