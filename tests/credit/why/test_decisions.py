"""Which decisions mattered, against a slow reference, and the words for them."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import graphcredit
from graphcredit.asking import Decisions
from graphcredit.credit.why.decisions import (
    ComparedDecision,
    decision_of,
    decisions,
    decisions_of_task,
)
from graphcredit.credit.why.sentences import coded, gap_of, link, sentence, trust
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.outcomes import are_graded
from tests.cli.in_process import run

WALKS: tuple[tuple[str, bool], ...] = (
    *[("hall left room open", True)] * 3,
    ("hall left room sleep room sleep", False),
    *[("hall right cellar wait", False)] * 3,
    ("hall right cellar left room open", True),
)
"""States and actions of a rollout by turns, and whether it won."""


def store_of(folder: Path, walks: Any = WALKS, scores: Any = None) -> Store:
    rows: list[dict[str, Any]] = []
    for number, (walk, won) in enumerate(walks):
        words = walk.split()
        num_steps = len(words) // 2
        for step in range(num_steps):
            is_last = step == num_steps - 1
            reward = float(won) if scores is None else scores[number]
            rows.append(
                {"task": "t", "episode": f"e{number}", "t": step, "obs": words[2 * step]}
                | {"action": words[2 * step + 1], "reward": reward * is_last, "done": is_last}
                | {"success": won if is_last else None}
            )
    graphcredit.record(pl.DataFrame(rows), folder)
    assert run("credit", folder, "-e", "reach").exit_code == 0
    return Store(folder)


def test_a_decision_is_compared_with_those_who_were_there_and_never_did_it(tmp_path: Path):
    shown = decisions(store_of(tmp_path / "store"), most=9)
    by = {(each.state, each.action): each for each in shown}
    left = by["hall", "left"]
    assert (left.num_took, left.took, left.num_others, left.others) == (4, 0.75, 4, 0.25)
    opened, slept = by["room", "open"], by["room", "sleep"]
    assert (opened.num_took, opened.took, opened.num_others, opened.others) == (4, 1.0, 1, 0.0)
    assert (slept.num_took, slept.trajectory_id, slept.won) == (1, slept.trajectory_id, False)
    assert left.gain > 0 > slept.gain
    assert [each.weight for each in shown] == sorted((e.weight for e in shown), reverse=True)


def test_all_numbers_are_those_of_the_steps(tmp_path: Path):
    store = store_of(tmp_path / "store")
    taken: defaultdict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    there: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for number, (walk, won) in enumerate(WALKS):
        words = walk.split()
        for state, action in zip(words[::2], words[1::2], strict=True):
            taken[state, action][f"e{number}"] = won
            there[state][f"e{number}"] = won
    for each in decisions(store, most=9):
        mine, all_there = taken[each.state, each.action], there[each.state]
        others = [won for name, won in all_there.items() if name not in mine]
        assert (each.num_took, each.num_others) == (len(mine), len(others))
        assert each.took == pytest.approx(sum(mine.values()) / len(mine))
        assert each.others == pytest.approx(sum(others) / len(others))


def test_a_good_step_is_shown_by_a_rollout_that_failed_all_the_same(tmp_path: Path):
    left = next(d for d in decisions(store_of(tmp_path / "store"), most=9) if d.action == "left")
    assert not left.won
    assert sentence(left).endswith(
        f"This rollout failed all the same, ending at step {left.num_steps - 1}."
    )


def test_a_mistake_is_shown_by_a_rollout_that_it_lost(tmp_path: Path):
    right = next(d for d in decisions(store_of(tmp_path / "store"), most=9) if d.action == "right")
    assert (right.gain < 0, right.took, right.won) == (True, 0.25, False)
    assert "all the same" not in sentence(right)


def test_a_good_end_is_shown_by_a_rollout_that_won_with_it(tmp_path: Path):
    walks = [("hall open", True)] * 3 + [("hall open", False)] + [("hall wait", False)] * 3
    opened = next(d for d in decisions(store_of(tmp_path / "store", walks)) if d.action == "open")
    assert (opened.gain > 0, opened.took, opened.won) == (True, 0.75, True)


def test_a_rollout_without_a_decision_is_known(tmp_path: Path):
    store = store_of(tmp_path / "store", [("hall open", True), ("attic wait", False)])
    place: dict[str, Any] = {"run_id": "imported", "iteration": 0, "task_id": "t"}
    names = [row.trajectory_id for row in decisions_of_task(store, **place)]
    assert names
    assert decisions(store, trajectory_id=names[0]) == []


def test_equal_returns_are_no_scores(tmp_path: Path):
    """Where all failed, or all won, with one return, the viewer's header and `why` say the same."""
    store = store_of(tmp_path / "store", [("hall open", False), ("hall wait", False)])
    place: dict[str, Any] = {"run_id": "imported", "iteration": 0, "task_id": "t"}
    told = decisions_of_task(store, **place)
    assert told
    assert not any(each.is_graded for each in told)
    rows = [{"return": each.outcome, "success": each.won} for each in told]
    assert not are_graded(pa.Table.from_pylist(rows))


def test_a_notebook_shows_ids_as_code():
    told = Decisions((replace(EXAMPLE, trajectory_id="![x](y) <img>"),))
    assert told._repr_markdown_().startswith("1. Step 26 of failed `![x](y) <img>`, `take")


def test_every_step_has_its_decision(tmp_path: Path):
    store = store_of(tmp_path / "store")
    where: dict[str, Any] = {"run_id": "imported", "iteration": 0, "task_id": "t"}
    for each in decisions(store, most=9):
        place: dict[str, Any] = {"trajectory_id": each.trajectory_id, "step_index": each.step_index}
        assert decision_of(store, **where, **place) == each
    first = next(d for d in decisions(store, most=9) if d.action == "right")
    alone = decision_of(store, **where, trajectory_id=first.trajectory_id, step_index=99)
    assert alone is None


def test_what_all_did_is_compared_with_nothing(tmp_path: Path):
    walks = [("hall left room open", True), ("hall left room wait", False)]
    store = store_of(tmp_path / "store", walks)
    [*_, one] = decisions(store)
    place: dict[str, Any] = {"run_id": "imported", "iteration": 0, "task_id": "t", "step_index": 0}
    told = decision_of(store, **place, trajectory_id=one.trajectory_id)
    assert told is not None
    assert "all 2 rollouts that were here did so: nothing to compare it with." in sentence(told)
    assert not any("all the same" in sentence(replace(told, gain=g)) for g in (-1.0, 1.0))


def test_scores_are_compared_as_means(tmp_path: Path):
    walks = [("hall left", False)] * 3 + [("hall right", False)] * 3
    store = store_of(tmp_path / "store", walks, scores=[0.8, 0.7, 0.6, 0.1, 0.2, 0.3])
    first = decisions(store)[0]
    assert (first.is_graded, first.action, first.took, first.others) == (
        True,
        "left",
        pytest.approx(0.7),
        pytest.approx(0.2),
    )
    assert "earned 0.7 on average, 3 did something else and earned 0.2" in sentence(first)


EXAMPLE = ComparedDecision(
    run_id="games",
    iteration=3,
    task_id="t",
    trajectory_id="t:3",
    step_index=26,
    state="a hall",
    action="take keycard",
    gain=0.4,
    num_took=9,
    took=2 / 3,
    num_others=23,
    others=1 / 23,
    is_graded=False,
    goal_distance=3.0,
    next_goal_distance=2.0,
    reach_advantage=1.0,
    num_steps=42,
    won=False,
    outcome=0.0,
    weight=1.0,
)


def test_a_rollout_with_a_score_is_not_called_failed():
    scored = replace(EXAMPLE, is_graded=True, took=0.8, others=0.25, outcome=0.75)
    assert sentence(scored) == (
        "Step 26 of t:3 (earned 0.75), `take keycard`, 3 → 2 from the goal: 9 rollouts did so here "
        "and earned 0.8 on average, 23 did something else and earned 0.25."
    )
    assert "t:3 (won, earned 0.75), `take" in sentence(replace(scored, won=True))
    few = sentence(replace(scored, num_took=2))
    assert few.endswith("earned 0.25 (of few rollouts, so it may be chance).")


def test_backticks_of_a_log_do_not_end_the_code_of_markdown():
    assert coded("ls") == "`ls`"
    assert coded("`a`\n```b```") == "```` `a` ```b``` ````"
    assert "``" in sentence(replace(EXAMPLE, action="echo `<img src=x>`")).split("<img")[0]


def test_the_sentence_by_hand():
    """Shares with a win and a failure added: 7/11 and 2/25; √(.0210 + .0029) = .155."""
    error = (7 * 4 / 11**3 + 2 * 23 / 25**3) ** 0.5
    assert gap_of(EXAMPLE) == (pytest.approx(7 / 11 - 2 / 25), pytest.approx(error))
    assert sentence(EXAMPLE) == (
        "Step 26 of failed t:3, `take keycard`, 3 → 2 from the goal: 9 rollouts did so here and "
        "67% won, 23 did something else and 4% won (+56 ± 31 points). This rollout failed all "
        "the same, ending at step 41."
    )
    few = replace(EXAMPLE, num_took=1, took=1.0, num_others=1, others=0.0)
    assert "so it may be chance" in sentence(few)
    assert (trust(EXAMPLE), trust(few)) == ("✓ beyond chance", "⚠ may be chance")
    graded = replace(few, is_graded=True, num_others=2)
    assert (trust(graded), trust(replace(few, others=None))) == (
        "⚠ few rollouts",
        "⚠ nothing to compare it with",
    )
    # What the others did says the opposite of the gain: no contradiction is put on top.
    assert "all the same" not in sentence(replace(EXAMPLE, took=0.0))
    lost = replace(EXAMPLE, next_goal_distance=None)
    assert ", 3 from the goal, to where nobody won any more: " in sentence(lost)
    assert ", 3 from the goal, as its last step: " in sentence(replace(lost, num_steps=27))
    assert link(EXAMPLE) == (
        "/trajectory?run=games&iteration=3&task=t&trajectory=t%3A3&step=26&estimator=reach"
    )
