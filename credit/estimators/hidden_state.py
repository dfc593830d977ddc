"""How much of what an action leads to was decided before its state: what the states hide.

A graph of states takes it that where an action leads depends on its state alone. If states hide
something, two visits of one state that look alike are two places. Then an action leads to one place
more often where the visits came from the same state than where they came from different ones. In a
world of chance it does not. Over pairs of steps with one state and one action, a choice:

    other(choice)  share that led to one state, of the pairs that came from different states
    hidden         Σ (pairs from the same state that led to one state - other · pairs from the same)
                   / Σ (1 - other) · pairs from the same state

It is the share of the contradictions that the state before resolves. Choices without a pair that
came from different states say nothing.
"""

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs

_CAUTION = 2.0
"""Pairs that count as if they resolved nothing, so that one lucky pair says little."""


def hidden_share(batch: StepBatch) -> Floats:
    """Return `hidden` of every group, from 0, nothing, to 1. [num_groups].

    It is 0 in a group where no action contradicts itself, or no two equal steps came from one
    state.
    """
    before = np.roll(batch.state_of_step, 1)
    before[batch.trajectory_start[:-1]] = batch.num_nodes
    choice, _, _ = factorise_pairs(batch.state_of_step, batch.action_of_step)
    outcome, _, _ = factorise_pairs(choice, batch.target_of_step)
    origin, _, _ = factorise_pairs(choice, before)
    both, _, _ = factorise_pairs(origin, batch.target_of_step)
    num_choices = int(choice.max(initial=-1)) + 1
    pairs, agreeing, same, same_agreeing = (
        _pairs(code, choice, num_choices) for code in (choice, outcome, origin, both)
    )
    others = pairs - same
    other = np.divide(agreeing - same_agreeing, others, out=np.ones(num_choices), where=others > 0)
    is_told = others > 0
    resolved = np.where(is_told, same_agreeing - other * same, 0.0)
    contradicted = np.where(is_told, (1 - other) * same, 0.0)
    group = np.zeros(num_choices, np.int64)
    group[choice] = batch.group_of_step
    of_group = np.bincount(group, resolved, batch.num_groups)
    found: Floats = np.clip(of_group, 0.0, None) / (
        np.bincount(group, contradicted, batch.num_groups) + _CAUTION
    )
    return found


def _pairs(code: Ints, choice: Ints, num_choices: int) -> Floats:
    """Return [num_choices] how many pairs of steps have one code; a code is of one choice."""
    count = np.bincount(code).astype(np.float64)
    choice_of_code = np.zeros(len(count), np.int64)
    choice_of_code[code] = choice
    found = np.bincount(choice_of_code, count * (count - 1) / 2, num_choices)
    return found.astype(np.float64)
