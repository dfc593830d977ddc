"""From step shards to step-level credit: groups, states, graphs, estimators, the stage.

`compute` credits a table in memory, `assign` a store; `to_networkx` and `to_igraph` give the state
graph of a task. Each is imported when it is first used, so that `import graphcredit.credit` costs
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.credit.graph.export import to_igraph, to_networkx
    from graphcredit.credit.iteration.in_memory import compute
    from graphcredit.credit.stage import assign_credit as assign

__all__ = ["assign", "compute", "to_igraph", "to_networkx"]

_HOMES = {
    "assign": ("stage", "assign_credit"),
    "compute": ("iteration.in_memory", "compute"),
    "to_igraph": ("graph.export", "to_igraph"),
    "to_networkx": ("graph.export", "to_networkx"),
}
"""Name to the module that has it, and its name there."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
