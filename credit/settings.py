"""What a credit run computes, and how; written into the metadata of all that it makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphcredit.credit.merging import MergeSettings
from graphcredit.credit.plan import BATCH_ROWS
from graphcredit.credit.table import Assigner, estimator_named
from graphcredit.store.er_graph import ErGraph
from graphcredit.store.errors import OptionError
from graphcredit.store.options import check_options, options_as_json


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditSettings:
    """What to compute, and how."""

    estimators: Mapping[str, Assigner]
    """Name to options, as `table.configure` returns them."""
    merge: MergeSettings = field(default_factory=MergeSettings)
    """Which texts are one state."""
    invalid_action_penalty: float = 0.0
    """Taken off the reward of every invalid step before anything else."""
    graph_window: int = 0
    """Distances are found on the transitions of this and the last so many iterations, of the same
    tasks; 0 is the papers'."""
    batch_rows: int = BATCH_ROWS
    """Rows that are processed together: bounds the memory, changes no number."""

    def reads(self, column: str) -> bool:
        """Return whether an estimator declares a step column beyond `trajectories.COLUMNS`."""
        return any(column in estimator_named(name).reads for name in self.estimators)

    def check(self) -> None:
        """Raise OptionError where a setting is out of its range."""
        if not self.estimators:
            raise OptionError("name at least one estimator")
        self.merge.check()
        for name, options in self.estimators.items():
            check_options(options, owner=estimator_named(name).name)
        if self.graph_window < 0:
            raise OptionError(f"graph_window must be 0 or more: got {self.graph_window}")
        if not np.isfinite(self.invalid_action_penalty) or self.invalid_action_penalty < 0:
            raise OptionError(
                f"invalid_action_penalty must be 0 or more: got {self.invalid_action_penalty}"
            )

    def graph_as_json(self) -> dict[str, Any]:
        """Return what the states of an iteration and the distances between them depend on."""
        return {**self.merge.as_json(), "graph_window": self.graph_window}

    def as_json(self, mark: str, er_graph: ErGraph | None) -> dict[str, Any]:
        """Return, per estimator, all that its columns depend on.

        Args:
            mark: Fingerprint of the step shards.
            er_graph: The entities, where an estimator asks for them.
        """
        configuration: dict[str, Any] = {
            name: {
                "options": options_as_json(options),
                **self.graph_as_json(),
                "invalid_action_penalty": self.invalid_action_penalty,
                "steps": mark,
            }
            for name, options in self.estimators.items()
        }
        if er_graph is not None and "sapo" in configuration:
            configuration["sapo"]["er_graph"] = er_graph.digest()
        return configuration
