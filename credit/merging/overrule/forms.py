"""The normal form that all rules leave of each text of a batch, task by task."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.overrule.apply import find
from graphcredit.credit.merging.rules import Rule, normalise
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import array_of, numpy_of
from graphcredit.store.state_rules.file import StateRules

_BETWEEN = "\x1f"


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
    raw: list[str] = texts.to_pylist()
    if not overrule:
        left, kept, touched = [raw[code] for code in key.tolist()], [""] * len(key), ()
    else:
        left, kept, touched = _overruled(overrule, list(kinds), raw, key, times)
    code, forms = normalise(array_of(left, pa.large_string()), rules)
    kept_coded = array_of(["", *kept], pa.large_string()).dictionary_encode()
    return Forms(
        key=key,
        code=code,
        kept=numpy_of(kept_coded.indices).astype(np.int64)[1:],
        kind_of_group=kind_of_group,
        num_texts=len(texts),
        texts=forms,
        kept_texts=kept_coded.dictionary.to_pylist(),
        touched=touched,
    )


def _overruled(
    overrule: StateRules, kinds: Sequence[Sequence[bool]], raw: list[str], key: Ints, times: Ints
) -> tuple[list[str], list[str], tuple[int, ...]]:
    """Return what is left and what is kept of each text, and what each rule touched."""
    left: list[str] = []
    kept: list[str] = []
    touched = [0] * len(kinds[0] if kinds else ())
    for number, count in zip(key.tolist(), times.tolist(), strict=True):
        kind, code = divmod(number, len(raw))
        form, pieces, meant = _applied(overrule, kinds[kind], raw[code])
        left.append(form)
        kept.append(pieces)
        for rule in meant:
            touched[rule] += count
    return left, kept, tuple(touched)


def _applied(rules: StateRules, holds: Sequence[bool], text: str) -> tuple[str, str, list[int]]:
    """Return what is left of a text, what is kept of it, and which rules meant something in it."""
    left, meant = text, list[int]()
    kept: list[str] = []
    for number, rule in enumerate(rules.ignore):
        if holds[number]:
            match = find(rule, left)
            left = match.text
            meant += [number] * bool(match.pieces)
    for number, rule in enumerate(rules.keep, len(rules.ignore)):
        if holds[number]:
            pieces = find(rule, text).pieces
            kept += [f"{number}{_BETWEEN}{piece}" for piece in pieces]
            meant += [number] * bool(pieces)
    return left, _BETWEEN.join(sorted(kept)), meant
