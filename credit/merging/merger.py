"""Texts become states: rules, then a merge, both under the guard."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.admissible import UNKNOWN, signatures
from graphcredit.credit.merging.alfworld import with_inventory
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.embedding.merge import KeepVectors
from graphcredit.credit.merging.method import MergeMethod
from graphcredit.credit.merging.rules import HISTORY_RULE, rules_of
from graphcredit.credit.merging.table import GUARD_COLUMN, MergeSettings, merge_named
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.complete import Steps, complete_trajectories
from graphcredit.credit.steps.nodes import Nodes, count_contradictions, exact_nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeReport:
    """What merging did."""

    num_texts: int
    """Distinct texts of states in their groups, before."""
    num_states: int
    """States in their groups, after; goals are in neither."""
    num_refused: int
    """Merges that the guard did not allow."""
    num_contradictions_before: int
    """Pairs of a node and an action that led to more than one node, before."""
    num_contradictions: int
    """The same, after."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """Complete trajectories and the nodes of their states."""

    steps: Steps
    """The trajectories, with the texts that `alfworld` makes of theirs."""
    nodes: Nodes
    """The nodes."""
    report: Callable[[], MergeReport]
    """Returns what was merged; counting costs something, so it is called only when asked for."""
    texts: Callable[[], list[str]] | None
    """Returns [num_nodes] what the merge compares of each state's text; None where that is all."""
    names: Callable[[], pa.Table] | None
    """Returns [num_nodes] what the states are known by in all iterations; None where that is the
    text, or where the merge has no names that last."""


class Merger:
    """Makes nodes of the states of batch after batch, all in one way."""

    def __init__(
        self,
        settings: MergeSettings,
        method: MergeMethod,
        rules_met: Mapping[str, int] | None = None,
    ) -> None:
        """Prepare.

        Args:
            settings: How.
            method: What goes on from the rules.
            rules_met: Each of the user's rules, and in how many texts of a group there is what it
                means; None before an iteration was seen.
        """
        self.settings = settings
        self.rules_met = dict(rules_met or {})
        self._method = method
        self._rules = rules_of(settings.normalise, settings.substitute)

    def learn(self, tables: Iterable[pa.Table]) -> "Merger":
        """Return the merger that has seen a whole iteration, as some methods must.

        Args:
            tables: The iteration's steps, whole groups each, with `settings.columns`. They are not
                read where neither the method nor a rule of the user's must see them.
        """
        names = self.settings.state_rules.names
        rules_met = Counter[str](dict.fromkeys(names, 0))

        def candidates() -> Iterator[Candidates]:
            for table in tables:
                of_table = self._candidates(complete_trajectories(table)[0], table)
                rules_met.update(dict(zip(names, of_table.form.touched, strict=True)))
                yield of_table

        batches = candidates()
        method = self._method.learn(batches)
        if names:
            deque(batches, maxlen=0)
        return Merger(self.settings, method, rules_met)

    def nodes(self, steps: Steps, table: pa.Table) -> Merged:
        """Return the nodes of complete trajectories.

        Args:
            steps: The trajectories.
            table: The table they were taken from, with `settings.columns`.
        """
        if self.settings.is_exact:
            exact = exact_nodes(steps)
            report = partial(_report, exact, exact, steps.action)
            return Merged(steps=steps, nodes=exact, report=report, texts=None, names=None)
        candidates = self._candidates(steps, table)
        union = self._method.unite(candidates)
        return Merged(
            steps=candidates.steps,
            nodes=union.nodes,
            report=partial(self._report_of, candidates, union, steps.action),
            texts=partial(self._texts, candidates, union.nodes),
            names=None if self.settings.goes_on else candidates.names,
        )

    def _texts(self, candidates: Candidates, nodes: Nodes) -> list[str]:
        texts = self._method.read(candidates)
        return [texts[code] for code in candidates.form_of(nodes).tolist()]

    def _report_of(self, candidates: Candidates, union: Union, action: Ints) -> MergeReport:
        return replace(
            _report(candidates.exact, union.nodes, action),
            num_refused=candidates.num_refused + union.num_refused,
        )

    def _candidates(self, steps: Steps, table: pa.Table) -> Candidates:
        if HISTORY_RULE in self.settings.normalise:
            steps = with_inventory(steps)
        signature = np.full(len(steps.row), UNKNOWN)
        if self.settings.guard:
            signature = signatures(table[GUARD_COLUMN])[steps.row]
        overrule = self.settings.state_rules
        return Candidates.after_rules(steps, signature, self._rules, overrule)


def open_merger(settings: MergeSettings, keep: KeepVectors | None = None) -> Merger:
    """Return a merger that has not learned yet.

    Args:
        settings: How it merges.
        keep: Keeps the vectors of models, so that a text is embedded once.

    Raises:
        OptionError: There is no such merge, or no such rule.
    """
    return Merger(settings, merge_named(settings.merge).open(settings, keep))


EXACT = open_merger(MergeSettings())
"""Each distinct text of a group is a state."""


def _report(exact: Nodes, nodes: Nodes, action: Ints) -> MergeReport:
    before = count_contradictions(exact, action)
    return MergeReport(
        num_texts=int((exact.text_of_node >= 0).sum()),
        num_states=int((nodes.text_of_node >= 0).sum()),
        num_refused=0,
        num_contradictions_before=before,
        num_contradictions=before if nodes is exact else count_contradictions(nodes, action),
    )
