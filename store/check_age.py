"""Is the credit of an iteration made of the steps that are there, and in one way?"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphcredit.store.check_columns import violation
from graphcredit.store.files import TableFile
from graphcredit.store.schema import CONFIGURATION_KEY
from graphcredit.store.shards import fingerprint, open_parquet
from graphcredit.store.violations import Violation


def check_age(steps: Sequence[TableFile], credit: Sequence[TableFile]) -> Iterable[Violation]:
    """Yield notices on credit that is older than its steps, or that a killed run left mixed.

    Args:
        steps: The readable step shards of one iteration.
        credit: Its readable credit shards, with a sound configuration.
    """
    present = fingerprint(file.path for file in steps)
    configurations = {_name(file): _configuration(file) for file in credit}
    yield from _lacking(steps, configurations, present)
    first: dict[str, Any] = {}
    for file in credit:
        configuration = configurations[_name(file)]
        stale = [
            name for name, made_by in configuration.items() if _mark(made_by, present) != present
        ]
        if stale:
            yield violation("stale_credit", file, f"older credit by {', '.join(stale)}")
        mixed = [
            n for n, made_by in configuration.items() if first.setdefault(n, made_by) != made_by
        ]
        if mixed:
            yield violation("mixed_credit", file, f"another configuration of {', '.join(mixed)}")


def _lacking(
    steps: Sequence[TableFile], configurations: Mapping[str, dict[str, Any]], present: str
) -> Iterable[Violation]:
    """Yield which step shards have no credit of an estimator that credited the others.

    Steps that came later are told of by the age of that credit.
    """
    estimators = {
        name
        for configuration in configurations.values()
        for name, made_by in configuration.items()
        if _mark(made_by, "") == present
    }
    for file in steps:
        if lacking := sorted(estimators - configurations.get(_name(file), {}).keys()):
            yield violation("mixed_credit", file, f"no credit by {', '.join(lacking)}")


def _mark(made_by: Any, otherwise: str) -> str:
    """Return the fingerprint that credit was made with; foreign credit may not say."""
    return made_by.get("steps", otherwise) if isinstance(made_by, dict) else otherwise


def _configuration(file: TableFile) -> dict[str, Any]:
    with open_parquet(file.path) as parquet:
        text = (parquet.schema_arrow.metadata or {}).get(CONFIGURATION_KEY, b"{}")
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _name(file: TableFile) -> str:
    return f"{file.path.parent.name}/{file.path.name}"
