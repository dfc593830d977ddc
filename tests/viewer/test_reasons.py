"""Why a step has its advantage, told by the metadata of its credit; numbers worked out by hand.

In the worked example the returns of x, y, z are 10, 0 and -0.1: their mean is 3.3.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import ESTIMATORS, configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.schema import CONFIGURATION_KEY
from graphcredit.viewer.queries.estimators import explanation
from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.steps.reasons import reasons
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example, write_store

HERE = {"run_id": "r0", "iteration": 0}


def why(store: Store, estimator: str, name: str = "y", step: int = 0) -> list[str]:
    said = explanation(store, **HERE, estimator=estimator)
    return reasons(steps(store, **HERE, trajectory_id=name), step, estimator, said)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    names = ("grpo", "rloo", "gigpo", "hgpo", "graphgpo", "g2po", "graft", "spo3", "rewardflow")
    return credited(tmp_path_factory.mktemp("why") / "s", worked_example(), names=names)


def test_grpo_compares_the_return_of_the_trajectory(store: Store):
    # (0 - 3.3) / 5.8026… = -0.5687
    assert why(store, "grpo") == [
        "grpo gives -0.57: the return of its rollout, against the rollouts of its group, in "
        "standard deviations."
    ]


def test_reach_says_where_the_step_was_what_its_action_earns_and_what_followed(tmp_path: Path):
    rows = [*trajectory("x", "S a M b won", success=True), *trajectory("y", "S a M c X")]
    store = credited(tmp_path / "s", rows, names=("reach",))
    total, *parts = why(store, "reach", "y", 1)
    assert total.endswith(
        ": outcome less baseline over the returns' spread, and less where few rollouts were "
        "compared; 0 is the group's least return, 1 its greatest."
    )
    # κ = 1, and the unknown earns the mean: V(M) = (1 + 0 + 1/2) / 3. To learn from, it earns 1/4,
    # and without the step M has (1 + 1/4) / 2 = 5/8.
    said = dict(line.partition(": ")[0].split() for line in parts)
    assert {name: float(value) for name, value in said.items()} == pytest.approx(
        {"Q": 0, "Value": 1 / 2, "Outcome": 0, "Baseline": 5 / 8, "Progress": -1}, abs=0.006
    )


def test_gigpo_compares_what_followed_from_the_same_state(store: Store):
    # With 0.95: x has 10·0.95³ = 8.57375 and 10·0.95 = 9.5, y 0, z -0.1 and 0: the mean is 3.59475.
    total, episode, step = why(store, "gigpo", "x", 0)
    assert total.endswith(": the episode part, and the step part.")
    assert episode.startswith("Episode part +1.15: the return of its rollout, against the")
    assert step.startswith("Step part +1.0")
    assert step.endswith(
        ": the return that followed, times 0.95 for each step that it came later, against the "
        "steps of its group from this state, in standard deviations."
    )


def test_two_comparisons_are_joined(store: Store):
    step = why(store, "g2po")[-1]
    assert ": the mean return of the state it led to, against the steps of its group from" in step
    assert "; and its gain in that mean return, against all steps of its group" in step


def test_each_transition_counts_once_for_graft(store: Store):
    step = why(store, "graft")[-1]
    assert "against the transitions from this state, each counted once" in step


def test_recent_states_are_named(store: Store):
    (told,) = why(store, "hgpo")
    assert told.endswith(
        "against the steps of its group with the same last states, in standard deviations."
    )


def test_weights_and_scales_are_those_of_the_options(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    chosen = configure(
        ["graphgpo"],
        ["graphgpo.step_weight=2.5", "graphgpo.normalize=none", "graphgpo.stat_over=steps"],
    )
    assign_credit(store, CreditSettings(estimators=chosen))
    total, episode, step = why(store, "graphgpo")
    assert total.endswith(": the episode part, and 2.5 times the step part.")
    assert episode.endswith(": the return of its rollout, against the rollouts of its group.")
    assert step.endswith("against the steps of its group from this state.")


@pytest.mark.parametrize(
    "said", [None, "text", {"total": 1, "parts": {}}, {"total": "", "parts": []}]
)
def test_credit_that_does_not_say_how_is_told_by_its_parts(tmp_path: Path, said: object):
    store = credited(tmp_path / "s", worked_example())
    (path,) = (shard.credit_path for shard in store.shards())
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    configuration = json.loads(metadata[CONFIGURATION_KEY])
    configuration["graphgpo"] |= {"explained": said}
    metadata[CONFIGURATION_KEY] = json.dumps(configuration).encode()
    pq.write_table(table.replace_schema_metadata(metadata), path)
    total, parts, note = why(store, "graphgpo")
    assert total == "graphgpo gives +0.52."
    assert parts.startswith("Its parts: episode part -0.57, step part +")
    assert note.startswith("This credit does not say what it compared")


def test_every_estimator_explains_every_part_that_it_writes():
    for row in ESTIMATORS:
        assert row.explains is not None, row.name
        explanation = row.explains(row.options())
        parts = set(row.writes) - {"step_reward", "advantage"}
        told = set(explanation.parts) | ({"step_advantage"} if explanation.total == "" else set())
        assert parts <= told, row.name
        assert explanation.total or "advantage" in explanation.parts, row.name
