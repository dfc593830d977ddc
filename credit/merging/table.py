"""Which texts of a group are one state: rules, then a merge, both under the guard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.admissible import UNKNOWN, signatures
from graphcredit.credit.merging.alfworld import with_inventory
from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.embedding.model import ModelEmbedder
from graphcredit.credit.merging.embedding.ngram import NGRAM, Embedder, NgramEmbedder
from graphcredit.credit.merging.recognise import Identify
from graphcredit.credit.merging.rules import HISTORY_RULE, rules_of
from graphcredit.credit.merging.segments.cut import cut, visits_of
from graphcredit.credit.merging.segments.evidence import Evidence, Judge
from graphcredit.credit.steps.batches import Plan, read_batches
from graphcredit.credit.steps.complete import COLUMNS, Steps, complete_trajectories
from graphcredit.credit.steps.nodes import Nodes, count_contradictions, exact_nodes
from graphcredit.store.errors import OptionError
from graphcredit.store.layout import Shard, Store

GUARD_COLUMN = "admissible_actions"
MERGES: tuple[str, ...] = ("exact", "segments", "embedding")


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeSettings:
    """How texts become states. The defaults make one state of each distinct text."""

    merge: str = "exact"
    """`exact`: equal after the rules. `segments`: equal but for what comes and goes.
    `embedding`: similar enough."""
    threshold: float = 0.95
    """Least cosine at which `embedding` merges (GraphGPO's; RewardFlow uses 0.9)."""
    embedder: str = NGRAM
    """`ngram`, or the name or path of a sentence-transformers model."""
    rules: tuple[str, ...] = ()
    """Names from `normalise.RULE_NAMES`, applied in order."""
    substitutions: tuple[str, ...] = ()
    """`REGEX=>TEXT`, applied after the rules."""
    guard: bool = True
    """Never merge states whose logged admissible actions differ."""

    @property
    def is_exact(self) -> bool:
        """Whether each distinct text is a state of its own."""
        return self.merge == "exact" and not self.rules and not self.substitutions

    @property
    def columns(self) -> tuple[str, ...]:
        """Step columns that are needed besides those of every credit run."""
        return () if self.is_exact or not self.guard else (GUARD_COLUMN,)

    def check(self) -> None:
        """Raise OptionError if a value is not one that the stage can work with."""
        if self.merge not in MERGES:
            raise OptionError(f"--merge must be one of {', '.join(MERGES)}: got {self.merge!r}")
        if not 0 < self.threshold <= 1:
            raise OptionError(f"--threshold must be above 0 and at most 1: got {self.threshold}")
        rules_of(self.rules, self.substitutions)

    def as_json(self) -> dict[str, Any]:
        """Return what the states depend on, for the metadata of the columns made from them."""
        described: dict[str, Any] = {"merge": self.merge}
        if self.merge == "embedding":
            described |= {"threshold": self.threshold, "embedder": self.embedder}
        if self.is_exact:
            return described
        rules = {"rules": list(self.rules), "substitutions": list(self.substitutions)}
        return described | rules | {"guard": self.guard}


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
    report: MergeReport
    """What was merged."""
    identify: Identify | None
    """Returns what the nodes are recognised by in other iterations; None where that is the text."""


class Merger:
    """Makes nodes of the states of batch after batch, all in one way."""

    def __init__(self, settings: MergeSettings, embedder: Embedder | None = None) -> None:
        """Prepare.

        Args:
            settings: How.
            embedder: Makes the vectors; needed for `embedding` only.
        """
        self.settings = settings
        self._rules = rules_of(settings.rules, settings.substitutions)
        self._embedder = embedder
        self._evidence = Evidence()
        self._judge: Judge | None = None

    def taught_by(self, shards: Sequence[Shard], plan: Plan) -> "Merger":
        """Return the merger that has seen a whole iteration, as `segments` must before it merges.

        Args:
            shards: All step shards of the iteration.
            plan: Its batches.
        """
        if self.settings.merge != "segments":
            return self
        taught = Merger(self.settings)
        for pieces in read_batches(shards, plan, (*COLUMNS, *self.settings.columns)):
            taught.learn(pa.concat_tables([piece.steps for piece in pieces]))
        return taught

    def learn(self, table: pa.Table) -> None:
        """See which segments stay with a state and which come and go, in some whole groups."""
        steps, _ = complete_trajectories(table)
        found = self._candidates(steps, table)
        visits = visits_of(found.steps, found.nodes, found.signature_of(found.nodes))
        self._evidence.add(cut(found.texts()), visits)
        self._judge = None

    def nodes(self, steps: Steps, table: pa.Table) -> Merged:
        """Return the nodes of complete trajectories.

        Args:
            steps: The trajectories.
            table: The table they were taken from, with `settings.columns`.
        """
        if self.settings.is_exact:
            exact = exact_nodes(steps)
            count = count_contradictions(exact, steps.action)
            report = _report(exact, exact, 0, count, count)
            return Merged(steps=steps, nodes=exact, report=report, identify=None)
        found = self._candidates(steps, table)
        union = self._merge(found)
        before = count_contradictions(found.exact, steps.action)
        after = count_contradictions(union.nodes, steps.action)
        refused = found.num_refused + union.num_refused
        return Merged(
            steps=found.steps,
            nodes=union.nodes,
            report=_report(found.exact, union.nodes, refused, before, after),
            identify=union.identify,
        )

    def _merge(self, found: Candidates) -> Union:
        if self._embedder:
            return found.by_similarity(self._embedder, self.settings.threshold)
        if self.settings.merge == "segments":
            self._judge = self._judge or Judge(self._evidence)
            return found.by_segments(self._judge)
        return found.by_rules()

    def _candidates(self, steps: Steps, table: pa.Table) -> Candidates:
        if HISTORY_RULE in self.settings.rules:
            steps = with_inventory(steps)
        signature = np.full(len(steps.row), UNKNOWN)
        if self.settings.guard:
            signature = signatures(table[GUARD_COLUMN])[steps.row]
        return Candidates.after_rules(steps, signature, self._rules)


EXACT = Merger(MergeSettings())
"""Each distinct text of a group is a state."""


def open_merger(settings: MergeSettings, store: Store | None = None) -> Merger:
    """Return a merger; with a store, it keeps the vectors there that models make."""
    if settings.merge != "embedding":
        return Merger(settings)
    if settings.embedder == NGRAM:
        return Merger(settings, NgramEmbedder())
    model = ModelEmbedder(settings.embedder)
    return Merger(settings, CachedEmbedder(store, model) if store else model)


def check_merger(settings: MergeSettings) -> None:
    """Raise an error if a model is asked for that cannot be loaded; see `ModelEmbedder.load`."""
    if settings.merge == "embedding" and settings.embedder != NGRAM:
        ModelEmbedder(settings.embedder).load()


def _report(exact: Nodes, nodes: Nodes, num_refused: int, before: int, after: int) -> MergeReport:
    return MergeReport(
        num_texts=int((exact.text_of_node >= 0).sum()),
        num_states=int((nodes.text_of_node >= 0).sum()),
        num_refused=num_refused,
        num_contradictions_before=before,
        num_contradictions=after,
    )
