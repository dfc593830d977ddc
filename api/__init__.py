"""Step-level credit for the trajectories of LLM agents: the public functions and types.

    import graphcredit

    graphcredit.import_log("traces.jsonl", "store")
    graphcredit.credit("store")
    print(graphcredit.why("store"))
    graphcredit.scan("store").select("state", "action", "reach_advantage").collect()

Where a store is wanted, its path will do. Each name is imported when it is first used, so that
`import graphcredit` costs nothing. `graphcredit.estimators` has the options of the estimators,
`graphcredit.integrations` the adapters for training frameworks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.asking import audit, evidence, sql, train, why
    from graphcredit.collector.recording.recorder import StepRecorder
    from graphcredit.collector.states.restate import restate
    from graphcredit.collector.states.tracker import ToolStates
    from graphcredit.credit.assigning import credit
    from graphcredit.credit.merging.table import MergeSettings
    from graphcredit.crediting import compute
    from graphcredit.logs import import_log, record
    from graphcredit.loop.exporting import export
    from graphcredit.scanning import scan
    from graphcredit.showing import show
    from graphcredit.store.layout import Store, create_store, open_store

    __version__: str

__all__ = [
    "MergeSettings",
    "StepRecorder",
    "Store",
    "ToolStates",
    "__version__",
    "audit",
    "compute",
    "create_store",
    "credit",
    "evidence",
    "export",
    "import_log",
    "open_store",
    "record",
    "restate",
    "scan",
    "show",
    "sql",
    "train",
    "why",
]

_HOMES = {
    "asking": ("audit", "evidence", "sql", "train", "why"),
    "collector.recording.recorder": ("StepRecorder",),
    "collector.states.restate": ("restate",),
    "collector.states.tracker": ("ToolStates",),
    "credit.merging.table": ("MergeSettings",),
    "crediting": ("compute",),
    "logs": ("import_log", "record"),
    "loop.exporting": ("export",),
    "scanning": ("scan",),
    "showing": ("show",),
    "store.layout": ("Store", "create_store", "open_store"),
}
"""The module that has some names, to these."""

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

_MODULES = ("credit", "estimators", "integrations")
"""`credit` is called, too."""


if not TYPE_CHECKING:  # so that a type checker reports a name that is not there

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("graphcredit")
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
