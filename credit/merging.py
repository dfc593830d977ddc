"""Which texts of a group are one state: rules, then a merge, both under the guard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.arrays import Ints, factorise
from graphcredit.credit.embedding import NGRAM, Embedder, NgramEmbedder, embed_distinct
from graphcredit.credit.embedding_cache import CachedEmbedder
from graphcredit.credit.embedding_model import ModelEmbedder
from graphcredit.credit.greedy import join_most_similar
from graphcredit.credit.guard import UNKNOWN, signature_of_nodes, signatures
from graphcredit.credit.household import with_inventory
from graphcredit.credit.normalise import HISTORY_RULE, Rule, normalise, rules_of
from graphcredit.credit.plan import Plan, read_batches
from graphcredit.credit.segments import Evidence, certain_classes, cut, identities
from graphcredit.credit.states import Nodes, count_contradictions, exact_nodes, merge_nodes
from graphcredit.credit.trajectories import COLUMNS, Steps, complete_trajectories
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
        start = self._start(steps, table)
        node, of_visit = certain_classes(start.steps, start.nodes, start.signature_of(start.nodes))
        texts = [start.forms[code] for code in start.form_of(start.nodes).tolist()]
        self._evidence.add(cut(texts), node, of_visit)

    def nodes(self, steps: Steps, table: pa.Table) -> tuple[Steps, Nodes, MergeReport]:
        """Return the nodes of complete trajectories.

        Args:
            steps: The trajectories.
            table: The table they were taken from, with `settings.columns`.

        Returns:
            The steps, with the texts that `alfworld` makes of theirs; their nodes; what was merged.
        """
        if self.settings.is_exact:
            exact = exact_nodes(steps)
            count = count_contradictions(exact, steps.action)
            return steps, exact, _report(exact, exact, 0, count, count)
        start = self._start(steps, table)
        before = count_contradictions(start.exact, steps.action)
        nodes, refused = start.nodes, start.num_refused
        if self._embedder:
            nodes, more = start.by_similarity(self._embedder, self.settings.threshold)
            refused += more
        elif self.settings.merge == "segments":
            nodes, more = start.by_segments(self._evidence)
            refused += more
        after = count_contradictions(nodes, steps.action)
        return start.steps, nodes, _report(start.exact, nodes, refused, before, after)

    def _start(self, steps: Steps, table: pa.Table) -> "_Start":
        if HISTORY_RULE in self.settings.rules:
            steps = with_inventory(steps)
        signature = np.full(len(steps.row), UNKNOWN)
        if self.settings.guard:
            signature = signatures(table[GUARD_COLUMN])[steps.row]
        return _Start.normalise(steps, signature, self._rules)


EXACT = Merger(MergeSettings())
"""Each distinct text of a group is a state."""


def open_merger(settings: MergeSettings, store: Store) -> Merger:
    """Return a merger for the steps of a store, which keeps the vectors that models make.

    Raises:
        MissingDependencyError: The embedder is a model, and sentence-transformers is not installed.
        InputError: The model is not on this machine.
    """
    if settings.merge != "embedding":
        return Merger(settings)
    if settings.embedder == NGRAM:
        return Merger(settings, NgramEmbedder())
    return Merger(settings, CachedEmbedder(store, ModelEmbedder(settings.embedder)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Start:
    """The steps of one batch with one node for each normal form, ready for the merge proper."""

    steps: Steps
    signature: Ints
    """[num_steps] from `guard.signatures`."""
    exact: Nodes
    """One node for each distinct text."""
    nodes: Nodes
    """One node for each normal form, as far as the guard allows."""
    num_refused: int
    """Nodes that the guard kept apart though they have one normal form."""
    form: Ints
    """[num_texts] code of each text's normal form."""
    forms: list[str]
    """The normal forms."""

    @classmethod
    def normalise(cls, steps: Steps, signature: Ints, rules: Sequence[Rule]) -> "_Start":
        form, forms = normalise(steps.state_texts, rules)
        exact = exact_nodes(steps)
        key = _keys(exact, form[exact.text_of_node])
        label, num_refused = unite(key, _signature_of(signature, exact))
        return cls(
            steps=steps,
            signature=signature,
            exact=exact,
            nodes=merge_nodes(exact, label),
            num_refused=num_refused,
            form=form,
            forms=forms,
        )

    def form_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] the normal form of each node; that of any text at a goal."""
        return self.form[nodes.text_of_node]

    def by_similarity(self, embedder: Embedder, threshold: float) -> tuple[Nodes, int]:
        """Merge each node with the most similar one before it, if it is similar enough."""
        states = np.flatnonzero(self.nodes.text_of_node >= 0)
        texts = [self.forms[code] for code in self.form_of(self.nodes)[states].tolist()]
        representative, num_refused = join_most_similar(
            embed_distinct(embedder, texts),
            self.nodes.group_of_node[states],
            self.signature_of(self.nodes)[states],
            threshold,
        )
        label = np.arange(len(self.nodes.text_of_node))
        label[states] = states[representative]
        return merge_nodes(self.nodes, label), num_refused

    def by_segments(self, evidence: Evidence) -> tuple[Nodes, int]:
        """Merge the nodes whose segments are the same, but for those that come and go."""
        segmented = cut(self.forms)
        identity = identities(
            segmented,
            evidence.is_noise(segmented.names),
            in_order=bool((self.signature == UNKNOWN).all()),
        )
        key = _keys(self.nodes, identity[self.form_of(self.nodes)])
        label, num_refused = unite(key, self.signature_of(self.nodes))
        return merge_nodes(self.nodes, label), num_refused

    def signature_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] the guard's signature of each node."""
        return _signature_of(self.signature, nodes)


def _signature_of(signature_of_step: Ints, nodes: Nodes) -> Ints:
    return signature_of_nodes(signature_of_step, nodes.state_of_step, len(nodes.text_of_node))


def _keys(nodes: Nodes, code: Ints) -> Ints:
    """Return [num_nodes] numbers that are equal in one group with one code; a goal has its own."""
    key = nodes.group_of_node * (int(code.max(initial=0)) + 1) + code
    is_goal = nodes.text_of_node < 0
    key[is_goal] = -1 - np.flatnonzero(is_goal)
    return key


def unite(key: Ints, signature: Ints) -> tuple[Ints, int]:
    """Label nodes that have one key and signatures that allow it.

    Args:
        key: [num_nodes] what must be equal.
        signature: [num_nodes]; a node without one joins the first signature of its key.

    Returns:
        [num_nodes] labels, and how many more labels than keys the signatures made.
    """
    key_code, keys = factorise(key)
    known = np.flatnonzero(signature != UNKNOWN)
    joins = np.full(len(keys), UNKNOWN)
    joins[key_code[known[::-1]]] = signature[known[::-1]]
    effective = np.where(signature == UNKNOWN, joins[key_code], signature)
    label, labels = factorise(key_code * (int(effective.max(initial=0)) + 2) + effective + 1)
    return label, len(labels) - len(keys)


def _report(exact: Nodes, nodes: Nodes, num_refused: int, before: int, after: int) -> MergeReport:
    return MergeReport(
        num_texts=int((exact.text_of_node >= 0).sum()),
        num_states=int((nodes.text_of_node >= 0).sum()),
        num_refused=num_refused,
        num_contradictions_before=before,
        num_contradictions=after,
    )
