"""What a credit run computes, and how; written into the metadata of all that it makes."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from graphcredit.credit.estimators.table import Estimator, configure, estimator_named
from graphcredit.credit.inputs.run_history.counts import StateScores
from graphcredit.credit.inputs.table import INPUTS, Input, Source
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.options import CreditOptions, GraphOptions, MergeOptions
from graphcredit.credit.steps.batches import BATCH_ROWS
from graphcredit.credit.steps.complete import COLUMNS
from graphcredit.store.credit_marks.described import BALANCED_KEY, INPUTS_KEY
from graphcredit.store.credit_marks.explained import EXPLAINED_KEY
from graphcredit.store.errors import OptionError
from graphcredit.store.options import AtLeastOne, check_options, options_as_json


class CreditSettings(GraphOptions):
    """What to compute, and how."""

    estimators: Mapping[str, Any]
    """Name to options, as `table.configure` returns them."""
    merge: MergeSettings = Field(default_factory=MergeSettings)
    """Which texts are one state."""
    batch_rows: AtLeastOne = BATCH_ROWS
    """Rows that are processed together: bounds the memory, changes no number."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        """Refuse what the estimators do not take."""
        if not self.estimators:
            raise OptionError("name at least one estimator")
        for name, options in self.estimators.items():
            check_options(options, owner=estimator_named(name).name)
        return self

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the estimators need."""
        needed = {name for row in self.rows for name in row.inputs}
        return tuple(row for row in INPUTS if row.name in needed)

    @property
    def reads(self) -> tuple[str, ...]:
        """The step columns that estimators read themselves."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.reads))

    @property
    def columns(self) -> tuple[str, ...]:
        """All step columns that credit is made of."""
        of_inputs = [column for row in self.inputs for column in row.reads]
        return tuple(dict.fromkeys((*COLUMNS, *of_inputs, *self.reads, *self.merge.columns)))

    @property
    def rows(self) -> list[Estimator]:
        """The estimators' rows of the table."""
        return [estimator_named(name) for name in self.estimators]

    @property
    def needs_entities(self) -> bool:
        """Whether an estimator needs the entities of `er_graph/`."""
        return bool(self.needing("er_graph"))

    def needing(self, source: Source) -> list[str]:
        """Return the estimators with an input that is built from a source."""
        built = {row.name for row in self.inputs if row.source == source}
        return [row.name for row in self.rows if not built.isdisjoint(row.inputs)]

    @property
    def state_scores(self) -> StateScores | None:
        """The options of the estimator that scores states by the run's history, if one does."""
        scores = (
            options for options in self.estimators.values() if isinstance(options, StateScores)
        )
        return next(scores, None)

    def graph_as_json(self) -> dict[str, Any]:
        """Return what the states of an iteration and the distances between them depend on."""
        return {**self.merge.as_json(), "graph_window": self.graph_window}

    def as_json(
        self, mark: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return, per estimator, all that its columns depend on.

        Args:
            mark: From an estimator and its settings to the marks of what it reads; see
                `store/credit_marks/sources.py`.
        """
        configuration: dict[str, Any] = {}
        for name, options in self.estimators.items():
            row = estimator_named(name)
            way = {
                "options": options_as_json(options),
                INPUTS_KEY: list(row.inputs),
                BALANCED_KEY: dict(row.balanced),
                **({EXPLAINED_KEY: row.explains(options).model_dump()} if row.explains else {}),
                **self.graph_as_json(),
                "invalid_action_penalty": self.invalid_action_penalty,
            }
            configuration[name] = {**way, **mark(name, way)}
        return configuration


def settings_of(options: CreditOptions) -> CreditSettings:
    """Return the settings that the options of a command or a loop stand for.

    Raises:
        OptionError: An estimator, a merge or an option of theirs is not right.
    """
    values = dict(options)
    merge = {name: values[name] for name in MergeOptions.model_fields}
    graph = {name: values[name] for name in GraphOptions.model_fields}
    estimators = configure(options.estimators, options.set)
    return CreditSettings(estimators=estimators, merge=MergeSettings(**merge), **graph)
