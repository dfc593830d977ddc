"""The report of a credit run: everything is counted, so that nothing is dropped silently."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import has_spread
from graphcredit.credit.estimators.table import Estimator
from graphcredit.credit.inputs.analogies.action_lists import MEANING, Worth
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.inputs.entities.mentions import Mentions
from graphcredit.credit.inputs.table import ANALOGIES, MENTIONS
from graphcredit.credit.iteration.assemble import Assembly
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.iteration.unseen_returns import ReturnPairs
from graphcredit.credit.steps.arrays import Ints, sum_per_run
from graphcredit.credit.steps.complete import REASONS
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.plural import counted
from graphcredit.store.text_table import Report

_NOTED = 0.01
"""Least share of the differences in return that is worth a notice."""


@dataclass(kw_only=True, slots=True, repr=False)
class CreditReport(Report):
    """Counts over the groups that were processed; reports of parts add up."""

    num_rows: int = 0
    """Steps in the shards, complete trajectory or not."""
    num_steps: int = 0
    """Steps of complete trajectories: those that got credit."""
    num_invalid_steps: int = 0
    """Those among them whose action did nothing."""
    num_trajectories: int = 0
    """Complete trajectories."""
    num_successes: int = 0
    """Those that accomplished their task."""
    num_by_return: int = 0
    """Those of which the return is known, and not whether they accomplished their task."""
    num_incomplete: int = 0
    """Trajectories without credit, because they are not complete."""
    num_incomplete_steps: int = 0
    """Their steps."""
    incomplete_reasons: dict[str, int] = field(default_factory=dict[str, int])
    """How many of them, by the first rule that they break."""
    incomplete_example: str | None = None
    """One of them."""
    num_groups: int = 0
    """Groups with at least one complete trajectory."""
    num_singleton_groups: int = 0
    """Groups of one trajectory: there is nothing to compare it with."""
    num_degenerate_groups: int = 0
    """Groups whose trajectories all have the same return."""
    num_return_pairs: int = 0
    """Pairs of rollouts of a group whose returns differ."""
    num_return_pairs_alike: int = 0
    """Those among them that both succeeded or both failed."""
    return_difference: float = 0.0
    """The differences of these returns in all."""
    return_difference_alike: float = 0.0
    """That of pairs that both succeeded or both failed: who reads wins alone does not see it."""
    num_groups_of_several_starts: int = 0
    """Groups with several rollouts from each of several first states, as of several tasks."""
    num_groups_without_success: int = 0
    """Groups none of whose trajectories accomplished the task."""
    num_groups_without_goal: int = 0
    """Those among them whose goal was not reached in the graph's window either: no graph estimator
    has a step signal there."""
    num_states: int = 0
    """Nodes of all state graphs, goals included."""
    num_texts: int = 0
    """Distinct texts of the groups' states, before any merging."""
    num_merged_texts: int = 0
    """Those among them that were found to be another text's state."""
    num_refused_merges: int = 0
    """Merges that would have united states with different admissible actions."""
    num_contradictions_before: int = 0
    """Pairs of a state and an action that led to several states, before merging."""
    num_contradictions: int = 0
    """The same after merging: more of them than before speaks against the merge."""
    state_rules: dict[str, int] = field(default_factory=dict[str, int])
    """Each rule of `states.toml`, and the number of texts in which there was what it means."""
    num_edges: int = 0
    """Distinct (state, next state) transitions."""
    num_unreachable_states: int = 0
    """Nodes without an observed path to the goal, in groups that have one."""
    num_states_with_goal: int = 0
    """Nodes of the groups that have a goal."""
    num_single_visit_steps: int = 0
    """Steps whose state no other step of the group starts from: their state group is alone."""
    num_groups_without_entities: int = 0
    """Groups of whose task `er_graph/` says nothing, where an estimator needs it."""
    num_groups_without_answer: int = 0
    """Groups of whose task it has entities, but none that is the answer."""
    num_groups_without_scores: int = 0
    """Groups in which no step has a score, where an estimator reads scores."""
    num_groups_with_some_scores: int = 0
    """Groups that have trajectories with scores, and trajectories without any."""
    action_lists: dict[str, int] = field(default_factory=dict[str, int])
    """Groups by what their lists of admissible actions are worth (`Worth`, in lower case); empty
    where no estimator needs them."""
    notices: list[str] = field(default_factory=list[str])
    """Other things to know, a sentence each."""

    def headline(self) -> str:
        """Return how much got credit."""
        ended = [f"{self.num_successes:,} successful"]
        if self.num_by_return:
            ended *= self.num_by_return < self.num_trajectories
            ended.append(f"{self.num_by_return:,} compared by their returns")
        return (
            f"credit for {counted(self.num_steps, 'step')} of "
            f"{counted(self.num_trajectories, 'rollout')} ({', '.join(ended)}) "
            f"in {counted(self.num_groups, 'group')}"
        )

    @property
    def unreachable_share(self) -> float:
        """Share of nodes without a path to the goal, in groups that have a goal."""
        return self.num_unreachable_states / max(self.num_states_with_goal, 1)

    def add(self, other: "CreditReport") -> None:
        """Add the counts of another part."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, dict):
                theirs = {k: mine.get(k, 0) + theirs.get(k, 0) for k in mine | theirs}
                setattr(self, item.name, theirs)
            elif isinstance(mine, int | float | list):
                setattr(self, item.name, mine + theirs)
            else:
                setattr(self, item.name, mine or theirs)

    def as_json(self) -> dict[str, Any]:
        """Return the counts and the numbers made of them."""
        return asdict(self) | {"unreachable_share": self.unreachable_share}


def merge_reports(reports: Iterable[CreditReport]) -> CreditReport:
    """Return the sum of some reports."""
    total = CreditReport()
    for report in reports:
        total.add(report)
    return total


def incomplete_notice(report: CreditReport) -> str:
    """Say how much got no credit, and why; nothing where all of it did."""
    if not report.num_incomplete:
        return ""
    reasons = "".join(
        f"\n{count:>8,}  {reason}" for reason, count in report.incomplete_reasons.items()
    )
    num_trajectories = report.num_incomplete + report.num_trajectories
    return (
        f"{_some(report.num_incomplete_steps, report.num_rows, 'row', 'has', 'have')} no credit: "
        f"{_some(report.num_incomplete, num_trajectories, 'rollout', 'is', 'are')} "
        f"not complete{reasons}\nfor example {report.incomplete_example}"
    )


def notices_of(report: CreditReport, settings: CreditSettings) -> list[str]:
    """Say where a group lacks what an estimator needs."""
    lists, entities, rows = _found_lists(report), _found_entities(report), settings.rows
    scores = _found_scores(report)
    return [
        *(notice for row in rows if ANALOGIES in row.inputs for notice in _notices(lists, row)),
        *(notice for row in rows if MENTIONS in row.inputs for notice in _notices(entities, row)),
        *_unseen_notices(report, settings),
        *_start_notices(report),
        *(notice for row in rows if "score" in row.reads for notice in _notices(scores, row)),
    ]


def _start_notices(report: CreditReport) -> Iterator[str]:
    if number := report.num_groups_of_several_starts:
        yield (
            f"{_groups_with(number, report)} rollouts from several first states, several from "
            "each: a group should be of one task. `graphcredit import` names fields that tell "
            "tasks apart (--group)"
        )


def _unseen_notices(report: CreditReport, settings: CreditSettings) -> Iterator[str]:
    """Yield, of each estimator that tells who won but no returns apart, what it does not see."""
    unseen = report.return_difference_alike
    if unseen < _NOTED * report.return_difference or not unseen:
        return
    alike = _some(report.num_return_pairs_alike, report.num_return_pairs, "pair", "is", "are")
    for row in settings.rows:
        options = settings.estimators[row.name]
        if parts := row.by_wins(options):
            whose = row.name if "advantage" in parts else f"the step part of {row.name}"
            remedy = f". --set {row.name}.worth=returns does" * hasattr(options, "worth")
            yield (
                f"{whose} knows who won, and no returns: {alike} of rollouts that both won or both "
                f"lost, of those of a group whose returns differ, and it does not tell them apart: "
                f"{unseen / report.return_difference:.0%} of all differences in return{remedy}"
            )


def _notices(lacking: Mapping[str, bool], row: Estimator) -> Iterator[str]:
    """Yield what each thing found means for the credit of an estimator.

    Args:
        lacking: Which groups lack what, and whether they have some of it.
        row: The estimator.
    """
    for what, is_partial in lacking.items():
        yield f"{what}: {row.where_partial if is_partial else row.where_missing}"


def _found_lists(report: CreditReport) -> dict[str, bool]:
    # Who logs no lists knows it; who logs some may take them for good ones.
    worths = (Worth.PARTIAL, Worth.CONSTANT, Worth.CHANGING)
    return {
        f"{_groups_with(count, report)} {MEANING[worth]}": worth == Worth.PARTIAL
        for worth in worths
        if (count := report.action_lists.get(worth.name.lower()))
    }


def _found_entities(report: CreditReport) -> dict[str, bool]:
    counts = {
        "no entities": report.num_groups_without_entities,
        "no entity that is the answer": report.num_groups_without_answer,
    }
    return {
        f"{_groups_with(count, report)} {what} in er_graph/": False
        for what, count in counts.items()
        if count
    }


def _found_scores(report: CreditReport) -> dict[str, bool]:
    some, none = report.num_groups_with_some_scores, report.num_groups_without_scores
    found: dict[str, bool] = {}
    if none:
        found[f"{_groups_with(none, report)} no step with a score"] = False
    if some:
        found[f"{_groups_with(some, report)} rollouts without any score"] = True
    return found


def _groups_with(count: int, report: CreditReport) -> str:
    return _some(count, report.num_groups, "group", "has", "have")


def _some(count: int, total: int, noun: str, verb: str, plural_verb: str) -> str:
    """Return, for example, `1 of 3 groups has`."""
    return f"{count:,} of {counted(total, noun)} {verb if count == 1 else plural_verb}"


def report_of(assembly: Assembly) -> CreditReport:
    """Count what a batch holds and what it left out."""
    merged = assembly.merged
    batch, left_out = assembly.batch, assembly.left_out
    mentions: Mentions | None = batch.inputs.get("mentions")
    analogies: Analogies | None = batch.inputs.get("analogies")
    size = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
    is_judged = assembly.steps.is_judged[batch.trajectory_start[1:] - 1]
    num_successes, num_judged = (
        np.bincount(batch.group_of_trajectory, each, batch.num_groups)
        for each in (batch.is_success, is_judged)
    )
    is_equal = ~has_spread(batch.episode_return, batch.group_of_trajectory, batch.num_groups)
    node_has_goal = batch.goal_of_group[batch.group_of_node] >= 0
    reasons = dict(zip(REASONS, left_out.num_trajectories.tolist(), strict=True))
    visits = np.bincount(batch.state_of_step, minlength=batch.num_nodes)
    pairs, alike = ReturnPairs.all_of(batch), ReturnPairs.alike(batch)
    num_scored = _scored_trajectories(batch)
    return CreditReport(
        num_rows=assembly.num_rows,
        num_steps=batch.num_steps,
        num_invalid_steps=int((~batch.is_valid).sum()),
        num_trajectories=len(batch.is_success),
        num_successes=int(batch.is_success.sum()),
        num_by_return=int((~is_judged).sum()),
        num_incomplete=int(left_out.num_trajectories.sum()),
        num_incomplete_steps=left_out.num_steps,
        incomplete_reasons={reason: count for reason, count in reasons.items() if count},
        incomplete_example=left_out.example,
        num_groups=batch.num_groups,
        num_singleton_groups=int((size == 1).sum()),
        num_degenerate_groups=int(is_equal.sum()),
        num_return_pairs=pairs.number,
        num_return_pairs_alike=alike.number,
        return_difference=pairs.difference,
        return_difference_alike=alike.difference,
        num_groups_of_several_starts=_num_of_several_starts(batch),
        num_groups_without_success=int(((num_successes == 0) & (num_judged > 0)).sum()),
        num_groups_without_goal=int((batch.goal_of_group < 0).sum()),
        num_states=batch.num_nodes,
        num_texts=merged.num_texts,
        num_merged_texts=merged.num_texts - merged.num_states,
        num_refused_merges=merged.num_refused,
        num_contradictions_before=merged.num_contradictions_before,
        num_contradictions=merged.num_contradictions,
        num_edges=len(batch.graph.source),
        num_unreachable_states=int((np.isinf(batch.graph.goal_distance) & node_has_goal).sum()),
        num_states_with_goal=int(node_has_goal.sum()),
        num_single_visit_steps=int((visits == 1).sum()),
        num_groups_without_entities=int((~mentions.has_entities).sum()) if mentions else 0,
        num_groups_without_answer=int((mentions.has_entities & ~mentions.has_answer).sum())
        if mentions
        else 0,
        num_groups_without_scores=int((num_scored == 0).sum()),
        num_groups_with_some_scores=int(((num_scored > 0) & (num_scored < size)).sum()),
        action_lists=analogies.lists.count() if analogies else {},
    )


def _num_of_several_starts(batch: StepBatch) -> int:
    """Return how many groups have several first states with several rollouts each."""
    first = batch.state_of_step[batch.trajectory_start[:-1]]
    pairs = np.stack([batch.group_of_trajectory, first])
    (group, _), size = np.unique(pairs, axis=1, return_counts=True)
    num_starts = np.bincount(group[size > 1], minlength=batch.num_groups)
    return int((num_starts > 1).sum())


def _scored_trajectories(batch: StepBatch) -> Ints:
    """Return how many trajectories of each group have a score; all if no estimator reads them."""
    size = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
    if "score" not in batch.columns:
        return size
    is_judged = numpy_of(batch.columns["score"].is_valid()).astype(float)
    has_score = sum_per_run(is_judged, batch.trajectory_start) > 0
    return np.bincount(batch.group_of_trajectory[has_score], minlength=batch.num_groups)
