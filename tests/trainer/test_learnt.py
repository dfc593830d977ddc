"""Why a training has taught nothing, from its metrics."""

from typing import Any

import pytest

from graphcredit.trainer.output.learning_signal import why_nothing_was_learnt


def _row(**values: Any) -> dict[str, Any]:
    sound = {"advantage_zero": 0.5, "learning_rate": 1e-3, "correction_mean": 1.0, "grad_norm": 0.2}
    return {**sound, **values}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("advantage_zero", 1.0, "all advantages are 0"),
        ("learning_rate", 0.0, "the learning rate was 0"),
        ("correction_mean", 0.0, "the correction gave every token the weight 0"),
        ("grad_norm", 0.0, "the gradient was 0 in every update"),
    ],
)
def test_nothing_is_learnt_where_every_update_lacks_the_same(name: str, value: float, why: str):
    nothing = _row(**{name: value})
    assert why_nothing_was_learnt([nothing, nothing]) == why
    assert why_nothing_was_learnt([nothing, _row()]) is None


def test_without_an_update_nothing_is_learnt():
    assert why_nothing_was_learnt([]) == "no update was made"
