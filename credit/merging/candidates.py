"""The nodes of one batch after the rules, and the merges that go on from there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from graphcredit.credit.merging.admissible import (
    UNKNOWN,
    lasting_signatures,
    signature_of_nodes,
    unite,
)
from graphcredit.credit.merging.compare import SameSegments, Similar, same_text
from graphcredit.credit.merging.embedding.ngram import Embedder, embed_distinct
from graphcredit.credit.merging.nearest import join_most_similar
from graphcredit.credit.merging.recognise import Alike, Identify, Identities
from graphcredit.credit.merging.rules import Rule, normalise
from graphcredit.credit.merging.segments.cut import cut, identities, outcome_classes, visits_of
from graphcredit.credit.merging.segments.evidence import Judge, revise
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes, exact_nodes, merge_nodes

_REVISIONS = 2
"""How often `segments` looks at the states it found for further evidence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Union:
    """The states that a merge made of candidates."""

    nodes: Nodes
    """One node for each state."""
    num_refused: int
    """Merges that the guard did not allow."""
    identify: Identify
    """Returns what the nodes are recognised by in other iterations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
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
    def after_rules(cls, steps: Steps, signature: Ints, rules: Sequence[Rule]) -> "Candidates":
        """Apply the rules to each distinct text and unite the nodes whose normal form is one."""
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

    def by_rules(self) -> Union:
        """Leave it at that."""
        return self._union(self.nodes, 0, same_text, self.texts)

    def by_similarity(self, embedder: Embedder, threshold: float) -> Union:
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
        alike = Similar(embedder=embedder, threshold=threshold)
        return self._union(merge_nodes(self.nodes, label), num_refused, alike, self.texts)

    def by_segments(self, judge: Judge) -> Union:
        """Merge the nodes whose segments are the same, but for those that are noise."""
        signature = self.signature_of(self.nodes)
        visits = visits_of(self.steps, self.nodes, signature)
        segmented = cut(self.texts())
        is_guarded = np.zeros(len(self.nodes.goal_of_group), bool)
        is_guarded[self.nodes.group_of_node[signature != UNKNOWN]] = True
        in_order = ~is_guarded[self.nodes.group_of_node]
        is_noise = judge.noise_in(segmented, visits)
        balance = judge.balance(segmented.names)
        nodes, num_refused = self._by_identity(identities(segmented, is_noise, in_order), signature)
        for _ in range(_REVISIONS):
            of_class = outcome_classes(self.steps, nodes, visits, signature)
            is_noise = revise(segmented, visits, of_class, is_noise, balance)
            identity = identities(segmented, is_noise, in_order)
            nodes, num_refused = self._by_identity(identity, signature)
        alike = SameSegments(
            segmented=segmented,
            group_of_text=self.nodes.group_of_node,
            is_noise=is_noise,
            in_order=in_order,
            judge=judge,
        )
        return self._union(nodes, num_refused, alike, alike.remaining)

    def _by_identity(self, identity: Ints, signature: Ints) -> tuple[Nodes, int]:
        label, num_refused = unite(_keys(self.nodes, identity), signature)
        return merge_nodes(self.nodes, label), num_refused

    def _union(
        self, nodes: Nodes, num_refused: int, alike: Alike, texts: Callable[[], list[str]]
    ) -> Union:
        identify = partial(self._identities, nodes, alike, texts)
        return Union(nodes=nodes, num_refused=num_refused, identify=identify)

    def _identities(self, nodes: Nodes, alike: Alike, texts: Callable[[], list[str]]) -> Identities:
        """Return what merged nodes are recognised by, from the texts of the nodes before."""
        first = np.full(len(nodes.text_of_node), len(self.nodes.text_of_node))
        np.minimum.at(first, nodes.state_of_step, self.nodes.state_of_step)
        np.minimum.at(first, nodes.target_of_step, self.nodes.target_of_step)
        of_candidate = texts()
        signature = lasting_signatures(self.signature, nodes.state_of_step, len(first))
        return Identities(
            texts=[of_candidate[candidate] for candidate in first.tolist()],
            signature=signature,
            alike=alike,
        )

    def texts(self) -> list[str]:
        """Return [num_nodes] the normal form of each node's text; that of any text at a goal."""
        return [self.forms[code] for code in self.form_of(self.nodes).tolist()]

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
