"""Relations in SQL over the tables of a run and iteration, with the rules that their rows keep."""

from collections.abc import Iterable
from dataclasses import dataclass

from graphcredit.store.checks.file_rules import REWRITE, RowRule, Severity
from graphcredit.store.schema import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRelation:
    """A relation over which row rules are checked."""

    name: str
    needs: frozenset[str]
    """Kinds of files that it reads; it is skipped if there is no file of one of them."""
    sql: str
    """SQL over `<kind>_table` of the needed kinds, and over earlier relations."""
    rules: tuple[RowRule, ...]
    is_stored: bool
    """Whether to store it as a table, because it is read several times."""


def relation(
    name: str, needs: str, sql: str, *rules: RowRule, is_stored: bool = False
) -> RowRelation:
    """Return a relation; `needs` has the kinds of files with spaces between them."""
    kinds = frozenset(needs.split())
    return RowRelation(name=name, needs=kinds, sql=sql, rules=rules, is_stored=is_stored)


def rule(name: str, holds: str, condition: str, found: str, remedy: str = REWRITE) -> RowRule:
    """Return a rule whose violation is an error."""
    return RowRule(name=name, holds=holds, condition=condition, found=found, remedy=remedy)


def notice(name: str, holds: str, condition: str, found: str, remedy: str) -> RowRule:
    """Return a rule whose violation is an oddity."""
    return RowRule(
        name=name,
        holds=holds,
        condition=condition,
        found=found,
        remedy=remedy,
        severity=Severity.NOTICE,
    )


def not_null(columns: Iterable[Column], remedy: str = REWRITE) -> Iterable[RowRule]:
    """Yield a rule for each column that may not be null."""
    for column in columns:
        if not column.nullable:
            name = column.name
            holds, condition = f"{name} must not be null", f'"{name}" IS NOT NULL'
            yield rule("not_null", holds, condition, "'null'", remedy)


def no_null_elements(column: str) -> RowRule:
    """Return the rule that the lists of a column hold no null."""
    return rule(
        "no_null_elements",
        f"{column} must hold no null",
        f"list_count({column}) = len({column})",
        f"(len({column}) - list_count({column}))::VARCHAR || ' null elements'",
    )
