"""The rules that are about files, declared as data: adding a rule is adding a row.

The code that reads a file finds such a rule broken, and names it; `row_rules.py` has the others.
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
            holds="a .parquet file must be whole, readable Parquet of a known schema version",
            remedy=f"write it again from its source; {_MOVE}",
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
            "left_over_temporary",
            "no temporary file is left over",
            "if nothing is writing to the store, its writer was killed and it can be deleted; "
            "`--quarantine` first finishes what a killed `--quarantine` began",
        ),
        _notice(
            "stale_credit",
            "credit is made of the step shards that its iteration has now",
            "run `graphcredit credit` with that estimator again",
        ),
        _notice(
            "mixed_credit",
            "all credit shards of an iteration are made with one configuration",
            "run `graphcredit credit` with that estimator again",
        ),
        _notice(
            "unknown_file",
            "files are those of the layout",
            "nothing needs doing: no reader looks at it",
        ),
    )
}
