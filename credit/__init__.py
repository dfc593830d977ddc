"""From step shards to step-level credit: groups, states, graphs, estimators, the stage.

`compute` credits a table in memory, `assign` a store. Both are imported when they are first used,
so that `import graphcredit.credit` costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.credit.iteration.in_memory import compute
    from graphcredit.credit.stage import assign_credit as assign

__all__ = ["assign", "compute"]


def __getattr__(name: str) -> Any:
    if name == "compute":
        from graphcredit.credit.iteration.in_memory import compute

        return compute
    if name == "assign":
        from graphcredit.credit.stage import assign_credit

        return assign_credit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
