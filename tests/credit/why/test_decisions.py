"""Which decisions mattered, against a slow reference, and their words and picture."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
    ranked_in,
)
from graphcredit.credit.why.picture import why_picture
from graphcredit.credit.why.report import why_in
from graphcredit.credit.why.sentences import coded, link, sentence, told_apart, trust
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.sql.catalog import with_views
from graphcredit.viewer.queries.outcomes import are_graded
from tests.cli.in_process import run

WALKS: tuple[tuple[str, bool], ...] = (
    *[("hall left room open", True)] * 3,
    ("hall left room sleep room sleep", False),
    *[("hall right cellar wait", False)] * 3,
    ("hall right cellar left room open", True),
)
"""States and actions of a rollout by turns, and whether it won."""


def store_of(folder: Path, walks: Any = WALKS, scores: Any = None, tasks: Any = None) -> Store:
    rows: list[dict[str, Any]] = []
    for number, (walk, won) in enumerate(walks):
        words = walk.split()
        num_steps = len(words) // 2
        for step in range(num_steps):
            is_last = step == num_steps - 1
            reward = float(won) if scores is None else scores[number]
            rows.append(
                {
                    "task": tasks[number] if tasks else "t",
                    "episode": f"e{number}",
                    "t": step,
                    "obs": words[2 * step],
                }
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
    assert left.credit > 0 > slept.credit
    assert (left.error, left.instead) == (pytest.approx(1 / 3), "right")  # 2 · (4/6 · 2/6) / 4
    assert left.weight == pytest.approx(0.5 - 2 / 3)


def test_what_is_sure_comes_first_and_what_lost_has_its_share(tmp_path: Path):
    """12 of 12 against 0 of 12 is beyond chance; 2 of 2 against 1 of 2 is not."""
    walks = [("hall left room open", True)] * 12 + [("hall right cellar wait", False)] * 12
    few = [("attic up roof open", True)] * 2 + [("attic down", True), ("attic down", False)]
    store = store_of(tmp_path / "store", [*walks, *few])
    told = with_views(store, partial(ranked_in, most=9))
    assert [(each.action, each.is_chance) for each in told.decisions[:2]] == [
        ("right", False),
        ("left", False),
    ]
    assert {each.action for each in told.decisions[2:]} == {"up", "down"}
    assert all(each.is_chance for each in told.decisions[2:])
    assert (told.num_sure, told.num_compared) == (2, 4)
    assert "beyond" in trust(told.decisions[0])


def test_a_choice_whose_result_looks_alike_is_seen(tmp_path: Path):
    """Both ways lead to the same text, so the graph's q is the same; outcomes and credit differ."""
    walks = [("hall left room open", True)] * 12 + [("hall right room open", False)] * 12
    told = with_views(store_of(tmp_path / "store", walks), partial(ranked_in, most=9))
    assert [(each.action, each.is_chance) for each in told.decisions] == [
        ("right", False),
        ("left", False),
    ]


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
    shown = decisions(store_of(tmp_path / "store"), most=9)
    left = next(each for each in shown if (each.state, each.action) == ("hall", "left"))
    assert not left.won
    assert sentence(left).endswith(
        f"This rollout failed all the same, ending at step {left.num_steps - 1}."
    )


def test_a_mistake_is_shown_by_a_rollout_that_it_lost(tmp_path: Path):
    right = next(d for d in decisions(store_of(tmp_path / "store"), most=9) if d.action == "right")
    assert (right.credit < 0, right.took, right.won) == (True, 0.25, False)
    assert "all the same" not in sentence(right)


def test_a_good_end_is_shown_by_a_rollout_that_won_with_it(tmp_path: Path):
    walks = [("hall open", True)] * 3 + [("hall open", False)] + [("hall wait", False)] * 3
    opened = next(d for d in decisions(store_of(tmp_path / "store", walks)) if d.action == "open")
    assert (opened.credit > 0, opened.took, opened.won) == (True, 0.75, True)


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


def test_a_notebook_shows_ids_as_text():
    html = Decisions((replace(EXAMPLE, trajectory_id="![x](y) <img>"),))._repr_html_()
    assert "Step 26 of failed ![x](y) &lt;img&gt;: `take" in html


def test_every_step_has_its_decision(tmp_path: Path):
    store = store_of(tmp_path / "store")
    where: dict[str, Any] = {"run_id": "imported", "iteration": 0, "task_id": "t"}
    for each in decisions(store, most=9):
        place: dict[str, Any] = {"trajectory_id": each.trajectory_id, "step_index": each.step_index}
        assert decision_of(store, **where, **place) == replace(each, is_chance=None)
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
    assert "All 2 rollouts that were in this state did so: nothing to compare it" in sentence(told)
    assert not any("all the same" in sentence(replace(told, credit=g)) for g in (-1.0, 1.0))


def test_scores_are_compared_as_means(tmp_path: Path):
    walks = [("hall left", False)] * 3 + [("hall right", False)] * 3
    store = store_of(tmp_path / "store", walks, scores=[0.8, 0.7, 0.6, 0.1, 0.2, 0.3])
    first = next(each for each in decisions(store) if each.action == "left")
    assert (first.is_graded, first.action, first.took, first.others) == (
        True,
        "left",
        pytest.approx(0.7),
        pytest.approx(0.2),
    )
    said = sentence(first)
    assert "earned 0.7 on average; 3 did something else, most often `right`, and earned 0.2" in said
    # Σ within .04, in all .04 + .375 = .415: (.04 + .083) / 5 = .0246, · (1/3 + 1/3): √.0164 = .128
    assert said.endswith("(+0.5 ± 0.26, yet it may be chance).")


EXAMPLE = ComparedDecision(
    run_id="games",
    iteration=3,
    task_id="t",
    trajectory_id="t:3",
    step_index=26,
    state="a hall",
    action="take keycard",
    credit=0.4,
    num_took=9,
    took=2 / 3,
    num_others=23,
    others=1 / 23,
    error=0.15,
    instead="go north",
    is_graded=False,
    goal_distance=3.0,
    next_goal_distance=2.0,
    reach_advantage=1.0,
    num_steps=42,
    won=False,
    outcome=0.0,
    weight=1.0,
)


def test_a_rollout_with_a_score_is_called_neither_won_nor_failed():
    scored = replace(EXAMPLE, is_graded=True, took=0.8, others=0.25, outcome=0.75)
    assert sentence(replace(scored, error=0.1)) == (
        "Step 26 of t:3 (earned 0.75): `take keycard`. From the same state, 9 rollouts did so and "
        "earned 0.8 on average; 23 did something else, most often `go north`, and earned 0.25 "
        "(+0.55 ± 0.2)."
    )
    assert "t:3 (earned 0.75): `take" in sentence(replace(scored, won=True))
    assert sentence(replace(scored, error=0.3)).endswith("(+0.55 ± 0.6, so it may be chance).")


def test_backticks_of_a_log_do_not_end_the_code_of_markdown():
    assert coded("ls") == "`ls`"
    assert coded("`a`\n```b```") == "```` `a` ```b``` ````"
    assert "``" in sentence(replace(EXAMPLE, action="echo `<img src=x>`")).split("<img")[0]


def test_actions_that_begin_alike_are_shown_where_they_part():
    path = "body/" + "div/" * 40
    saved, left = (
        told_apart(f"{path}save", f"{path}leave"),
        told_apart(f"{path}leave", f"{path}save"),
    )
    assert (saved[-8:], left[-9:]) == ("div/save", "div/leave")
    assert max(len(saved), len(left)) < 60
    assert saved.startswith("body/div/")
    assert told_apart("left", "right") == told_apart("left", None) == "left"
    assert told_apart(path, path) == path
    assert told_apart(f"{path}a", f"{path}a b")[-7:] == "v/div/a"


def test_the_sentence_by_hand():
    assert sentence(EXAMPLE) == (
        "Step 26 of failed t:3: `take keycard`. From the same state, 9 rollouts did so and 67% "
        "won; 23 did something else, most often `go north`, and 4% won (+62 ± 30 points). "
        "This rollout failed all the same, ending at step 41."
    )
    unsure = replace(EXAMPLE, is_chance=True)
    assert "(+62 ± 30 points, yet it may be chance)" in sentence(unsure)
    assert (trust(EXAMPLE), trust(unsure), trust(replace(EXAMPLE, error=0.4))) == (
        "✓ beyond chance",
        "⚠ may be chance",
        "⚠ may be chance",
    )
    assert trust(replace(EXAMPLE, others=None)) == "⚠ nothing to compare it with"
    # What the others did says the opposite of the gain: no contradiction is put on top.
    assert "all the same" not in sentence(replace(EXAMPLE, took=0.0))
    assert link(EXAMPLE) == (
        "/trajectory?run=games&iteration=3&task=t&trajectory=t%3A3&step=26&estimator=reach"
    )


def test_every_rollout_is_a_strip_and_the_losers_words_are_there(tmp_path: Path):
    walks = [("hall left room open", True)] * 5 + [("hall <b>&right cellar wait", False)] * 3
    picture = ElementTree.fromstring(why_picture(store_of(tmp_path / "store", walks)))
    strips = [each.get("stroke") for each in picture.iter() if each.tag.endswith("path")]
    assert (strips.count("#1f66b0"), strips.count("#c04f15")) == (5, 3)
    texts = _texts(picture)
    assert {"5 of 5 won", "0 of 3 won", "<b>&right", "left", "open", "3 did"} <= set(texts)


def _texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter() if each.tag.endswith("text")]


def test_the_picture_is_of_a_choice_that_is_sure_over_tasks_and_else_doubts_itself(tmp_path: Path):
    """In one task, a step by which three and three part as they end comes before the choice."""
    first = [("yard walk lawn sit", True)] * 3 + [("yard run road sit", False)] * 3
    alone = _texts(ElementTree.fromstring(why_picture(store_of(tmp_path / "one", first))))
    assert alone[0] == "t: where losers left winners, which may be chance"
    assert {"run", "3 of 3 won"} <= set(alone)

    walks = [*first, *[("hall main", True), ("hall main", True), ("hall old", False)] * 8]
    tasks = ["t0"] * 6 + [f"t{number // 3 + 1}" for number in range(24)]
    store = store_of(tmp_path / "many", walks, tasks=tasks)
    report = with_views(store, why_in)
    shown = report.ranked.decisions[0]
    assert (shown.action, shown.choice, shown.is_chance) == ("old", 0, True)
    assert "by itself it may be chance, such choices together are not)" in sentence(shown)
    texts = _texts(ElementTree.fromstring(why_picture(store, report=report)))
    assert texts[0] == f"{shown.task_id}: where losers left winners"
    assert {"old", "0 of 1 won", "2 of 2 won"} <= set(texts)
    assert any("8 states of 8 tasks" in text for text in texts)


def test_nothing_to_compare_is_said(tmp_path: Path):
    store = store_of(tmp_path / "store", [("hall left", True), ("hall left", True)])
    with pytest.raises(InputError, match="must have a decision to draw"):
        why_picture(store)
