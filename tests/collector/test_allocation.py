"""How many decisions a state gets, from what credit has counted."""

from pathlib import Path

import polars as pl
import pytest

from graphcredit.collector.environments.base import Observation, Transition
from graphcredit.collector.playing.branching.allocation import Allocation, StateScore
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import InputError, OptionError
from tests.credit.other_version import as_made_before
from tests.worlds import trajectory, worked_example, write_store


def _credited(store: Store, *settings: str) -> Store:
    assign_credit(store, CreditSettings(estimators=configure(["spo3"], settings)))
    return store


def _read(store: Store, *task_ids: str) -> Allocation:
    return Allocation.read(store, run_id="r0", task_ids=task_ids, tree_size=8)


def _to(state: str, *, success: bool = False) -> Transition:
    return Transition(
        observation=Observation(
            state=state, text=None, admissible_actions=None, oracle_actions=None,
        ),
        reward=0.0,
        cost=1.0,
        is_action_valid=True,
        terminated=success,
        success=success,
    )  # fmt: skip


def test_states_get_as_many_decisions_as_their_score_is_worth(tmp_path: Path):
    """One of three trajectories succeeded: T = 4 and S = 4 ** -p; nobody acted in D."""
    store = _credited(write_store(tmp_path / "store", worked_example()))
    allocation = _read(store, "t0")
    # A: p = 1/3, S = 0.63, 8 S = 5.04; C: p = 1/2 - 2.5e-7, 8 S is a little above 4
    assert [allocation.num_rollouts("t0", state) for state in "ACD"] == [6, 5, 8]
    assert allocation.scores["t0", "A"].num_total == 3
    assert allocation.scores["t0", "A"].score == pytest.approx(4 ** (-1 / 3), abs=1e-6)


def test_a_state_that_failed_often_gets_none_and_one_that_is_mastered_a_single_one(tmp_path: Path):
    failed = [trajectory(f"f{number}", "A a B") for number in range(10)]
    won = [trajectory(f"w{number}", "C c won", success=True) for number in range(10)]
    store = _credited(write_store(tmp_path / "store", *failed, *won))
    # C: S = 21 ** -1 = 0.048, 8 S = 0.38; in B all ended, nobody acted
    assert [_read(store, "t0").num_rollouts("t0", state) for state in "ABC"] == [0, 8, 1]


def test_states_that_are_not_in_the_history_get_all_there_are(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    assert _read(store, "t0").scores == {}
    assert _read(store, "t0").num_rollouts("t0", "A") == 8
    _credited(store, "spo3.g_max=5")
    allocation = _read(store, "t0")
    assert allocation.num_rollouts("t0", "elsewhere") == 5
    assert allocation.num_rollouts("t1", "A") == 5


def test_only_what_concerns_the_tasks_is_read(tmp_path: Path):
    store = _credited(write_store(tmp_path / "store", worked_example(), worked_example("t1")))
    assert {task_id for task_id, _ in _read(store, "t1").scores} == {"t1"}
    assert _read(store, "t2").scores == {}


def test_iterations_that_are_counted_are_no_longer_played_by_the_counts(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    path = store.history_path("r0")
    _read(store, "t0").check_precedes(0, path)
    for iteration in (2, 3):
        write_store(store.root, worked_example(), iteration=iteration)
    allocation = _read(_credited(store), "t0")
    assert allocation.iterations == (0, 2, 3)
    allocation.check_precedes(4, path)
    with pytest.raises(
        OptionError,
        match=r"iteration 1 is to be played, but .*r0/state_scores.parquet also counts iterations "
        r"2, 3, .* an --iteration after 3; .* steps and credit of iterations 1 and above",
    ):
        allocation.check_precedes(1, path)


def test_a_step_is_worth_its_novelty_the_drop_in_score_and_success():
    def score(num_total: int, value: float) -> StateScore:
        return StateScore(num_total=num_total, score=value, num_rollouts=1)

    scores = {("t0", "A"): score(5, 0.75), ("t0", "B"): score(9, 0.5)}
    allocation = Allocation(tree_size=8, scores=scores, omega_k=0.2)
    # w = 0.5 / e = 0.1839
    assert allocation.step_reward("t0", "A", _to("A")) == 0.0
    assert allocation.step_reward("t0", "A", _to("B")) == pytest.approx(
        0.1839 + 0.3161 * 0.25, abs=1e-4
    )
    assert allocation.step_reward("t0", "A", _to("C")) == pytest.approx(
        0.1839 - 0.3161 * 0.25, abs=1e-4
    )
    won = allocation.step_reward("t0", "A", _to("B", success=True))
    # the goal is no state that anybody acts in, whatever its text: S = 1
    assert won == pytest.approx(0.1839 - 0.3161 * 0.25 + 0.5, abs=1e-4)
    # nothing is known of X and Y: only that they differ
    assert allocation.step_reward("t0", "X", _to("Y")) == 0.5


def test_step_rewards_are_those_that_credit_gives_the_next_trajectory(tmp_path: Path):
    store = _credited(write_store(tmp_path / "store", worked_example()))
    allocation = _read(store, "t0")
    steps = ["A a B", "B b B", "B b A", "A c C", "C d X"]
    path = "A a B b B b A c C d X"
    write_store(store.root, trajectory("n", path, success=True), iteration=1)
    _credited(store)
    credit = pl.read_parquet(store.root / "credit/run_id=r0/iteration=000001/*.parquet")
    worth = [
        allocation.step_reward("t0", step[0], _to(step[-1], success=step[-1] == "X"))
        for step in steps
    ]
    assert credit["spo3_step_reward"].to_list() == pytest.approx(worth, abs=1e-6)


def test_counts_by_the_older_formula_are_refused_until_they_are_counted_anew(tmp_path: Path):
    store = _credited(write_store(tmp_path / "store", worked_example()))
    as_made_before(store)
    with pytest.raises(
        InputError,
        match=r"r0/state_scores\.parquet was made by another version, or does not state "
        r"one\. Run `graphcredit credit STORE --run r0 --estimator spo3`",
    ):
        _read(store, "t0")
    assert _read(_credited(store), "t0").num_rollouts("t0", "A") == 6


def test_a_state_whose_text_rules_change_is_known_by_its_first_text(tmp_path: Path):
    rollouts = [trajectory(f"w{number}", "Hall c won", success=True) for number in range(12)]
    store = write_store(tmp_path / "store", *rollouts)
    merge = MergeSettings(normalise=("casefold",))
    assign_credit(store, CreditSettings(estimators=configure(["spo3"]), merge=merge))
    # S = 13 ** -1, 8 S = 0.62: known, and mastered; nothing is known of another writing
    assert [_read(store, "t0").num_rollouts("t0", text) for text in ("Hall", "HALL")] == [1, 8]
