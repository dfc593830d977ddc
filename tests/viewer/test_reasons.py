"""Why a step has its advantage, told by the metadata of its credit; numbers worked out by hand.

In the worked example the returns of x, y, z are 10, 0 and -0.1: their mean is 3.3. From A the group
takes five steps: x's a and c, y's c, z's refused q and z's a. Of those c leads to C, 1 from the
goal, so GraphGPO's step reward is 10 · 0.1² = 0.1 there; B is 2 from A, so 3 from the goal, and so
on.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import ESTIMATORS, configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.schema import CONFIGURATION_KEY
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.estimators import words_of
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.steps.reasons import GroupSteps, reasons
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example, write_store

HERE = {"run_id": "r0", "iteration": 0}


def why(store: Store, estimator: str, name: str = "y", step: int = 0) -> list[str]:
    words = words_of(store, **HERE, estimator=estimator)
    group = task_steps(store, **HERE, task_id="t0")
    return reasons(
        steps(store, **HERE, trajectory_id=name),
        step,
        estimator,
        explanation=words.explanation,
        group=GroupSteps(group, penalty=words.penalty),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    names = ("grpo", "rloo", "gigpo", "hgpo", "graphgpo", "g2po", "graft", "spo3", "rewardflow")
    return credited(tmp_path_factory.mktemp("why") / "s", worked_example(), names=names)


def test_grpo_compares_the_return_of_the_trajectory(store: Store):
    # (0 - 3.3) / 5.8026… = -0.5687
    assert why(store, "grpo") == [
        "grpo gives -0.57: the return of its rollout is 0, against a mean of 3.3 over the 3 "
        "rollouts of its group, in standard deviations."
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


def test_rloo_compares_it_with_the_others(store: Store):
    # The others' mean is (10 - 0.1) / 2 = 4.95.
    assert why(store, "rloo") == [
        "rloo gives -4.95: the return of its rollout is 0, against a mean of 4.95 over the 2 "
        "other rollouts of its group."
    ]


def test_gigpo_compares_what_followed_from_the_same_state(store: Store):
    # With 0.95: x has 10·0.95³ = 8.57375 and 10·0.95 = 9.5, y 0, z -0.1 and 0: the mean is 3.59475.
    total, episode, step = why(store, "gigpo", "x", 0)
    assert total.endswith(": the episode part, and the step part.")
    assert episode.startswith("Episode part +1.15: the return of its rollout is 10, against a")
    assert step.startswith("Step part +1.0")
    assert step.endswith(
        ": the return that followed, times 0.95 for each step that it came later is 8.57, against "
        "a mean of 3.59 over the 5 steps of its group from this state, in standard deviations."
    )


def test_graphgpo_compares_the_worth_of_where_the_step_led(store: Store):
    sql = """
        SELECT avg(graphgpo_step_reward) AS mean FROM enriched
        WHERE task_id = 't0' AND state_id = 0
    """
    (mean,) = run_trusted_query(store, sql).table["mean"].to_pylist()
    step = why(store, "graphgpo")[-1]
    # c leads to C, from which d wins: 10 · 0.1^(1 + 1).
    assert f"from where it led is 0.1, against a mean of {mean:.3g} over the 5 steps" in step


def test_a_step_that_nothing_is_compared_with_says_so(store: Store):
    assert why(store, "gigpo", "x", 1)[-1] == (
        "Step part +0.00: the return that followed, times 0.95 for each step that it came later; "
        "no other step of its group starts from this state, so it is compared with none."
    )


def test_two_comparisons_are_joined(store: Store):
    step = why(store, "g2po")[-1]
    assert ": the mean return of the state it led to, against the 5 steps of its group" in step
    assert "; and its gain in that mean return is " in step
    assert "over all 8 steps of its group" in step


def test_each_transition_counts_once_for_graft(store: Store):
    # From A: to B by a, to C by c, to itself by q.
    step = why(store, "graft")[-1]
    assert "over the 3 transitions from this state, each counted once" in step


def test_recent_states_have_no_number(store: Store):
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
    # The mean over steps is not that over trajectories, which is all that the viewer can count.
    assert episode.endswith(": the return of its rollout, against the 3 rollouts of its group.")
    assert step.endswith("over the 5 steps of its group from this state.")


def test_a_penalty_is_taken_off_the_rewards(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    settings = CreditSettings(estimators=configure(["grpo"]), invalid_action_penalty=0.3)
    assign_credit(store, settings)
    # z's first action was refused: -0.1 - 0.3. The mean is 9.6 / 3.
    assert "is -0.4, against a mean of 3.2 over" in why(store, "grpo", "z")[0]


def test_a_group_of_one_has_nobody_to_compare_with(tmp_path: Path):
    store = credited(tmp_path / "s", trajectory("y", "A a B"), names=("grpo", "rloo"))
    for name in ("grpo", "rloo"):
        (told,) = why(store, name)
        assert told.endswith("; its group has no other rollout to compare with.")


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


def test_without_a_unit_the_difference_is_the_credit_itself(tmp_path: Path):
    names = [row.name for row in ESTIMATORS if not row.inputs]
    plain = [
        row.name for row in ESTIMATORS if row.name in names and hasattr(row.options, "normalize")
    ]
    store = write_store(tmp_path / "s", worked_example())
    settings = [f"{name}.normalize=none" for name in plain]
    chosen = configure(names, [*settings, "discounted.baseline=group"])
    assign_credit(store, CreditSettings(estimators=chosen, invalid_action_penalty=0.3))
    group = task_steps(store, **HERE, task_id="t0")
    num_checked = 0
    for name in names:
        words = words_of(store, **HERE, estimator=name)
        assert words.explanation is not None
        looked_up = GroupSteps(group, penalty=words.penalty)
        for part, several in words.explanation.parts.items():
            for row, value in enumerate(group[f"{name}_{part}"].to_pylist()):
                if len(several) > 1 or several[0].among in ("nobody", "past"):
                    continue
                numbers, own, among = looked_up.compared(row, several[0], estimator=name)
                if numbers is not None and np.isfinite(numbers[own]) and among.sum() > 1:
                    difference = numbers[own] - numbers[among].mean()
                    assert value == pytest.approx(difference, abs=1e-5), name
                    num_checked += 1
    assert num_checked > 80
