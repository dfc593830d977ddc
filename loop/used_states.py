"""Which states credit was made with, and whether they, or others more, tell how rollouts end."""

from collections.abc import Iterator
from dataclasses import dataclass

from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.judge import evidence
from graphcredit.credit.evidence.knowledge import Estimate
from graphcredit.credit.options import RECOMMENDED
from graphcredit.loop.evidence_states import definitions_of
from graphcredit.store.layout import LOGGED_STATE, Store, states_name
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.configuration import STATE_KEY, configuration_of

_COMPARED_STEPS = 2_000
"""Steps by which other definitions are compared: the first whole groups, and about so many."""

_MEANINGS = {
    "last": "what the agent last saw is the same",
    "results": "tools have returned the same",
    "facts": "the agent knows the same facts",
    "worktree": "the agent has read, written and tested the same files",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedStates:
    """The states of a store's credit."""

    name: str
    """Their rule, or the name of the definition as in `graphcredit evidence`."""
    meaning: str
    """When two rollouts are in one state, in words."""
    told: str
    """Whether they tell how rollouts end."""
    doubts: tuple[str, ...]
    """That another definition tells clearly more; nothing where none does."""


def used_states(store: Store, *, rule: str | None = None) -> UsedStates:
    """Return the states that the first credit of a store was made with.

    Args:
        store: A store with credit by the recommended estimator.
        rule: By which rule its log was imported; None if that is not known.
    """
    definitions = definitions_of(store, None)
    state, merge = _credited(store)
    used = next(each for each in definitions if (each.state, each.merge.merge) == (state, merge))
    name = used.name if state != LOGGED_STATE or rule is None else f"--state {rule}"
    key = (rule or "") if state == LOGGED_STATE else state
    return UsedStates(
        name=name,
        meaning=_MEANINGS.get(key, f"the text of the state is the same ({name})"),
        told=_told(store, used, name),
        doubts=tuple(_better(store, used, name, definitions, is_log=rule is not None)),
    )


def _credited(store: Store) -> tuple[str, str]:
    """Return the states and the merge of the first credit."""
    for shard in store.shards():
        if not shard.credit_path.exists():
            continue
        with open_parquet(shard.credit_path, whole=False) as file:
            said = configuration_of(file.schema_arrow).get(RECOMMENDED)
        if isinstance(said, dict):
            return str(said.get(STATE_KEY, LOGGED_STATE)), str(said.get("merge", "exact"))
    return LOGGED_STATE, "exact"


def _told(store: Store, used: Definition, name: str) -> str:
    report = evidence(store, [used])
    if report.num_mixed < 2:
        return f"states ({name}): fewer than two tasks whose rollouts ended differently judge them"
    told = next(iter(report.knowledge.values()))
    if told.beyond_chance().is_positive:
        return (
            f"the states ({name}) tell how rollouts end: evidence {_shown(told.evidence())}; "
            "`graphcredit evidence` compares definitions"
        )
    return (
        f"the states ({name}) do not tell, beyond chance, how rollouts end: evidence "
        f"{_shown(told.evidence())}; `graphcredit import LOG --try 40` names the rule that tells "
        "most, and `graphcredit why LOG --state RULE` takes it"
    )


def _better(
    store: Store, used: Definition, name: str, definitions: list[Definition], *, is_log: bool
) -> Iterator[str]:
    """Yield that another definition tells clearly more."""
    others = [
        each
        for each in definitions
        if each.merge.merge == "exact" and each.parts is None and each.name != used.name
    ]
    report = evidence(store, [used, *others], most_steps=_COMPARED_STEPS)
    mine = report.knowledge[used.name]
    best, told = max(report.knowledge.items(), key=lambda each: each[1].evidence().value)
    more = told.more_than(mine) if best != used.name else None
    if report.num_mixed < 2 or more is None or more.value <= 2 * more.error:
        return
    rule = best.removeprefix("--set ").removeprefix("--state ")
    remedy = f"`graphcredit why LOG --state {rule}`"
    if not is_log:
        made = f"`graphcredit states STORE --set {rule}`, then " * best.startswith("--set ")
        remedy = f"{made}`graphcredit credit STORE -e reach --state {states_name(rule)}`"
    of_what = "" if report.is_whole else f" in the first {report.num_groups} tasks"
    yield (
        f"other states tell more of how rollouts end than those used ({name}): {rule}, with "
        f"evidence {_shown(told.evidence())} against {_shown(mine.evidence())}{of_what}: {remedy}"
    )


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ± {2 * estimate.error:.2f}"
