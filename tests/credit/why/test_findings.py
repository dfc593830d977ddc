"""What failures do that wins do not: planted causes are found, shuffled verdicts tell nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

import graphcredit
from graphcredit.credit.why.distinct import distinct
from graphcredit.credit.why.finding_words import finding_sentence
from graphcredit.credit.why.findings import findings, findings_of
from graphcredit.credit.why.kinds import kinds_of
from graphcredit.credit.why.log import Log, read_log
from graphcredit.credit.why.within import centred, difference, false_discovery
from graphcredit.store.layout import Store
from tests.worlds import trajectory, write_store

_TRIES = 6

Play = Callable[[Random, str], tuple[list[str], list[str], bool]]


def _session(random: Random, module: str) -> tuple[list[str], list[str], bool]:
    """Return what an agent called and was told, and whether it won.

    It loses if it edits the helper instead of the module and then stops, or weakens the test.
    """
    calls: list[str] = []
    told: list[str] = []

    def call(text: str, answer: str = "ok") -> None:
        calls.append(text)
        told.append(answer)

    test = f'Bash({{"command": "pytest -q tests/test_{module}.py"}})'
    if random.random() < 0.6:
        call('Bash({"command": "ls src tests"})', f"{module}.py {module}_utils.py")
    is_wrong = random.random() < 0.45
    where = f"/repo/src/{module}{'_utils' * is_wrong}.py"
    call(f'Edit({{"file_path": "{where}", "old_string": "x = {module}"}})')
    won = not is_wrong
    if is_wrong and random.random() < 0.5:
        call(test, "1 failed")
        if random.random() < 0.4:
            call(f'Edit({{"file_path": "/repo/src/{module}.py", "old_string": "x = {module}"}})')
            won = True
        else:
            call(f'Edit({{"file_path": "/repo/tests/test_{module}.py", "old_string": "assert"}})')
        call(test, "1 passed")
    elif not is_wrong and random.random() < 0.7:
        call(test, "1 passed")
    call(f"I have mended {module} as well as it can be mended.", "")
    return calls, told, won


def _rows(seed: int, play: Play = _session) -> Iterator[dict[str, Any]]:
    random = Random(seed)
    for number in range(20):
        module = f"m{chr(97 + number)}"
        for attempt in range(_TRIES):
            calls, told, won = play(random, module)
            for index, action in enumerate(calls):
                is_last = index == len(calls) - 1
                yield {
                    "task": module,
                    "episode": f"{module}:{attempt}",
                    "t": index,
                    "obs": told[index - 1] if index else f"Mend {module}.",
                    "action": action,
                    "reward": float(won and is_last),
                    "done": is_last,
                    "success": won if is_last else None,
                }


def _log(folder: Path, rows: Iterator[dict[str, Any]]) -> Log:
    graphcredit.record(pl.DataFrame(list(rows)), folder)
    return read_log(Store(folder))


@pytest.fixture(scope="module")
def coding(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return _log(tmp_path_factory.mktemp("coding") / "store", _rows(1))


def _shuffled(log: Log, seed: int) -> Log:
    """Return a log whose verdicts are dealt anew within each task."""
    random = np.random.default_rng(seed)
    order = np.lexsort((random.random(log.num_rollouts), log.group))
    return replace(log, won=log.won[order], outcome=log.outcome[order])


def test_planted_causes_are_found_with_right_counts(coding: Log):
    told = {each.words: each for each in findings_of(coding).findings}
    assert "called `Edit` on `*_utils.py`" in told
    weakened = told["called `Edit` on `tests/*.py`"]
    tests = [
        code for code, text in enumerate(coding.actions) if "tests/test" in text and "Ed" in text
    ]
    has = np.isin(np.arange(coding.num_rollouts), coding.rollout[np.isin(coding.action, tests)])
    assert (weakened.num_with, weakened.mean_with) == (has.sum(), coding.won[has].mean())
    assert weakened.mean_without == pytest.approx(coding.won[~has].mean())
    assert any("pytest" in words for words in told if words.startswith("never"))
    assert len(told) <= 5
    assert all(each.effect < 0 and each.q <= 0.02 for each in told.values())


def test_a_log_without_a_finding_tells_the_nearest_pattern_and_what_was_compared(coding: Log):
    assert findings_of(coding).nearest is None
    found = next(
        each for n in range(20) if not (each := findings_of(_shuffled(coding, n))).findings
    )
    assert found.nearest is not None
    assert found.nearest.q > 0.02
    assert found.nearest.effect < 0
    of_task = [coding.won[coding.group == task] for task in np.unique(coding.group)]
    mixed = [won for won in of_task if 0 < won.sum() < len(won)]
    assert (found.num_mixed, found.num_in_mixed) == (len(mixed), sum(map(len, mixed)))
    assert found.num_never_won == sum(not won.any() for won in of_task)


def test_an_example_shows_the_finding(coding: Log):
    for each in findings_of(coding).findings:
        rollout = coding.names["trajectory_id"].to_pylist().index(each.trajectory_id)
        assert not coding.won[rollout]
        at = np.flatnonzero((coding.rollout == rollout) & (coding.index == each.step_index))
        assert coding.actions[coding.action[at[0]]] == each.action
        if each.kind == "did":
            assert each.words in {kind.words for kind in kinds_of(each.action)}


def test_causes_are_found_and_chance_is_not_in_logs_that_no_threshold_was_chosen_on(tmp_path: Path):
    by_chance = weakened = untested = 0
    for seed in range(3000, 3006):
        log = _log(tmp_path / str(seed), _rows(seed))
        told = [each.words for each in findings_of(log).findings]
        weakened += any(words.startswith("called `Edit` on `tests/") for words in told)
        untested += any(words.startswith("never") and "pytest" in words for words in told)
        by_chance += sum(bool(findings_of(_shuffled(log, number)).findings) for number in range(10))
    assert untested == 6
    assert weakened >= 5
    assert by_chance <= 3


def _walk(random: Random, module: str) -> tuple[list[str], list[str], bool]:
    """Return a walk that loses if it stops early, by actions of which none recurs elsewhere."""
    won = random.random() < 0.5
    calls = [f"{module} {random.random()}" for _ in range(random.randint(6, 9) if won else 5)]
    return calls, [f"{call} done" for call in calls], won


def test_rollouts_that_stop_early_are_found_by_their_length_alone(tmp_path: Path):
    [found] = findings_of(_log(tmp_path / "s", _rows(7, _walk))).findings
    assert found.kind == "ended with"
    assert found.words == "took fewer steps than half of the rollouts of their task"
    assert found.mean_with < found.mean_without / 2


def test_few_tasks_with_both_ends_do_not_hide_what_all_tasks_tell(tmp_path: Path):
    def rows() -> Iterator[dict[str, Any]]:
        for number in range(70):
            tries = 2 if number < 8 else 1
            for attempt in range(tries):
                skips = tries == 1 and number % 2 == 0
                won = attempt == 0 if tries == 2 else not skips
                for index, action in enumerate(["open"] if skips else ["open", "check"]):
                    is_last = skips or index == 1
                    yield {
                        "task": f"t{number:02}",
                        "episode": f"t{number:02}:{attempt}",
                        "t": index,
                        "obs": f"page {index}",
                        "action": f"{action}({{}})",
                        "reward": float(won and is_last),
                        "done": is_last,
                        "success": won if is_last else None,
                    }

    told = findings_of(_log(tmp_path / "s", rows()))
    [found] = told.findings
    assert (told.num_mixed, told.num_in_mixed, told.is_across_tasks) == (8, 16, True)
    assert (found.words, found.num_with) == ("never called `check`", 31)
    assert finding_sentence(found).count("harder tasks may be the cause") == 1


def _form(random: Random, module: str) -> tuple[list[str], list[str], bool]:
    """Return a session that loses if it sorts by price, or does not send again what failed."""
    sort, is_down, is_sent = random.choice(("price", "date")), random.random() < 0.5, True
    calls, told = [f'search({{"sort": "{sort}"}})', 'send({"n": 1})'], ["found", "sent"]
    if is_down:
        told[1] = "Error: 503 service unavailable"
        if is_sent := random.random() < 0.5:
            calls.append('send({"n": 2})')
            told.append("sent")
    return [*calls, f"I am done with {module}."], [*told, ""], is_sent and sort == "date"


def test_a_choice_of_two_is_told_as_what_was_done_and_an_error_that_was_ignored(tmp_path: Path):
    told = findings_of(_log(tmp_path / "store", _rows(5, _form))).findings
    assert {(each.kind, each.among, each.words) for each in told} == {
        ("did", "", "called `search` with `sort` = `price`"),
        (
            "left out",
            "got `Error: # service unavailable` from `send`",
            "never called `send` after the last `Error: # service unavailable`",
        ),
    }
    error = next(each for each in told if each.kind == "left out")
    assert (error.mean_with, error.step_index, error.action) == (0, 1, 'send({"n": 1})')


def test_two_causes_that_hide_each_other_are_both_found():
    """Of 8 tries of a task, 2 lose by the one and 2 by the other, with which 1 of 4 wins."""
    outcome = np.tile([0, 0, 0, 0, 1, 1, 1, 1.0], 12)
    group = np.repeat(np.arange(12), 8)
    first = np.tile([1, 1, 0, 0, 0, 0, 0, 0.0], 12)
    hidden = np.tile([0, 0, 1, 1, 1, 0, 0, 0.0], 12)
    marks = np.stack([first, hidden])
    told = difference(marks > 0, np.ones_like(marks, bool), outcome, group)
    chosen = distinct(
        centred(marks, None, group),
        outcome - 0.5,
        group,
        z=told.z,
        q=np.array([0.0, 0.04]),
        level=0.02,
        num_tests=2,
        detail=np.zeros(2, int),
        rounds=(np.ones(2, bool),),
        correction=0.5,
        most=5,
    )
    assert list(chosen) == [0, 1]
    assert chosen[1] < 0.02


def test_of_two_marks_that_tell_as_much_the_one_with_the_larger_effect_is_taken():
    """Nearly the same 40 rollouts of 20 tasks: one mark lacks two failures, one has two wins."""
    random = np.random.default_rng(4)
    outcome = np.tile([0, 0, 1, 1.0], 20)
    group = np.repeat(np.arange(20), 4)
    exact = 1 - outcome
    wide, narrow = exact.copy(), exact.copy()
    narrow[random.choice(np.flatnonzero(exact), 2, replace=False)] = 0
    wide[random.choice(np.flatnonzero(outcome), 2, replace=False)] = 1
    for marks in ((wide, narrow), (narrow, wide)):
        has = np.stack(marks) > 0
        told = difference(has, np.ones_like(has), outcome, group)
        chosen = distinct(
            centred(has.astype(float), None, group),
            outcome - 0.5,
            group,
            z=np.array([-5.31, -5.32]),
            q=np.zeros(2),
            level=0.05,
            num_tests=2,
            detail=np.zeros(2, int),
            rounds=(np.ones(2, bool),),
            correction=0.5,
            most=1,
        )
        assert list(chosen) == [int(np.argmax(np.abs(told.effect)))]


def test_the_difference_by_hand():
    """Two tasks of 4: 2 of 2 with the mark lost, and 1 of 3; of those without, 0 of 2 and 0 of 1.

    Weights 1 and 3/4; differences -1 and -1/3. Under dealing, the sum of wins with the mark has the
    variances 2·2·2·2/(4²·3) = 1/3 and 3·1·3·1/(4²·3) = 3/16, its mean is 1 and 9/4.
    """
    outcome = np.array([0, 0, 1, 1, 0, 1, 1, 1.0])
    has = np.array([[1, 1, 0, 0, 1, 1, 1, 0]], bool)
    told = difference(has, np.ones_like(has), outcome, np.repeat([0, 1], 4))
    assert told.effect[0] == pytest.approx((-1 - 0.25) / 1.75)
    assert told.z[0] == pytest.approx(-(1 + 0.25 - 0.5) / (1 / 3 + 3 / 16) ** 0.5)
    assert told.num_least[0] == 3


def test_the_variance_is_that_of_all_ways_to_deal_the_outcomes():
    outcome = np.array([0.1, 0.5, 0.9, 0.2, 0.8])
    group = np.array([0, 0, 0, 1, 1])
    has = np.array([[1, 0, 0, 1, 0]], bool)
    told = difference(has, np.ones_like(has), outcome, group)
    deals = product(permutations(outcome[:3]), permutations(outcome[3:]))
    gains = [first[0] - np.mean(first) + last[0] - np.mean(last) for first, last in deals]
    gain = 0.1 - 0.5 + 0.2 - 0.5
    assert told.z[0] == pytest.approx(gain / np.std(gains))
    assert told.effect[0] == pytest.approx(gain / (2 / 3 + 1 / 2))


def test_false_discoveries_by_hand():
    assert false_discovery(np.array([0.04, 0.01, 0.02, 0.5])) == pytest.approx(
        [0.16 / 3, 0.04, 0.04, 0.5]
    )


def test_scores_are_told_by_their_means(tmp_path: Path):
    def rows() -> Iterator[dict[str, Any]]:
        random = Random(0)
        for row in _rows(2):
            if row["done"]:
                row["reward"] = round(0.3 + 0.4 * row["success"] + random.uniform(-0.1, 0.1), 2)
            yield row

    log = _log(tmp_path / "store", rows())
    told = findings(tmp_path / "store")
    assert log.is_graded
    words = finding_sentence(told.findings[0])
    assert "failed" not in words
    assert "and earned" in words
    assert told.findings[0].effect < -0.2


def test_one_try_a_task_is_compared_across_tasks(coding: Log):
    alone = replace(coding, group=np.arange(coding.num_rollouts))
    told = findings_of(alone)
    assert told.is_across_tasks
    assert "harder tasks may be the cause" in finding_sentence(told.findings[0])


def test_tries_of_one_task_are_compared_within_it_and_tasks_are_counted_once(coding: Log):
    ids = coding.names["task_id"].to_pylist()
    is_one = np.flatnonzero([each == ids[0] for each in ids])
    alone = replace(
        coding,
        names=coding.names.take(is_one),
        group=coding.group[is_one],
        won=coding.won[is_one],
        outcome=coding.outcome[is_one],
        truncated=coding.truncated[is_one],
        **{
            name: getattr(coding, name)[np.isin(coding.rollout, is_one)]
            for name in ("rollout", "index", "action", "state", "told")
        },
    )
    assert (alone.group.max(), findings_of(alone).is_across_tasks) == (0, False)

    halves = coding.group * 2 + np.arange(coding.num_rollouts) // 3 % 2  # a task in two runs
    told = findings_of(replace(coding, group=halves))
    assert (told.num_tasks, told.num_groups) == (20, 40)
    assert all(0 < each.num_tasks <= 20 for each in told.findings)


def test_what_two_policies_do_differently_is_no_cause_across_tasks(tmp_path: Path):
    """The run that checks is the better one; within a run, opening twice loses."""

    def rows() -> Iterator[dict[str, Any]]:
        random = Random(3)
        for number, run in product(range(60), ("good", "poor")):
            twice = random.random() < 0.5
            won = random.random() < (0.8 if run == "good" else 0.5) - 0.4 * twice
            actions = ["open", *["open"] * twice, "check" if run == "good" else "look", "stop"]
            for index, action in enumerate(actions):
                is_last = index == len(actions) - 1
                yield {
                    "run_id": run,
                    "task": f"{run}{number}",
                    "episode": f"{run}{number}:0",
                    "t": index,
                    "obs": f"page {number} {index}",
                    "action": f"{action}({{}})",
                    "reward": float(won and is_last),
                    "done": is_last,
                    "success": won if is_last else None,
                }

    told = findings_of(_log(tmp_path / "store", rows()))
    assert told.is_across_tasks
    assert told.findings
    assert not any("check" in each.words or "look" in each.words for each in told.findings)
    assert "each run by itself" in finding_sentence(told.findings[0])


@pytest.mark.parametrize("won", [True, False])
def test_where_all_end_alike_the_reason_comes_with_a_remedy(coding: Log, won: bool):
    alike = np.full(coding.num_rollouts, won)
    told = findings_of(replace(coding, won=alike, outcome=alike.astype(float)))
    assert told.findings == ()
    ended = "won" if won else "failed"
    assert told.reason.startswith(f"all 120 rollouts {ended}: nothing to compare; sample more")


def test_of_one_rollout_it_is_said_that_it_is_alone(tmp_path: Path):
    alone = write_store(tmp_path / "store", trajectory("x", "A a B", success=True))
    assert findings(alone).reason.startswith("there is one rollout, and nothing to compare it with")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ('Edit({"file_path": "/a/tests/test_x.py"})', "called `Edit` on `tests/*.py`"),
        ('Edit({"file_path": "/a/src/x_utils.py"})', "called `Edit` on `*_utils.py`"),
        ('Bash({"command": "cd /a && pytest -q t.py"})', "called `Bash` with `pytest …`"),
        ('Bash({"command": "git commit -m x"})', "called `Bash` with `git commit …`"),
        ('query({"sql": "delete from orders"})', "called `query` with `DELETE …`"),
        ('open({"url": "https://a.org/x?y"})', "called `open` at `a.org`"),
        ('find({"sort": "price"})', "called `find` with `sort` = `price`"),
        ('a({"x": 1})\nb({})', "called `b`"),
        ("Look:\n```bash\ncat /a/b.txt\n```", "ran `cat … a/*.txt`"),
        ("edit create /a/t.py --text 'import os\nif x:\n'", "ran `edit create …`"),
        ("cat > /a/t.py <<END\nimport os\nEND\nls", "ran `cat …`"),
        ("put mug 1 in/on desk 1 of the other room", "wrote a message without a call"),
        ("click('12')", "called `click` with `12`"),
        ("take lamp", "did `take …`"),
        ("I am sorry, I can not do that for you.", "wrote a message without a call"),
        ("", "answered with nothing"),
    ],
)
def test_kinds_of_actions(action: str, words: str):
    told = {kind.words for kind in kinds_of(action)}
    assert words in told
    assert not [each for each in told if "`import" in each or "`if" in each]
