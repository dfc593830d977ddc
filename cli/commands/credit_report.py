"""The report that `graphcredit credit` prints when it is done."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphcredit.cli.output.console import say, tell
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.credit.estimators.table import Estimator
    from graphcredit.credit.iteration.report import CreditReport


def show_reports(
    reports: "dict[tuple[str, int], CreditReport]", rows: "Sequence[Estimator]"
) -> None:
    """Print what a credit run found: totals, then everything that got no credit or no signal.

    Args:
        reports: What it found in each iteration.
        rows: The estimators.
    """
    from graphcredit.credit.iteration.report import merge_reports

    total = merge_reports(reports.values())
    say(f"{total.headline()}, {counted(len(reports), 'iteration')}")
    for row in rows:
        say(f"{row.name} is made of {row.matter}")
    is_by_return = total.num_by_return == total.num_trajectories
    returns = (
        (total.num_return_pairs, "pairs of rollouts of a group whose returns differ"),
        (total.num_return_pairs_alike, "of them both won or both lost: wins do not tell"),
    )
    lines = [
        *_merge_lines(total),
        (total.num_states, "states"),
        (total.num_edges, "transitions between them"),
        (
            total.num_unreachable_states,
            "states without an observed path to their group's goal "
            f"({total.unreachable_share:.1%})",
        ),
        (total.num_single_visit_steps, "steps alone in their state group: nothing to compare"),
        (total.num_invalid_steps, "invalid steps"),
        (total.num_singleton_groups, "groups of one rollout: nothing to compare it with"),
        (total.num_degenerate_groups, "groups whose rollouts all have the same return"),
        *(returns if total.num_return_pairs_alike and not is_by_return else ()),
        (total.num_groups_without_success, "groups without a success"),
        (total.num_groups_without_goal, "groups without a known goal: most graphs are silent"),
        (
            total.num_incomplete,
            f"incomplete rollouts ({counted(total.num_incomplete_steps, 'step')}): no credit",
        ),
    ]
    lines += [(count, f"texts met by {rule}") for rule, count in total.state_rules.items()]
    for count, meaning in lines:
        say(f"{count:>12,}  {meaning}")
    for reason, count in total.incomplete_reasons.items():
        say(f"{count:>14,}  {reason}")
    if total.incomplete_example:
        tell(f"for example {total.incomplete_example}")
    if idle := [rule for rule, count in total.state_rules.items() if not count]:
        tell("notice: no text has what these rules of states.toml mean: " + "; ".join(idle))
    for notice, times in Counter(total.notices).items():
        tell(f"notice: {notice}" + (f" (in {times} iterations)" if times > 1 else ""))


def _merge_lines(total: "CreditReport") -> Iterator[tuple[int, str]]:
    if not total.num_merged_texts and not total.num_refused_merges:
        return
    yield total.num_texts, "distinct texts of states"
    yield total.num_texts - total.num_merged_texts, "states that they were merged into"
    yield total.num_refused_merges, "merges refused: the admissible actions differ"
    before = f"({total.num_contradictions_before:,} before merging)"
    yield total.num_contradictions, f"times one state and action lead to several states {before}"
