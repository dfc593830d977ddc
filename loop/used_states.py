"""Which states credit was made with, and whether they, or others more, tell how rollouts end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.judge import evidence
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.options import RECOMMENDED
from graphcredit.loop.evidence_states import default_in, definitions_of
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
    """Whether they tell how rollouts end; of states that were chosen, what the default tells."""
    doubts: tuple[str, ...]
    """That another definition tells clearly more; nothing where none does."""


def used_states(store: Store, *, rule: str | None = None) -> UsedStates:
    """Return the states that the first credit of a store was made with.

    Args:
        store: A store with credit by the recommended estimator.
        rule: By which rule its log was imported; None if that is not known.
    """
    definitions = _definitions(store, rule)
    used = used_of(store, definitions)
    compared = [each for each in definitions if each is used or each.merge.merge == "exact"]
    first = evidence(store, compared, most_steps=_COMPARED_STEPS)
    default = default_in(first, definitions[0].name)
    best = next(iter(first.knowledge))
    asked = {used.name, default, *[best] * (_more(first, best, used.name))}
    whole = [each for each in definitions if each.name in asked]
    report = first if first.is_whole else evidence(store, whole)
    key = (rule or "") if used.state == LOGGED_STATE else used.state
    return UsedStates(
        name=used.name,
        meaning=_MEANINGS.get(key, f"the text of the state is the same ({used.name})"),
        told=_told(report, used.name, default),
        doubts=tuple(_better(report, used.name, best, is_log=rule is not None)),
    )


def _definitions(store: Store, rule: str | None) -> list[Definition]:
    """Return what is judged, by the names that the options of a log have where it was one."""
    definitions = definitions_of(store, None)
    if rule is None:
        return definitions
    logged, *others = definitions
    named = [replace(each, name=each.name.replace("--set ", "--state ")) for each in others]
    first = replace(logged, name=f"--state {rule}")
    return [first, *(each for each in named if each.name != first.name)]


def used_of(store: Store, definitions: Sequence[Definition]) -> Definition:
    """Return the definition of the states that the first credit of a store was made with."""
    made_with = _credited(store)
    return next(each for each in definitions if (each.state, each.merge.merge) == made_with)


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


def _told(report: EvidenceReport, used: str, default: str) -> str:
    if report.num_mixed < 2:
        return f"states ({used}): fewer than two tasks whose rollouts ended differently judge them"
    told = report.knowledge[used]
    shown = report.against(default, used) if default != used else f"evidence {told.evidence()}"
    if told.beyond_chance().is_positive:
        return (
            f"the states ({used}) tell how rollouts end: {shown}; `graphcredit evidence` compares "
            "definitions"
        )
    return (
        f"the states ({used}) do not tell, beyond chance, how rollouts end: {shown}; "
        "`graphcredit import LOG --try 40` names the rule that tells most, and `graphcredit why "
        "LOG --state RULE` takes it"
    )


def _more(report: EvidenceReport, one: str, other: str) -> bool:
    """Return whether a definition has clearly more evidence than another."""
    more = report.knowledge[one].more_than(report.knowledge[other])
    return one != other and report.num_mixed > 1 and more.value > 2 * more.error


def _better(report: EvidenceReport, used: str, best: str, *, is_log: bool) -> Iterator[str]:
    """Yield that another definition tells clearly more."""
    if best not in report.knowledge or not _more(report, best, used):
        return
    rule = best.removeprefix("--set ").removeprefix("--state ")
    remedy = f"`graphcredit why LOG --state {rule}`"
    if not is_log:
        made = f"`graphcredit states STORE --set {rule}`, then " * best.startswith("--set ")
        remedy = f"{made}`graphcredit credit STORE -e reach --state {states_name(rule)}`"
    evidence_of = (report.knowledge[name].evidence() for name in (best, used))
    yield (
        f"other states tell more of how rollouts end than those used ({used}): {rule}, with "
        f"evidence {' against '.join(map(str, evidence_of))}: {remedy}"
    )
