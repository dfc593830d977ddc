"""The normal form that all rules leave of each text of a batch, task by task.

The rules of `states.toml` come first.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.merging.rules import Rule, normalise
from graphcredit.credit.steps.arrays import Bools, Ints
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import array_of, arrow_of, numpy_of
from graphcredit.store.state_rules import StateRule, StateRules

_START, _STOP, _BETWEEN = "\x1d", "\x1e", "\x1f"
_MARKED = re.compile(f"{_START}([^{_STOP}]*){_STOP}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Forms:
    """Texts as a merge gets them, and what no merge may unite."""

    key: Ints
    """[n] kind of task · number of texts + text, ascending."""
    code: Ints
    """[n] the normal form of each."""
    kept: Ints
    """[n] what is kept of each; 0 where that is nothing."""
    kind_of_group: Ints
    """[num_groups] tasks for which the same rules hold are of one kind."""
    num_texts: int
    texts: list[str]
    """The normal form of each code."""
    kept_texts: list[str]
    """What is kept, of each code; it begins with nothing."""
    touched: tuple[int, ...]
    """For each rule, in how many texts of how many groups there was something that it means."""

    def code_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] the normal form of each node; that of any text at a goal."""
        return self.code[self._row(nodes)]

    def kept_of(self, nodes: Nodes) -> Ints:
        """Return [num_nodes] what is kept of each node; anything at a goal."""
        return self.kept[self._row(nodes)]

    def _row(self, nodes: Nodes) -> Ints:
        key = self.kind_of_group[nodes.group_of_node] * self.num_texts + nodes.text_of_node
        return np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)


def forms_of(
    nodes: Nodes, texts: pa.Array, tasks: Sequence[str], overrule: StateRules, rules: Sequence[Rule]
) -> Forms:
    """Apply the user's rules, then the others, to each text in each kind of task.

    Args:
        nodes: One for each text in its group.
        texts: [num_texts] the texts.
        tasks: [num_groups] the task of each group.
        overrule: The user's rules.
        rules: Applied to what these leave.
    """
    every = [*overrule.ignore, *overrule.keep]
    holds = [tuple(rule.is_for(task) for rule in every) for task in tasks]
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(holds))}
    kind_of_group = np.array([kinds[kind] for kind in holds], np.int64)
    is_state = nodes.text_of_node >= 0
    of_node = kind_of_group[nodes.group_of_node] * len(texts) + nodes.text_of_node
    key, times = np.unique(of_node[is_state], return_counts=True)
    kind, text = np.divmod(key, max(len(texts), 1))
    raw = texts.take(arrow_of(text)).cast(pa.large_string())
    held = np.array([*kinds], bool).reshape(len(kinds), len(every))[kind]
    left, kept, meant = _overruled(overrule, held, raw)
    code, forms = normalise(left, rules)
    kept_coded = array_of(["", *kept], pa.large_string()).dictionary_encode()
    return Forms(
        key=key,
        code=code,
        kept=numpy_of(kept_coded.indices).astype(np.int64)[1:],
        kind_of_group=kind_of_group,
        num_texts=len(texts),
        texts=forms,
        kept_texts=kept_coded.dictionary.to_pylist(),
        touched=tuple(int(times[each].sum()) for each in meant),
    )


def _overruled(
    overrule: StateRules, holds: Bools, raw: pa.Array
) -> tuple[pa.Array, list[str], list[Bools]]:
    """Return what is left and what is kept of each text, and [num_rules] where each rule matched.

    Args:
        overrule: The rules.
        holds: [num_texts, num_rules] which of them hold for a text.
        raw: [num_texts] the texts.
    """
    left, meant = raw, list[Bools]()
    kept: list[list[str]] = [[] for _ in range(len(raw))]
    for number, rule in enumerate(overrule.ignore):
        meant.append(_matches(rule, left) & holds[:, number])
        shorter = pc.replace_substring_regex(left, pattern=rule.text, replacement=rule.by)
        left = pc.if_else(arrow_of(meant[-1]), shorter, left)
    for number, rule in enumerate(overrule.keep, len(overrule.ignore)):
        meant.append(_matches(rule, raw) & holds[:, number])
        marked = pc.replace_substring_regex(
            raw, pattern=rule.text, replacement=rf"{_START}\0{_STOP}"
        )
        for row in np.flatnonzero(meant[-1]).tolist():
            pieces = _MARKED.findall(marked[row].as_py())
            kept[row] += [f"{number}{_BETWEEN}{piece}" for piece in pieces]
    return left, [_BETWEEN.join(sorted(pieces)) for pieces in kept], meant


def _matches(rule: StateRule, texts: pa.Array) -> Bools:
    return numpy_of(pc.match_substring_regex(texts, pattern=rule.text))
