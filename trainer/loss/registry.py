"""All policy objectives. Adding one is a file in `objectives/` and a row here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from graphcredit.store.errors import OptionError
from graphcredit.store.options import options_from_text
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs
from graphcredit.trainer.loss.objectives.cispo import Cispo
from graphcredit.trainer.loss.objectives.gspo import Gspo
from graphcredit.trainer.loss.objectives.ppo import Ppo
from graphcredit.trainer.loss.objectives.reinforce import Reinforce
from graphcredit.trainer.loss.objectives.sft import Sft


class Objective(Protocol):
    """Options of an objective, and its pure function from tokens to their losses."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each of the [R] scored tokens."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectiveRow:
    """One row of the table."""

    name: str
    """Name for `--objective`."""
    options: type[Objective]
    """Dataclass of its options; its docstring is the specification."""
    uses_old: bool
    """Whether its loss takes a ratio to `old`; only then does an `old` of the sampler's allow for
    steps of another policy."""
    paper: str
    """Where it comes from."""


OBJECTIVES: tuple[ObjectiveRow, ...] = (
    ObjectiveRow(
        name="ppo", options=Ppo, uses_old=True, paper="GiGPO, Eq. 9; arXiv 1707.06347, 1912.09729"
    ),
    ObjectiveRow(name="gspo", options=Gspo, uses_old=True, paper="arXiv 2507.18071, Eq. 5-7, 13"),
    ObjectiveRow(name="cispo", options=Cispo, uses_old=True, paper="arXiv 2506.13585, Eq. 4-5"),
    ObjectiveRow(name="reinforce", options=Reinforce, uses_old=False, paper="Williams 1992"),
    ObjectiveRow(name="sft", options=Sft, uses_old=False, paper="arXiv 2304.06767, 1910.00177"),
)

_BY_NAME = {row.name: row for row in OBJECTIVES}


def objective_named(name: str) -> ObjectiveRow:
    """Return the row of an objective.

    Raises:
        OptionError: No objective has that name; the message lists the names.
    """
    if name not in _BY_NAME:
        raise OptionError(f"no objective is called {name!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def configure_objective(name: str, options: Mapping[str, Any]) -> Objective:
    """Return an objective with its options.

    Raises:
        OptionError: The name, an option or a value is not right.
    """
    row = objective_named(name)
    texts = {option: str(value) for option, value in options.items()}
    return options_from_text(row.options, texts, owner=row.name)
