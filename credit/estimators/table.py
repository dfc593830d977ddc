"""All estimators. Adding one is a file in `estimators/` and a row here."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from graphcredit.credit.estimators import explained
from graphcredit.credit.estimators.discounted import Discounted
from graphcredit.credit.estimators.g2po import G2po
from graphcredit.credit.estimators.gigpo import Gigpo
from graphcredit.credit.estimators.graft import Graft
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.grpo import Grpo
from graphcredit.credit.estimators.hgpo import Hgpo
from graphcredit.credit.estimators.milegpo import MileGpo
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.estimators.rloo import Rloo
from graphcredit.credit.estimators.row import Assigner as Assigner
from graphcredit.credit.estimators.row import Balance
from graphcredit.credit.estimators.row import Estimator as Estimator
from graphcredit.credit.estimators.row import NodeValue as NodeValue
from graphcredit.credit.estimators.sapo import Sapo
from graphcredit.credit.estimators.spo3 import Spo3
from graphcredit.credit.estimators.turn_credit import TurnCredit
from graphcredit.credit.estimators.turn_rloo import TurnRloo
from graphcredit.credit.inputs.table import ANALOGIES, MENTIONS, PAST
from graphcredit.store.errors import OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.near_names import did_you_mean
from graphcredit.store.options import check_options, options_from_text
from graphcredit.store.provenance.configuration import VERSION_KEY, CreditConfiguration
from graphcredit.store.schema import STEP_COLUMNS

_STEP = ("step_reward", "step_advantage")
_EPISODE = ("episode_advantage", "advantage")
_BOTH = ("step_advantage", "episode_advantage", "advantage")

# HGPO mixes several clusters, SAPO clips, and GRAFT credits a state left by one edge: their step
# parts need not balance.
_ALL_ALIKE: dict[str, Balance] = dict.fromkeys(_EPISODE, "trajectories")
_TRAJECTORIES: dict[str, Balance] = {"episode_advantage": "trajectories"}
_STATES: dict[str, Balance] = {"step_advantage": "states"}
_GROUP: dict[str, Balance] = {"step_advantage": "group"}


def _unless_by_returns(*parts: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda options: () if options.worth == "returns" else parts


ESTIMATORS: tuple[Estimator, ...] = (
    Estimator(
        name="grpo",
        options=Grpo,
        explains=explained.whole_trajectory,
        writes=_EPISODE,
        made_of=("rewards",),
        balanced=_ALL_ALIKE,
        paper="GiGPO, Eq. 3",
    ),
    Estimator(
        name="rloo",
        options=Rloo,
        explains=explained.against_the_others,
        writes=_EPISODE,
        made_of=("rewards",),
        balanced=_ALL_ALIKE,
        paper="GiGPO, Eq. 10",
    ),
    Estimator(
        name="discounted",
        options=Discounted,
        explains=explained.discounted,
        writes=("advantage",),
        made_of=("rewards",),
        paper="Williams 1992",
    ),
    Estimator(
        name="gigpo",
        options=Gigpo,
        explains=explained.gigpo,
        writes=_BOTH,
        made_of=("states", "rewards"),
        balanced=_STATES | _TRAJECTORIES,
        paper="GiGPO, Eq. 5-8",
    ),
    Estimator(
        name="hgpo",
        options=Hgpo,
        explains=explained.hgpo,
        writes=("step_advantage", "advantage"),
        made_of=("states", "rewards"),
        paper="3SPO's baseline, arXiv 2602.22817",
    ),
    Estimator(
        name="turn_credit",
        options=TurnCredit,
        explains=explained.turn_credit,
        writes=("step_reward", *_BOTH),
        made_of=("rewards", "scores"),
        balanced=_GROUP | _TRAJECTORIES,
        reads=("score",),
        where_missing="turn_credit is the return less the group's mean there",
        where_partial="turn_credit takes the scores of the others as unchanged there",
        paper="prime-rl PR 3282",
    ),
    Estimator(
        name="turn_rloo",
        options=TurnRloo,
        explains=explained.turn_rloo,
        writes=("advantage",),
        made_of=("rewards",),
        paper="ours, after verl RFC 7244",
    ),
    Estimator(
        name="rewardflow",
        options=RewardFlow,
        explains=explained.rewardflow,
        writes=("step_reward", *_BOTH),
        made_of=("states", "success", "rewards", "validity"),
        by_wins=_unless_by_returns("step_reward", *_BOTH),
        node_values=(
            NodeValue(column="rewardflow_value", of=RewardFlow.value, options=("gamma", "worth")),
        ),
        balanced=_STATES | _TRAJECTORIES,
        paper="RewardFlow, Eq. 3-9",
    ),
    Estimator(
        name="graphgpo",
        options=GraphGpo,
        explains=explained.graphgpo,
        writes=("step_reward", *_BOTH),
        made_of=("states", "success", "rewards", "costs"),
        by_wins=_unless_by_returns(*_STEP),
        balanced=_STATES | _TRAJECTORIES,
        paper="GraphGPO, Eq. 3-8",
    ),
    Estimator(
        name="spo3",
        options=Spo3,
        explains=explained.spo3,
        writes=("step_reward", "step_advantage", "advantage"),
        made_of=("states", "success", "times"),
        by_wins=lambda _: (*_STEP, "advantage"),
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
        made_of=("rewards", "texts", "thoughts", "entities"),
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
        made_of=("states", "success", "rewards", "validity"),
        balanced=_GROUP | _TRAJECTORIES,
        paper="arXiv 2606.22995",
    ),
    Estimator(
        name="graft",
        options=Graft,
        explains=explained.graft,
        writes=("step_reward", *_BOTH),
        made_of=("states", "success", "rewards"),
        by_wins=lambda _: _STEP,
        balanced=_TRAJECTORIES,
        paper="GRAFT",
    ),
    Estimator(
        name="milegpo",
        options=MileGpo,
        explains=explained.milegpo,
        writes=("step_reward", *_BOTH),
        made_of=("states", "success", "rewards", "costs"),
        by_wins=lambda _: _STEP,
        balanced=_STATES | _TRAJECTORIES,
        paper="MileGPO, arXiv 2608.19803",
    ),
    Estimator(
        name="reach",
        options=Reach,
        explains=explained.reach,
        writes=("value", "q", "outcome", "baseline", "progress", "advantage"),
        made_of=(
            "states",
            "actions",
            "success",
            "rewards",
            "costs",
            "validity",
            "ends",
            "lists",
            "texts",
        ),
        version=7,
        inputs=(ANALOGIES,),
        where_missing="reach imagines nothing there, and new is what has rare words",
        where_partial="reach imagines nothing at the others, and new is what has rare words",
        node_values=(NodeValue(column="reach_expected", of=Reach.value, options=("doubt",)),),
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
        raise OptionError(
            f"no estimator is called {name!r}; there are {', '.join(rows)}."
            f"{did_you_mean(name, rows)}"
        )
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
    """Return options as columns were made with; None where the configuration does not say any.

    An option that it does not say is younger than the columns, and its default is as before it.

    Args:
        row: The estimator.
        made_by: What a credit shard says of how its columns were made.
        names: The options that matter; the others are the defaults.
    """
    said = made_by.get("options")
    if not isinstance(said, dict):
        return None
    options = row.options(**{name: said[name] for name in names if name in said})
    try:
        check_options(options, owner=row.name)
    except OptionError:
        return None
    return options
