"""The nodes of one batch after the rules, from where a merge goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.admissible import (
    UNKNOWN,
    lasting_signatures,
    signature_of_nodes,
    unite,
)
from graphcredit.credit.merging.overrule import Forms, forms_of
from graphcredit.credit.merging.rules import Rule
from graphcredit.credit.steps.arrays import Ints, factorise, factorise_pairs
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes, exact_nodes, merge_nodes
from graphcredit.store.parquet.numbers import array_of, arrow_of
from graphcredit.store.state_rules import StateRules

_NO_RULES = StateRules()
_AFTER = "\x1e"
"""Stands between what is kept of a state and its normal form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Union:
    """The states that a merge made of candidates."""

    nodes: Nodes
    """One node for each state."""
    num_refused: int
    """Merges that the guard did not allow."""


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
    form: Forms
    """The normal form of each text, and what the user's rules keep of it."""

    @classmethod
    def after_rules(
        cls, steps: Steps, signature: Ints, rules: Sequence[Rule], overrule: StateRules = _NO_RULES
    ) -> "Candidates":
        """Apply the rules to each distinct text and unite the nodes whose normal form is one.

        Args:
            steps: Complete trajectories, sorted.
            signature: [num_steps] from `guard.signatures`.
            rules: Applied in order.
            overrule: The user's rules, which are applied first.
        """
        exact = exact_nodes(steps)
        form = forms_of(exact, steps.state_texts, _tasks(steps, exact), overrule, rules)
        key = _keys(exact, form.code_of(exact), form.kept_of(exact))
        label, num_refused = unite(key, _signature_of(signature, exact))
        return cls(
            steps=steps,
            signature=signature,
            exact=exact,
            nodes=merge_nodes(exact, label),
            num_refused=num_refused,
            form=form,
        )

    @property
    def forms(self) -> list[str]:
        """The normal forms."""
        return self.form.texts

    def form_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] the normal form of each node; that of any text at a goal."""
        return self.form.code_of(nodes)

    def keys(self, code: Ints) -> Ints:
        """Return [num_nodes] numbers: equal in one group with one code; a goal has its own.

        Texts of which the user keeps different things have different ones.
        """
        return _keys(self.nodes, code, self.form.kept_of(self.nodes))

    def may_unite(self) -> Ints:
        """Return [num_nodes] numbers: different where no merge may unite two nodes.

        They are ascending if the user keeps nothing: those of the groups.
        """
        group, kept = self.nodes.group_of_node, self.form.kept_of(self.nodes)
        return group * len(self.form.kept_texts) + kept

    def names(self) -> pa.Table:
        """Return [num_nodes] what each state is known by in all iterations; anything at a goal.

        `identity`: its normal form, after what is kept. `signature`: of its admissible actions;
        null where none were logged, or the guard is off.
        """
        nodes = self.nodes
        signature = lasting_signatures(self.signature, nodes.state_of_step, len(nodes.text_of_node))
        return pa.table(
            {
                "identity": array_of(self._identities(), pa.string()),
                "signature": arrow_of(signature, is_null=signature == UNKNOWN),
            }
        )

    def _identities(self) -> list[str]:
        forms, kept = self.form_of(self.nodes).tolist(), self.form.kept_of(self.nodes).tolist()
        kept_texts = [f"{text}{_AFTER}" if text else "" for text in self.form.kept_texts]
        return [kept_texts[k] + self.forms[code] for code, k in zip(forms, kept, strict=True)]

    def signature_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] the guard's signature of each node."""
        return _signature_of(self.signature, nodes)

    def marks(self) -> Ints:
        """Return [num_nodes] what tells nodes apart for certain: the guard, and what is kept."""
        signature, kept = self.signature_of(self.nodes), self.form.kept_of(self.nodes)
        if len(self.form.kept_texts) == 1:
            return signature
        return factorise_pairs(factorise(signature)[0], kept)[0]


def _signature_of(signature_of_step: Ints, nodes: Nodes) -> Ints:
    return signature_of_nodes(signature_of_step, nodes.state_of_step, len(nodes.text_of_node))


def _tasks(steps: Steps, nodes: Nodes) -> list[str]:
    """Return [num_groups] the task of each group."""
    first = np.searchsorted(nodes.group_of_step, np.arange(len(nodes.goal_of_group)))
    return steps.task_texts.take(arrow_of(steps.task[first])).to_pylist()


def _keys(nodes: Nodes, code: Ints, kept: Ints) -> Ints:
    """Return [num_nodes] numbers: equal in one group with one code and what is kept.

    A goal has its own.
    """
    code = code * (int(kept.max(initial=0)) + 1) + kept
    key = nodes.group_of_node * (int(code.max(initial=0)) + 1) + code
    is_goal = nodes.text_of_node < 0
    key[is_goal] = -1 - np.flatnonzero(is_goal)
    return key
