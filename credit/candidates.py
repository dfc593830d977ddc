"""The nodes of one batch after the rules, and the merges that go on from there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.arrays import Ints, factorise
from graphcredit.credit.embedding import Embedder, embed_distinct
from graphcredit.credit.evidence import Judge, revise
from graphcredit.credit.greedy import join_most_similar
from graphcredit.credit.guard import UNKNOWN, signature_of_nodes
from graphcredit.credit.normalise import Rule, normalise
from graphcredit.credit.segments import cut, identities, outcome_classes, visits_of
from graphcredit.credit.states import Nodes, exact_nodes, merge_nodes
from graphcredit.credit.trajectories import Steps

_REVISIONS = 2
"""How often `segments` looks at the states it found for further evidence."""


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

    def by_segments(self, judge: Judge) -> tuple[Nodes, int]:
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
        return nodes, num_refused

    def _by_identity(self, identity: Ints, signature: Ints) -> tuple[Nodes, int]:
        label, num_refused = unite(_keys(self.nodes, identity), signature)
        return merge_nodes(self.nodes, label), num_refused

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
