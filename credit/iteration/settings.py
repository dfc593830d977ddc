"""Settings of a credit run; they are written into the metadata of all that it makes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from graphcredit.credit.estimators.table import (
    Estimator,
    EstimatorChoice,
    chosen,
    configure,
    estimator_named,
)
from graphcredit.credit.inputs.table import Input
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.options import CreditOptions, GraphOptions, MergeOptions
from graphcredit.credit.steps.batches import BATCH_ROWS
from graphcredit.credit.steps.complete import COLUMNS
from graphcredit.store.errors import OptionError
from graphcredit.store.layout import LOGGED_STATE, states_name
from graphcredit.store.options import AtLeastOne, check_options, options_as_json, options_from_text
from graphcredit.store.provenance.configuration import (
    BALANCED_KEY,
    SOURCES_KEY,
    STATE_KEY,
    VERSION_KEY,
    CreditConfiguration,
)
from graphcredit.store.provenance.explained import EXPLAINED_KEY
from graphcredit.store.provenance.sources import STATES_SOURCE


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
        if names := ", ".join(self.needing("earlier")):
            if self.state != LOGGED_STATE:
                raise OptionError(
                    f"{names} counts the logged states of earlier iterations: credit.state must "
                    f"be {LOGGED_STATE}, got {self.state!r}"
                )
            if self.merge.goes_on:
                raise OptionError(
                    f"{names} counts states over iterations, by their texts: --merge must be "
                    f"exact, got {self.merge.merge}. Rules (merge.normalise, merge.substitute, "
                    "states.toml) may make texts equal"
                )
        return self

    @field_validator("state")
    @classmethod
    def _named(cls, state: str) -> str:
        return states_name(state)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the estimators need."""
        return tuple({row.name: row for of in self.rows for row in of.inputs}.values())

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

    def needing(self, source: str) -> list[str]:
        """Return the estimators with an input that is built of a source."""
        return [row.name for row in self.rows if any(source in each.sources for each in row.inputs)]

    def graph_as_json(self) -> dict[str, Any]:
        """Return how the graph is made, for the metadata of the columns made on it."""
        state = {} if self.state == LOGGED_STATE else {STATE_KEY: self.state}
        return {**self.merge.as_json(), **state}

    def as_json(
        self, mark: Callable[[CreditConfiguration], Mapping[str, str | None]]
    ) -> dict[str, CreditConfiguration]:
        """Return, per estimator, all that its columns depend on.

        Args:
            mark: From a configuration to the marks of its sources: `Sources.marks`.
        """
        return {row.name: self._configuration(row, mark) for row in self.rows}

    def _sources(self, row: Estimator) -> list[str]:
        of_inputs = {source for each in row.inputs for source in each.sources}
        return sorted(of_inputs | ({STATES_SOURCE} if self.state != LOGGED_STATE else set()))

    def _configuration(
        self, row: Estimator, mark: Callable[[CreditConfiguration], Mapping[str, str | None]]
    ) -> CreditConfiguration:
        options = self.estimators[row.name]
        made_by = {
            VERSION_KEY: row.version,
            "options": options_as_json(options),
            SOURCES_KEY: self._sources(row),
            BALANCED_KEY: dict(row.balanced),
            **({EXPLAINED_KEY: row.explains(options).model_dump()} if row.explains else {}),
            **self.graph_as_json(),
            "invalid_action_penalty": self.invalid_action_penalty,
        }
        # The rules of states are those that are used, which may be older than the store's.
        return {**mark(made_by), **made_by}


def settings_of(options: CreditOptions) -> CreditSettings:
    """Return the settings that the options of a command or a loop stand for.

    Raises:
        OptionError: An estimator, a merge or an option of theirs is not right.
    """
    of_merge = [each for each in options.set if each.startswith(_OF_MERGE)]
    of_estimators = [each for each in options.set if each not in of_merge]
    return CreditSettings(
        estimators=configure(options.estimators, of_estimators),
        merge=_merge_settings(options, of_merge),
        **{name: getattr(options, name) for name in GraphOptions.model_fields},
    )


def settings_by(
    estimators: EstimatorChoice, merge: str | MergeSettings = "exact", **options: Any
) -> CreditSettings:
    """Return the settings of estimators, a merge by its name or as settings, and other options.

    Raises:
        OptionError: An estimator, a merge or an option of theirs is not right.
    """
    name = merge if isinstance(merge, str) else merge.merge
    made = settings_of(CreditOptions(merge=name, **options))
    given = {} if isinstance(merge, str) else {"merge": merge}
    return made.changed(estimators=chosen(estimators), **given)


_OF_MERGE = "merge."


def _merge_settings(options: MergeOptions, settings: Sequence[str]) -> MergeSettings:
    """Return the settings of the merge.

    Args:
        options: All options.
        settings: `merge.OPTION=VALUE`; values of options that are lists are added to them.
    """
    merge = {name: getattr(options, name) for name in MergeOptions.model_fields}
    texts: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.removeprefix(_OF_MERGE).partition("=")
        if not equals:
            raise OptionError(f"a setting must read merge.OPTION=VALUE: got {setting!r}")
        if isinstance(merge.get(name), tuple):
            merge[name] = (*merge[name], value)
        else:
            texts[name] = value
    read = options_from_text(MergeOptions, texts, owner="merge")
    return MergeSettings(**merge | {name: getattr(read, name) for name in texts})
