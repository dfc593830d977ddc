"""The nodes of one batch after the rules, from where a merge goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.admissible import (
    lasting_signatures,
    signature_of_nodes,
    unite,
)
from graphcredit.credit.merging.recognise import Alike, Identities
from graphcredit.credit.merging.rules import Rule, normalise
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes, exact_nodes, merge_nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class Union:
    """The states that a merge made of candidates."""

    nodes: Nodes
    """One node for each state."""
    num_refused: int
    """Merges that the guard did not allow."""
    num_undecided: int = 0
    """Pairs of states that stayed apart for want of evidence."""


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

    def keys(self, code: Ints) -> Ints:
        """Return [num_nodes] numbers: equal in one group with one code; a goal has its own."""
        return _keys(self.nodes, code)

    def identities(self, nodes: Nodes, texts: list[str], alike: Alike) -> Identities:
        """Return what merged nodes are recognised by.

        Args:
            nodes: The nodes after the merge.
            texts: [num_nodes before the merge] what is left of each text.
            alike: The merge, as a comparison.
        """
        first = np.full(len(nodes.text_of_node), len(self.nodes.text_of_node))
        np.minimum.at(first, nodes.state_of_step, self.nodes.state_of_step)
        np.minimum.at(first, nodes.target_of_step, self.nodes.target_of_step)
        signature = lasting_signatures(self.signature, nodes.state_of_step, len(first))
        return Identities(
            texts=[texts[candidate] for candidate in first.tolist()],
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
