"""All estimators. Adding one is a file in `estimators/` and a row here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

from graphcredit.credit.estimators import explained
from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.g2po import G2po
from graphcredit.credit.estimators.gigpo import Gigpo
from graphcredit.credit.estimators.graft import Graft
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.grpo import Grpo
from graphcredit.credit.estimators.hgpo import Hgpo
from graphcredit.credit.estimators.milegpo import MileGpo
from graphcredit.credit.estimators.mt_grpo import MtGrpo
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.estimators.rloo import Rloo
from graphcredit.credit.estimators.sapo import Sapo
from graphcredit.credit.estimators.spo3 import Spo3
from graphcredit.credit.estimators.turn_credit import TurnCredit
from graphcredit.credit.estimators.turn_rloo import TurnRloo
from graphcredit.credit.inputs.table import ANALOGIES, MENTIONS, PAST, Input
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.options import check_options, options_from_text
from graphcredit.store.provenance.configuration import VERSION_KEY, CreditConfiguration
from graphcredit.store.provenance.explained import Explanation
from graphcredit.store.schema import STEP_COLUMNS


class Assigner(Protocol):
    """Options of an estimator, and its pure function from steps to parts of an advantage."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return `{part: [num_steps] values}`, the parts that the table row names."""
        ...


Balance: TypeAlias = Literal["trajectories", "states", "group"]
"""`trajectories`: over those of a group, all steps of one having one value. `states`: over the
steps that start from one state. `group`: over all steps of a group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeValue:
    """A number of an estimator for each node of the graph."""

    column: str
    """Of `nodes.parquet`."""
    of: Callable[[Any, StepBatch], Floats]
    """Returns [num_nodes] the numbers, from the estimator's options."""
    options: tuple[str, ...]
    """Names of the options that it depends on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimator:
    """One row of the table."""

    name: str
    """Prefix of its columns."""
    options: type[Assigner]
    """Dataclass of its options; its docstring is the specification."""
    writes: tuple[str, ...]
    """Parts it defines: columns `<name>_<part>`."""
    balanced: Mapping[str, Balance] = field(default_factory=dict[str, Balance])
    """Those parts whose mean is 0, and over what: the audit checks it."""
    version: int = 1
    """Of its formula. It goes up where the formula comes to give other numbers: what an earlier one
    made is then recognised by its metadata, and made again."""
    inputs: tuple[Input, ...] = ()
    """What it needs besides the steps, rows of `inputs/table.py`."""
    reads: tuple[str, ...] = ()
    """Step columns that it reads itself, from `StepBatch.columns`."""
    where_missing: str = ""
    """What its credit is in groups that lack what an input is built of, for a notice."""
    where_partial: str = ""
    """The same of groups where only some steps lack it."""
    node_values: tuple[NodeValue, ...] = ()
    """The numbers that it gives each node."""
    explains: Callable[[Any], Explanation] | None = None
    """Returns how its credit explains itself, from the estimator's options."""
    paper: str
    """Where it comes from."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it writes."""
        return tuple(f"{self.name}_{part}" for part in self.writes)


_EPISODE = ("episode_advantage", "advantage")
_BOTH = ("step_advantage", "episode_advantage", "advantage")

# HGPO mixes several clusters, SAPO clips, and GRAFT credits a state left by one edge: their step
# parts need not balance.
_ALL_ALIKE: dict[str, Balance] = dict.fromkeys(_EPISODE, "trajectories")
_TRAJECTORIES: dict[str, Balance] = {"episode_advantage": "trajectories"}
_STATES: dict[str, Balance] = {"step_advantage": "states"}
_GROUP: dict[str, Balance] = {"step_advantage": "group"}

ESTIMATORS: tuple[Estimator, ...] = (
    Estimator(
        name="grpo",
        options=Grpo,
        explains=explained.whole_trajectory,
        writes=_EPISODE,
        balanced=_ALL_ALIKE,
        paper="GiGPO, Eq. 3",
    ),
    Estimator(
        name="rloo",
        options=Rloo,
        explains=explained.against_the_others,
        writes=_EPISODE,
        balanced=_ALL_ALIKE,
        paper="GiGPO, Eq. 10",
    ),
    Estimator(
        name="gigpo",
        options=Gigpo,
        explains=explained.gigpo,
        writes=_BOTH,
        balanced=_STATES | _TRAJECTORIES,
        paper="GiGPO, Eq. 5-8",
    ),
    Estimator(
        name="hgpo",
        options=Hgpo,
        explains=explained.hgpo,
        writes=("step_advantage", "advantage"),
        paper="3SPO's baseline, arXiv 2602.22817",
    ),
    Estimator(
        name="turn_credit",
        options=TurnCredit,
        explains=explained.turn_credit,
        writes=("step_reward", *_BOTH),
        balanced=_GROUP | _TRAJECTORIES,
        reads=("score",),
        where_missing="turn_credit is the return less the group's mean there",
        where_partial="turn_credit takes the scores of the others as unchanged there",
        paper="prime-rl PR 3282",
    ),
    Estimator(
        name="mt_grpo",
        options=MtGrpo,
        explains=explained.mt_grpo,
        writes=_BOTH,
        balanced=_TRAJECTORIES,
        paper="arXiv 2505.11821",
    ),
    Estimator(
        name="turn_rloo",
        options=TurnRloo,
        explains=explained.turn_rloo,
        writes=("advantage",),
        paper="ours, after verl RFC 7244",
    ),
    Estimator(
        name="rewardflow",
        options=RewardFlow,
        explains=explained.rewardflow,
        writes=("step_reward", *_BOTH),
        node_values=(
            NodeValue(column="rewardflow_value", of=RewardFlow.value, options=("gamma",)),
        ),
        balanced=_STATES | _TRAJECTORIES,
        paper="RewardFlow, Eq. 3-9",
    ),
    Estimator(
        name="graphgpo",
        options=GraphGpo,
        explains=explained.graphgpo,
        writes=("step_reward", *_BOTH),
        balanced=_STATES | _TRAJECTORIES,
        paper="GraphGPO, Eq. 3-8",
    ),
    Estimator(
        name="spo3",
        options=Spo3,
        explains=explained.spo3,
        writes=("step_reward", "step_advantage", "advantage"),
        version=2,
        inputs=(PAST,),
        balanced=_STATES,
        paper="3SPO, Eq. 1-4",
    ),
    Estimator(
        name="sapo",
        options=Sapo,
        explains=explained.sapo,
        writes=("step_reward", *_BOTH),
        inputs=(MENTIONS,),
        where_missing="sapo's step reward is 0 there",
        balanced=_TRAJECTORIES,
        paper="SAPO, Eq. 4-14",
    ),
    Estimator(
        name="g2po",
        options=G2po,
        explains=explained.g2po,
        writes=("step_reward", *_BOTH),
        balanced=_GROUP | _TRAJECTORIES,
        paper="arXiv 2606.22995",
    ),
    Estimator(
        name="graft",
        options=Graft,
        explains=explained.graft,
        writes=("step_reward", *_BOTH),
        balanced=_TRAJECTORIES,
        paper="GRAFT",
    ),
    Estimator(
        name="milegpo",
        options=MileGpo,
        explains=explained.milegpo,
        writes=("step_reward", *_BOTH),
        balanced=_STATES | _TRAJECTORIES,
        paper="MileGPO, arXiv 2608.19803",
    ),
    Estimator(
        name="reach",
        options=Reach,
        explains=explained.reach,
        writes=("step_reward", "step_advantage", "advantage"),
        version=2,
        inputs=(ANALOGIES,),
        where_missing="reach imagines nothing there, and new is what has rare words",
        where_partial="reach imagines nothing at the others, and new is what has rare words",
        node_values=(
            NodeValue(column="reach_value", of=Reach.value, options=("doubt",)),
            NodeValue(column="reach_doubt", of=Reach.share_of_doubt, options=("doubt",)),
        ),
        paper="this project, docs/research/credit-truth.md",
    ),
)


def all_estimators() -> Mapping[str, Estimator]:
    """Return our estimators, and after them those of installed packages, by name."""
    rows = {row.name: row for row in ESTIMATORS}
    return {**rows, **installed("graphcredit.estimators", Estimator, rows)}


def estimator_named(name: str) -> Estimator:
    """Return the row of an estimator.

    Raises:
        OptionError: There is none of that name; the message lists those there are. Or its row
            declares a column that steps do not have.
    """
    rows = all_estimators()
    if name not in rows:
        raise OptionError(f"no estimator is called {name!r}; there are {', '.join(rows)}")
    row = rows[name]
    unknown = sorted({*row.reads} - {column.name for column in STEP_COLUMNS})
    if unknown:
        raise OptionError(f"an estimator may read columns of steps: {name} reads {unknown[0]!r}")
    return row


def is_of_other_version(name: str, configuration: CreditConfiguration) -> bool:
    """Return whether credit was made by another version of an estimator's formula.

    Args:
        name: The estimator; one of another program has no versions.
        configuration: How its credit was made; nothing where that is not known.
    """
    row = all_estimators().get(name)
    if row is None or not configuration:
        return False
    return configuration.get(VERSION_KEY, 1) != row.version


def configure(names: Iterable[str], settings: Iterable[str] = ()) -> dict[str, Assigner]:
    """Return the options of each named estimator.

    Args:
        names: Estimators, in the order in which to report them.
        settings: `ESTIMATOR.OPTION=VALUE`, as `--set` takes them.

    Raises:
        OptionError: A name, an option or a value is not right, or an option is set of an
            estimator that is not asked for.
    """
    rows = [estimator_named(name.strip()) for name in dict.fromkeys(names)]
    of_estimator: dict[str, dict[str, str]] = {row.name: {} for row in rows}
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, dot, option = target.partition(".")
        if not (equals and dot and option):
            raise OptionError(f"a setting must read ESTIMATOR.OPTION=VALUE: got {setting!r}")
        if estimator_named(name).name not in of_estimator:
            asked = ", ".join(of_estimator)
            raise OptionError(f"{setting!r} sets an option of {name}, which is not among {asked}")
        of_estimator[name][option] = value
    return {
        row.name: options_from_text(row.options, of_estimator[row.name], owner=row.name)
        for row in rows
    }


EstimatorChoice: TypeAlias = str | Assigner | Iterable[str | Assigner] | Mapping[str, Assigner]
"""Names of estimators, with commas in one text, or objects of their options, or both in a list."""


def chosen(estimators: EstimatorChoice) -> dict[str, Assigner]:
    """Return the options of each chosen estimator by its name.

    Raises:
        OptionError: There is none of that name, or of those options; or one is named twice.
    """
    if isinstance(estimators, Mapping):
        return dict(cast("Mapping[str, Assigner]", estimators))
    is_one = isinstance(estimators, str) or not isinstance(estimators, Iterable)
    listed = [estimators] if is_one else estimators
    options: dict[str, Assigner] = {}
    for each in cast("Iterable[str | Assigner]", listed):
        more = configure(each.split(",")) if isinstance(each, str) else {_name_of(each): each}
        if twice := sorted(options.keys() & more):
            raise OptionError(f"each estimator must be named once: {twice[0]} is named twice")
        options |= more
    return options


def _name_of(options: object) -> str:
    rows = all_estimators().values()
    for row in rows:
        if type(options) is row.options:
            return row.name
    raise OptionError(
        f"an estimator must be a name or an object of its options: got {options!r}; there are "
        f"{', '.join(row.options.__name__ for row in rows)}"
    )


def options_as_made(row: Estimator, made_by: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return options as columns were made with; None where the configuration does not say them.

    Args:
        row: The estimator.
        made_by: What a credit shard says of how its columns were made.
        names: The options that matter; the others are the defaults.
    """
    said = made_by.get("options")
    if not isinstance(said, dict) or not all(name in said for name in names):
        return None
    options = row.options(**{name: said[name] for name in names})
    try:
        check_options(options, owner=row.name)
    except OptionError:
        return None
    return options
