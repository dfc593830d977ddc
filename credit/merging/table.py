"""All merges. Adding one is a file with the verbs of `method.py` and a row here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import InstanceOf, model_validator

from graphcredit.credit.merging.embedding.merge import (
    EmbeddingMerge,
    KeepVectors,
    check_embedder,
    open_embedder,
)
from graphcredit.credit.merging.exact import ExactMerge
from graphcredit.credit.merging.method import MergeMethod
from graphcredit.credit.merging.rules import rules_of
from graphcredit.credit.options import MergeOptions
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.provenance.configuration import MERGE_VERSION_KEY, MERGE_VERSIONS
from graphcredit.store.state_rules import STATE_RULES_KEY, StateRules

GUARD_COLUMN = "admissible_actions"


class MergeSettings(MergeOptions):
    """How texts become states."""

    state_rules: InstanceOf[StateRules] = StateRules()
    """What the user says of it. `assign_credit` takes that from the `states.toml` of its store."""

    @model_validator(mode="after")
    def _exists(self) -> Self:
        """Refuse a merge or a rule that does not exist."""
        merge_named(self.merge)
        rules_of(self.normalise, self.substitute)
        return self

    @property
    def goes_on(self) -> bool:
        """Whether texts may become one state that the rules leave apart."""
        return merge_named(self.merge).goes_on

    @property
    def is_exact(self) -> bool:
        """Whether each distinct text is a state of its own."""
        return not (self.goes_on or self.normalise or self.substitute or self.state_rules)

    @property
    def columns(self) -> tuple[str, ...]:
        """Step columns that are needed besides those of every credit run."""
        return () if self.is_exact or not self.guard else (GUARD_COLUMN,)

    def as_json(self) -> dict[str, Any]:
        """Return what the states depend on, for the metadata of the columns made from them."""
        described: dict[str, Any] = {"merge": self.merge, STATE_RULES_KEY: self.state_rules.digest}
        row = merge_named(self.merge)
        described |= {name: getattr(self, name) for name in row.options}
        if row.version > 1:
            described[MERGE_VERSION_KEY] = row.version
        if self.is_exact:
            return described
        rules = {"rules": list(self.normalise), "substitutions": list(self.substitute)}
        return described | rules | {"guard": self.guard}


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """One row of the table."""

    name: str
    """As `MergeSettings.merge` has it."""
    open: Callable[[MergeSettings, KeepVectors | None], MergeMethod]
    """Returns the method, from its options and what keeps the vectors of models."""
    options: tuple[str, ...] = ()
    """Fields of `MergeSettings` that this merge alone reads."""
    version: int = 1
    """Goes up where the merge comes to make other states: credit and names of an earlier version
    are of another graph."""
    is_python: bool = False
    """Whether most of its time is in Python, so that several processes are faster than one."""
    goes_on: bool = True
    """Whether it may unite texts that the rules leave apart."""
    check: Callable[[MergeSettings], None] = lambda settings: None
    """Raises an error where something it needs is not on this machine."""


def _open_segments(settings: MergeSettings, keep: KeepVectors | None) -> MergeMethod:
    from graphcredit.credit.merging.segments.merge import SegmentMerge  # with many expressions

    del settings, keep
    return SegmentMerge()


MERGES: tuple[Merge, ...] = (
    Merge(name="exact", open=lambda settings, keep: ExactMerge(), goes_on=False),
    Merge(name="segments", open=_open_segments, version=MERGE_VERSIONS["segments"], is_python=True),
    Merge(
        name="embedding",
        options=("threshold", "embedder"),
        open=lambda settings, keep: EmbeddingMerge(
            embedder=open_embedder(settings.embedder, keep), threshold=settings.threshold
        ),
        check=lambda settings: check_embedder(settings.embedder),
    ),
)


def merge_named(name: str) -> Merge:
    """Return a row of the table, or of an installed package.

    Raises:
        OptionError: There is none of that name.
    """
    rows = {row.name: row for row in MERGES}
    rows |= installed("graphcredit.merges", Merge, rows)
    if name not in rows:
        raise OptionError(must_be_one_of("--merge", rows, name))
    return rows[name]
