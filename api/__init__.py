"""Step-level credit for the trajectories of LLM agents: the public functions and types.

    import graphcredit

    graphcredit.import_log("traces.jsonl", "store")
    graphcredit.assign("store", estimators="reach")
    graphcredit.scan("store").select("state", "action", "reach_advantage").collect()

Where a store is wanted, its path will do. Each name is imported when it is first used, so that
`import graphcredit` costs nothing. `graphcredit.estimators` has the options of the estimators,
`graphcredit.integrations` the adapters for training frameworks, `graphcredit.plot` charts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.asking import evidence, why
    from graphcredit.collector.importers.options import ImportOptions
    from graphcredit.collector.importers.run import import_log
    from graphcredit.collector.recording.recorder import StepRecorder
    from graphcredit.collector.states.restate import restate
    from graphcredit.collector.states.tracker import ToolStates
    from graphcredit.credit.audit.run import audit
    from graphcredit.credit.audit.thresholds import AuditThresholds
    from graphcredit.credit.graph.export import to_igraph, to_networkx
    from graphcredit.credit.merging.table import MergeSettings
    from graphcredit.crediting import assign, compute
    from graphcredit.recording import record
    from graphcredit.scanning import scan
    from graphcredit.showing import show
    from graphcredit.store.layout import Store, create_store, open_store
    from graphcredit.store.parquet.export import export_store as export

    __version__: str

__all__ = [
    "AuditThresholds",
    "ImportOptions",
    "MergeSettings",
    "StepRecorder",
    "Store",
    "ToolStates",
    "__version__",
    "assign",
    "audit",
    "compute",
    "create_store",
    "evidence",
    "export",
    "import_log",
    "open_store",
    "record",
    "restate",
    "scan",
    "show",
    "to_igraph",
    "to_networkx",
    "why",
]

_HOMES = {
    "AuditThresholds": ("credit.audit.thresholds", "AuditThresholds"),
    "ImportOptions": ("collector.importers.options", "ImportOptions"),
    "MergeSettings": ("credit.merging.table", "MergeSettings"),
    "StepRecorder": ("collector.recording.recorder", "StepRecorder"),
    "Store": ("store.layout", "Store"),
    "ToolStates": ("collector.states.tracker", "ToolStates"),
    "assign": ("crediting", "assign"),
    "audit": ("credit.audit.run", "audit"),
    "compute": ("crediting", "compute"),
    "create_store": ("store.layout", "create_store"),
    "evidence": ("asking", "evidence"),
    "export": ("store.parquet.export", "export_store"),
    "import_log": ("collector.importers.run", "import_log"),
    "open_store": ("store.layout", "open_store"),
    "record": ("recording", "record"),
    "restate": ("collector.states.restate", "restate"),
    "scan": ("scanning", "scan"),
    "show": ("showing", "show"),
    "to_igraph": ("credit.graph.export", "to_igraph"),
    "to_networkx": ("credit.graph.export", "to_networkx"),
    "why": ("asking", "why"),
}
"""Name to the module that has it, and its name there."""

_MODULES = ("estimators", "integrations", "plot")


if not TYPE_CHECKING:  # so that a type checker reports a name that is not there

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("graphcredit")
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOMES[name]
        return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
