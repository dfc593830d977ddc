"""The options of a credit run, in groups.

A field is written once. Its type, range, default and docstring are also those of the flag of
`graphcredit credit` and of the key in the loop's `[credit]` table.
"""

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from graphcredit.store.layout import LOGGED_STATE
from graphcredit.store.options import Options, Texts, Weight
from graphcredit.store.schema import LARGEST_NUMBER


class MergeOptions(Options):
    """Which texts are one state. The defaults make one state of each distinct text."""

    owner: ClassVar[str] = "credit"

    merge: str = "exact"
    """Which texts are one state: exact (equal after the rules), segments (equal but for what comes
    and goes) or embedding (similar enough)."""
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Least cosine at which embedding unites two states (GraphGPO's; RewardFlow uses 0.9)."""
    embedder: str = "ngram"
    """ngram, or the name or path of a sentence-transformers model on this machine."""
    normalise: Texts = ()
    """Rules that texts go through first, in order: whitespace, casefold, …"""
    substitute: Texts = ()
    """Substitutions after the rules, 'REGEX=>TEXT' each."""
    guard: bool = True
    """Never unite states whose logged admissible actions differ."""


class GraphOptions(Options):
    """What else the graph and the rewards on it depend on."""

    owner: ClassVar[str] = "credit"

    state: str = LOGGED_STATE
    """Which states to take: logged, or those that `graphcredit states --set` wrote beside them, by
    their rule, such as effects."""
    invalid_action_penalty: Annotated[Weight, Field(le=LARGEST_NUMBER)] = 0.0
    """Taken off the reward of every invalid step first."""


RECOMMENDED = "reach"
"""The estimator to begin with; docs/research/credit-truth.md says why."""


class EstimatorOptions(Options):
    """What is computed."""

    owner: ClassVar[str] = "credit"

    estimators: Texts = (RECOMMENDED,)
    """Names of estimators, also with commas: grpo, rloo, gigpo, …"""
    set: Texts = ()
    """Options of estimators, ESTIMATOR.OPTION=VALUE each, and of the merge: merge.normalise (a
    rule), merge.substitute ('REGEX=>TEXT'), merge.guard."""

    @field_validator("estimators")
    @classmethod
    def _apart(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Split names with commas between them."""
        return tuple(name.strip() for text in names for name in text.split(","))


class CreditOptions(GraphOptions, MergeOptions, EstimatorOptions):
    """All options of a credit run."""
