"""A state keeps its name over the iterations of a run, whatever its texts look like."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store, open_store
from graphcredit.store.errors import OptionError
from tests.worlds import step_table, trajectory, write_store

Rows = list[dict[str, Any]]
Disturb = Callable[[str, random.Random], str]

LOOKS = {
    "A": "Great hall\nA chandelier hangs from the ceiling.\nA staircase leads up.",
    "B": "Upper landing\nPortraits line the wall.\nA locked oak door is ahead.",
    "C": "Wine cellar\nBarrels stand in rows.\nSomething drips in the dark.",
    "D": "Rose garden\nA gardener trims the hedge.\nThe gate is open.",
    "won": "Treasury\nGold everywhere.",
}
ACTIONS = {"A": ["up", "down"], "B": ["back", "down"], "C": ["out", "back"], "D": ["back"]}


def _shouted(text: str, rng: random.Random) -> str:
    return "  ".join(rng.choice((word, word.upper())) for word in text.split(" "))


MERGE = MergeSettings(normalise=("casefold", "whitespace"))


def _played(task: str, iteration: int) -> Rows:
    """Return a group of four; the later iterations come to the garden and to more successes."""
    paths = {
        "w": ("A up B down C out won", True),
        "x": ("A up B back A down C out D" if iteration else "A up B back A", False),
        "y": ("A down C out won", True) if iteration == 2 else ("A down C back A", False),
        "z": ("A up B down C back A", False),
    }
    return [
        step | {"admissible_actions": ACTIONS[step["state"]]}
        for name, (path, success) in paths.items()
        for step in trajectory(f"{task}-{name}", path, task_id=task, success=success)
    ]


def _iterations() -> list[Rows]:
    return [
        [step for task in range(3) for step in _played(f"t{task}", number)] for number in range(3)
    ]


def _seen(rows: Rows, disturb: Disturb, rng: random.Random) -> Rows:
    """Return the steps with a text of its own for each look at a state."""
    text, seen = "", Rows()
    for row in rows:
        before = text if row["step_index"] else disturb(LOOKS[row["state"]], rng)
        text = disturb(LOOKS[row["next_state"]], rng)
        seen.append(row | {"state": before, "next_state": text})
    return seen


def _noisy(disturb: Disturb, seed: int = 0) -> list[Rows]:
    rng = random.Random(seed)
    return [_seen(rows, disturb, rng) for rows in _iterations()]


def _write(root: Path, iterations: list[Rows]) -> Store:
    for number, rows in enumerate(iterations):
        write_store(root, rows, iteration=number)
    return open_store(root)


def _credit(store: Store, merge: MergeSettings, iteration: int | None = None) -> Store:
    settings = CreditSettings(estimators=configure(["spo3"]), merge=merge)
    assign_credit(store, settings, iteration=iteration)
    return store


def _history(store: Store) -> Rows:
    return pq.ParquetFile(store.history_path("r0")).read().to_pylist()


def _letter(text: str | None) -> str | None:
    """Return which state a text shows, by the words that only its looks have."""
    words = {"A": "hall", "B": "landing", "C": "cellar", "D": "garden"}
    return text and next(name for name, word in words.items() if word in text.casefold())


def _counts(store: Store) -> dict[tuple[str, str | None], tuple[int, int]]:
    rows = _history(store)
    counts = {
        (row["task_id"], _letter(row["state"])): (row["num_total"], row["num_success"])
        for row in rows
    }
    assert len(counts) == len(rows), "each state must have one name"
    return counts


def _advantages(store: Store) -> list[float]:
    tables = [pq.ParquetFile(shard.credit_path).read() for shard in store.shards()]
    return [value for table in tables for value in table["spo3_advantage"].to_pylist()]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the iterations without noise, credited."""
    rows = _noisy(lambda text, rng: text)
    return _credit(_write(tmp_path_factory.mktemp("clean") / "s", rows), MergeSettings())


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Rows]]:
    """Return the iterations with noise that rules take away, credited at once."""
    iterations = _noisy(_shouted)
    return _credit(_write(tmp_path_factory.mktemp("shouted") / "s", iterations), MERGE), iterations


@pytest.mark.parametrize("seed", range(2))
def test_noise_changes_neither_counts_nor_advantages(tmp_path: Path, clean: Store, seed: int):
    noisy = _credit(_write(tmp_path / "noisy", _noisy(_shouted, seed)), MERGE)
    assert _counts(noisy) == _counts(clean)
    assert _advantages(noisy) == pytest.approx(_advantages(clean), abs=1e-6)
    # w passes B and x does, z too: 3 of 4 in each of three iterations; w alone succeeds.
    assert _counts(noisy)["t0", "B"] == (9, 3)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)], ids=["in order", "one late"])
def test_iterations_one_by_one_and_at_once_give_the_same(
    tmp_path: Path, at_once: tuple[Store, list[Rows]], order: tuple[int, ...]
):
    whole, iterations = at_once
    store = create_store(tmp_path / "one-by-one")
    is_in_order = order == (0, 1, 2)
    for number in order:
        write_store(store.root, iterations[number], iteration=number)
        _credit(store, MERGE, number if is_in_order else None)
    assert _advantages(store) == _advantages(whole)
    assert _history(store) == _history(whole)
    if is_in_order:
        assert store.history_path("r0").read_bytes() == whole.history_path("r0").read_bytes()


def test_an_iteration_credited_again_changes_nothing(at_once: tuple[Store, list[Rows]]):
    store, _ = at_once
    history, advantages = store.history_path("r0").read_bytes(), _advantages(store)
    _credit(store, MERGE, 1)
    assert store.history_path("r0").read_bytes() == history
    assert _advantages(store) == advantages


def test_a_table_in_memory_gives_what_the_store_does(at_once: tuple[Store, list[Rows]]):
    store, iterations = at_once
    parts = [
        step_table(rows).append_column("iteration", pa.array([number] * len(rows)))
        for number, rows in enumerate(iterations)
    ]
    credit = compute(pa.concat_tables(parts), estimators=["spo3"], merge=MERGE)
    assert credit["spo3_advantage"].to_pylist() == _advantages(store)


def test_a_name_is_what_the_rules_leave_of_a_text(tmp_path: Path):
    rules = MergeSettings(normalise=("casefold",))
    iterations = [trajectory("x", [text, "a", "end"]) for text in ("Hall", "hall", "HALL")]
    rows = _history(_credit(_write(tmp_path / "s", iterations), rules))
    names = [(row["state"], row["identity"], row["num_total"]) for row in rows]
    assert names == [("Hall", "hall", 3)]


def test_without_rules_a_name_is_the_text(tmp_path: Path):
    store = _credit(_write(tmp_path / "s", _iterations()), MergeSettings())
    # x ends in D and w at the goal: nobody acts there.
    rows = _history(store)
    assert {row["state"] for row in rows} == {"A", "B", "C"}
    assert {(row["identity"], row["signature"]) for row in rows} == {(None, None)}


def test_states_of_which_other_things_are_kept_have_other_names(tmp_path: Path):
    paths = (["hall wet", "a", "end"], ["hall dry", "a", "end"], ["hall wet", "a", "end"])
    store = _write(tmp_path / "s", [trajectory("x", path) for path in paths])
    rules = '[[ignore]]\ntext = "wet|dry"\n[[keep]]\ntext = "wet|dry"\n'
    store.state_rules_path.write_text(rules)
    rows = _history(_credit(store, MergeSettings()))
    assert {row["state"]: row["num_total"] for row in rows} == {"hall wet": 2, "hall dry": 1}
    assert all(row["identity"].endswith("hall ") for row in rows)


def _with_lists(
    path: list[str], *lists: list[str] | None, name: str = "x", success: bool = False
) -> Rows:
    steps = trajectory(name, path, success=success)
    return [step | {"admissible_actions": own} for step, own in zip(steps, lists, strict=True)]


def _visits(store: Store) -> dict[str, int]:
    rows = _history(_credit(store, MergeSettings(normalise=("casefold",))))
    counts = {row["state"]: row["num_total"] for row in rows}
    assert len(counts) == len(rows)
    return counts


def test_the_guard_holds_between_iterations_too(tmp_path: Path):
    looks = [("Hall", ["open"]), ("hall", ["close"]), ("HALL", ["open"])]
    iterations = [_with_lists([text, "a", "end"], actions) for text, actions in looks]
    assert _visits(_write(tmp_path / "s", iterations)) == {"Hall": 2, "hall": 1}


def test_a_trajectory_counts_once_in_each_state_that_the_guard_keeps_apart(tmp_path: Path):
    path = ["Hall", "a", "hall", "b", "Hall", "a", "end"]
    iterations = [_with_lists(path, ["open"], ["close"], ["open"])]
    assert _visits(_write(tmp_path / "s", iterations)) == {"Hall": 1, "hall": 1}


def test_a_state_without_a_list_is_the_one_where_most_acted_before(tmp_path: Path):
    won = [_with_lists(["hall", "b", "end"], ["b"], name=name, success=True) for name in "xy"]
    lost = _with_lists(["start", "go", "Hall", "a", "end"], ["go"], ["a"], name="z")
    store = _write(
        tmp_path / "s",
        [
            [*lost, *won[0], *won[1]],
            _with_lists(["start", "go", "HALL"], ["go"]),
            _with_lists(["HALL", "a", "end"], None),
        ],
    )
    assert _visits(store) == {"Hall": 1, "hall": 3, "start": 2}
    # To the hall where both won, S = 4 ** -1: w = 0.5 exp(-0.1), and (0.5 - w)(1 - 1/4).
    (shard,) = store.shards("r0", 1)
    (reward,) = pq.ParquetFile(shard.credit_path).read()["spo3_step_reward"].to_pylist()
    assert reward == pytest.approx(0.45242 + 0.04758 * 0.75, abs=1e-5)


@pytest.mark.parametrize("merge", ["segments", "embedding"])
def test_a_merge_without_names_that_last_is_refused(merge: str):
    with pytest.raises(OptionError, match=f"by their texts: --merge must be exact, got {merge}"):
        CreditSettings(estimators=configure(["spo3"]), merge=MergeSettings(merge=merge))
