"""A state keeps its name over the iterations of a run, whatever its texts look like."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit import compute
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.merging.embedding.merge import EmbeddingMerge
from graphcredit.credit.merging.exact import same_text
from graphcredit.credit.merging.nearest import Vectors
from graphcredit.credit.merging.recognise import NAME_SCHEMA, Identities, Looks, recognise
from graphcredit.credit.merging.segments.learned import Irrelevant
from graphcredit.credit.merging.segments.merge import SameKept
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store, open_store
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


def _advertised(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(rng.randrange(3)):
        offer = f"Buy {rng.randrange(10**6)} shoes for {rng.randrange(10**6)} coins!"
        lines.insert(rng.randrange(len(lines) + 1), offer)
    return "\n".join(lines)


def _shouted(text: str, rng: random.Random) -> str:
    return "  ".join(rng.choice((word, word.upper())) for word in text.split(" "))


def _numbered(text: str, rng: random.Random) -> str:
    return f"{text} #{rng.randrange(10**4)}"


MERGES: dict[str, tuple[MergeSettings, Disturb]] = {
    "rules": (
        MergeSettings(normalise=("casefold", "whitespace"), min_merge_precision=0.0),
        _shouted,
    ),
    "segments": (MergeSettings(merge="segments", min_merge_precision=0.0), _advertised),
    "embedding": (
        MergeSettings(merge="embedding", threshold=0.8, min_merge_precision=0.0),
        _numbered,
    ),
}


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
        [step for task in range(12) for step in _played(f"t{task}", number)] for number in range(3)
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


@pytest.fixture(scope="module", params=MERGES)
def at_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Store, list[Rows], MergeSettings]:
    """Return the iterations with the noise of a merge, credited by it at once."""
    merge, disturb = MERGES[request.param]
    iterations = _noisy(disturb)
    root = tmp_path_factory.mktemp(request.param) / "s"
    return _credit(_write(root, iterations), merge), iterations, merge


@pytest.mark.parametrize("kind", MERGES)
@pytest.mark.parametrize("seed", range(3))
def test_noise_changes_neither_counts_nor_advantages(
    tmp_path: Path, clean: Store, kind: str, seed: int
):
    merge, disturb = MERGES[kind]
    noisy = _credit(_write(tmp_path / "noisy", _noisy(disturb, seed)), merge)
    assert _counts(noisy) == _counts(clean)
    assert _advantages(noisy) == pytest.approx(_advantages(clean), abs=1e-6)
    # w passes B and x does, z too: 3 of 4 in each of three iterations; w alone succeeds.
    assert _counts(noisy)["t0", "B"] == (9, 3)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)], ids=["in order", "one late"])
def test_iterations_one_by_one_and_at_once_give_the_same(
    tmp_path: Path, at_once: tuple[Store, list[Rows], MergeSettings], order: tuple[int, ...]
):
    whole, iterations, merge = at_once
    store = create_store(tmp_path / "one-by-one")
    is_in_order = order == (0, 1, 2)
    for number in order:
        write_store(store.root, iterations[number], iteration=number)
        _credit(store, merge, number if is_in_order else None)
    assert _advantages(store) == _advantages(whole)
    assert _history(store) == _history(whole)
    if is_in_order:
        assert store.history_path("r0").read_bytes() == whole.history_path("r0").read_bytes()


def test_an_iteration_credited_again_changes_nothing(
    at_once: tuple[Store, list[Rows], MergeSettings],
):
    store, _, merge = at_once
    history, advantages = store.history_path("r0").read_bytes(), _advantages(store)
    _credit(store, merge, 1)
    assert store.history_path("r0").read_bytes() == history
    assert _advantages(store) == advantages


@pytest.mark.one_in(3)
def test_a_table_in_memory_gives_what_the_store_does(
    at_once: tuple[Store, list[Rows], MergeSettings],
):
    store, iterations, merge = at_once
    parts = [
        step_table(rows).append_column("iteration", pa.array([number] * len(rows)))
        for number, rows in enumerate(iterations)
    ]
    credit = compute(pa.concat_tables(parts), estimators=["spo3"], merge=merge)
    assert credit["spo3_advantage"].to_pylist() == _advantages(store)


def test_a_name_is_the_first_text_and_what_it_is_recognised_by_has_no_noise(tmp_path: Path):
    iterations = _noisy(_advertised)
    store = _credit(_write(tmp_path / "s", iterations), MergeSettings(merge="segments"))
    rows = {(row["task_id"], _letter(row["state"])): row for row in _history(store)}
    assert rows["t0", "A"]["state"] == iterations[0][0]["state"]
    assert rows["t0", "A"]["identity"] == (
        "\tGreat hall\n\tA chandelier hangs from the ceiling.\n\tA staircase leads up."
    )
    assert rows["t0", "A"]["signature"] == rows["t1", "A"]["signature"]


def test_without_a_merge_the_text_is_all(tmp_path: Path):
    store = _credit(_write(tmp_path / "s", _iterations()), MergeSettings())
    rows = _history(store)
    # x ends in D and w at the goal: nobody acts there.
    assert {row["state"] for row in rows} == {"A", "B", "C"}
    assert {(row["identity"], row["signature"]) for row in rows} == {(None, None)}


def test_the_guard_holds_between_iterations_too(tmp_path: Path):
    rules = MergeSettings(normalise=("casefold",))
    texts = ("Hall", "hall", "HALL")
    lists = (["open"], ["close"], ["open"])
    iterations = [
        [step | {"admissible_actions": actions} for step in trajectory("x", [text, "a", "end"])]
        for text, actions in zip(texts, lists, strict=True)
    ]
    counts = {
        row["state"]: row["num_total"]
        for row in _history(_credit(_write(tmp_path / "s", iterations), rules))
    }
    assert counts == {"Hall": 2, "hall": 1}


@pytest.mark.parametrize(
    ("steps", "lists", "expected"),
    [
        (
            [("Hall", "x"), ("hall", "x"), ("HALL", "y")],
            (None, ["open"], ["close"]),
            {"Hall": 2, "HALL": 1},
        ),
        (
            # The end of a failure makes no name: the first who acts there does.
            [("start", "Hall"), ("hall", "x"), ("HALL", "y")],
            (["go"], ["open"], ["close"]),
            {"start": 1, "hall": 1, "HALL": 1},
        ),
    ],
)
def test_a_state_known_without_actions_takes_those_it_is_seen_with_next(
    tmp_path: Path,
    steps: list[tuple[str, str]],
    lists: tuple[list[str] | None, ...],
    expected: dict[str, int],
):
    rules = MergeSettings(normalise=("casefold",))
    iterations = [
        [step | {"admissible_actions": actions} for step in trajectory("x", [before, "a", after])]
        for (before, after), actions in zip(steps, lists, strict=True)
    ]
    counts = {
        row["state"]: row["num_total"]
        for row in _history(_credit(_write(tmp_path / "s", iterations), rules))
    }
    assert counts == expected


def _known(*names: str, signature: int | None = None) -> pa.Table:
    columns = [["t"] * len(names), names, names, [signature] * len(names)]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, NAME_SCHEMA, strict=True)], schema=NAME_SCHEMA
    )


def _recognised(known: pa.Table, texts: list[str], **options: Any) -> list[int]:
    found = Identities(
        texts=texts,
        signature=options.get("signature", np.full(len(texts), UNKNOWN)),
        alike=options.get("alike", same_text),
    )
    names = pa.array(options.get("names", texts), pa.string())
    tasks = pa.array(["t"] * len(texts))
    group = np.zeros(len(texts), np.int64)
    return recognise(known, found, group=group, task_ids=tasks, first_texts=names).tolist()


class _OnAnArc:
    """Makes a unit vector of a text that is a number of degrees."""

    def embed(self, texts: list[str]) -> Vectors:
        radians = np.deg2rad(np.array([float(text) for text in texts]))
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_of_several_known_states_the_most_similar_one_is_recognised():
    # At least 0.9 is at most 25.8°.
    similar = EmbeddingMerge(embedder=_OnAnArc(), threshold=0.9).same_state
    found = _recognised(_known("0", "40", "90"), ["25", "15", "66", "120"], alike=similar)
    assert found == [1, 0, 2, -1]


def test_what_is_noise_by_now_does_not_hide_a_known_state():
    irrelevant = Irrelevant(places={("between", "", "hp", ""): True}, lines={("", "rain"): True})
    alike = SameKept(irrelevant=irrelevant)
    texts = ["\thall", "\thall\n\tlamp"]
    options = {"names": ["Hall", "Hall. Lamp"], "alike": alike}
    assert _recognised(_known("\thall\n\train"), texts, **options) == [0, -1]
    assert _recognised(_known("\thall\n\tdoor"), texts, **options) == [-1, -1]
    meters = ["\thp◊", "\thp◊\n\tlamp"]
    assert _recognised(_known("\thp 7"), meters, **options) == [0, -1]


def test_a_known_name_is_recognised_whatever_is_left_of_its_text():
    known = _known("hall, offer 1", signature=7)
    own = np.array([9])
    assert _recognised(known, ["hall"], names=["hall, offer 1"], signature=own) == [0]
    assert _recognised(known, ["hall"], names=["hall, offer 2"], signature=own) == [-1]


def test_a_goal_is_nobody():
    assert _recognised(_known("hall"), ["hall", "hall"], names=["hall", None]) == [0, -1]


def test_states_of_two_groups_are_never_one():
    looks = Looks(group=np.array([0, 1, 0]), texts=["a", "a", "a"], signature=np.full(3, UNKNOWN))
    assert same_text(looks).tolist() == [0, 1, 0]
