"""The rules of states.toml: what they say of a text, and that no merge says otherwise."""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.merging.candidates import Candidates
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.store import Store
from graphcredit.store.errors import OptionError
from graphcredit.store.provenance.freshness import credit_freshness
from graphcredit.store.schema import RULES_MET_KEY
from graphcredit.store.state_rules import StateRule, StateRules
from tests.worlds import step_table, trajectory, write_store

MERGES: Mapping[str, MergeSettings] = {
    "exact": MergeSettings(),
    "rules": MergeSettings(normalise=("casefold", "whitespace")),
    "segments": MergeSettings(merge="segments"),
    "embedding": MergeSettings(merge="embedding", threshold=0.6),
}


def _credit(store: Store, merge: MergeSettings, **more: Any) -> dict[str, int]:
    """Credit a store, and return what each rule touched."""
    settings = CreditSettings(estimators=configure(["graphgpo"]), merge=merge, **more)
    (report,) = assign_credit(store, settings).values()
    return report.state_rules


def _state_of_text(store: Store) -> dict[tuple[str, str], int]:
    """Return the node of each text in its task; a text must have one."""
    found: dict[tuple[str, str], int] = {}
    for shard in store.shards():
        steps, credit = (pq.read_table(path) for path in (shard.path, shard.credit_path))
        columns = steps["task_id"], steps["state"], credit["state_id"]
        for task, text, state in zip(*(c.to_pylist() for c in columns), strict=True):
            assert found.setdefault((task, text), state) == state
    return found


def _rooms(
    task_id: str = "t0", seed: int = 0, weathers: tuple[str, ...] = ("wet", "dry")
) -> list[dict[str, Any]]:
    """Play two rooms, whose door is open or not, with a clock and a weather beside them."""
    rng, rows = random.Random(seed), []

    def seen(room: str, door: str) -> str:
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
        return f"{room}. The door is {door}. It is {clock} and {rng.choice(weathers)}."

    for number in range(6):
        texts = [seen("Hall", "shut"), "open", seen("Hall", "open"), "go", seen("Attic", "open")]
        path = [*texts, "win", "done"]
        rows += trajectory(f"{task_id}-{number}", path, success=number < 4, task_id=task_id)
    return rows


def _kinds(store: Store, pattern: str) -> set[tuple[str, ...]]:
    """Return what the texts of each state have of a pattern."""
    members: dict[tuple[str, int], set[str]] = {}
    for (task, text), state in _state_of_text(store).items():
        members.setdefault((task, state), set()).update(re.findall(pattern, text))
    return {tuple(sorted(own)) for own in members.values()}


IGNORE = "[[ignore]]\ntext = 'It is [0-9:]+'\n[[ignore]]\ntext = 'wet|dry'\n"


@pytest.mark.parametrize("merge", MERGES)
def test_what_is_ignored_is_no_part_of_a_state(tmp_path: Path, merge: str):
    store = write_store(tmp_path / "s", _rooms())
    store.state_rules_path.write_text(IGNORE)
    touched = _credit(store, MERGES[merge])
    states = _state_of_text(store)
    assert len(states) > 10
    # At this threshold, a hall is alike enough to itself for `embedding`, whatever its door.
    assert len(set(states.values())) == (3 if merge != "embedding" else 2)
    # The text after the last step of a failure has none of it.
    assert set(touched.values()) == {len(states)}
    (shard,) = store.shards()
    metadata = pq.read_schema(shard.credit_path).metadata
    assert json.loads(metadata[RULES_MET_KEY]) == touched


@pytest.mark.parametrize("merge", MERGES)
def test_what_is_kept_is_never_united(tmp_path: Path, merge: str):
    store = write_store(tmp_path / "s", _rooms())
    text = IGNORE + "[[keep]]\ntext = 'wet|dry'\n[[keep]]\ntext = 'The door is \\w+'\n"
    store.state_rules_path.write_text(text)
    _credit(store, MERGES[merge])
    assert all(len(own) == 1 for own in _kinds(store, "wet|dry"))
    assert all(len(own) == 1 for own in _kinds(store, "shut|open"))
    assert _kinds(store, "wet|dry") == {("wet",), ("dry",)}


def _clocks(root: Path) -> Store:
    """Play five tasks in which only the clock is noise."""
    return write_store(
        root, *(_rooms(f"t{task}", seed=task, weathers=("wet",)) for task in range(5))
    )


def test_without_a_rule_the_clock_is_noise_and_the_door_is_not(tmp_path: Path):
    store = _clocks(tmp_path / "s")
    _credit(store, MERGES["segments"])
    states = {(task, state) for (task, _), state in _state_of_text(store).items()}
    assert len(states) == 5 * 3
    assert all(len(own) == 1 for own in _kinds(store, "shut|open"))


def test_a_rule_holds_in_its_tasks_only(tmp_path: Path):
    store = write_store(tmp_path / "s", _rooms("kitchen-1"), _rooms("cellar-1", seed=1))
    store.state_rules_path.write_text(
        "[[ignore]]\ntext = 'It is [0-9:]+'\ntasks = 'kitchen-*'\n"
        "[[ignore]]\ntext = 'wet|dry'\ntasks = 'kitchen-*'\n"
    )
    _credit(store, MERGES["exact"])
    states = _state_of_text(store)
    of_task = {
        task: len({state for (own, _), state in states.items() if own == task})
        for task in ("kitchen-1", "cellar-1")
    }
    assert of_task["kitchen-1"] == 3
    assert of_task["cellar-1"] == sum(task == "cellar-1" for task, _ in states)


@pytest.mark.parametrize("merge", MERGES)
def test_the_bytes_do_not_depend_on_batches(tmp_path: Path, merge: str):
    found: list[list[bytes]] = []
    for name, rows in (("one", 1 << 20), ("many", 1)):
        shards = [_rooms(f"t{number}", seed=number) for number in range(3)]
        store = write_store(tmp_path / name, *shards)
        store.state_rules_path.write_text(IGNORE + "[[keep]]\ntext = 'open|shut'\n")
        _credit(store, MERGES[merge], batch_rows=rows)
        found.append([shard.credit_path.read_bytes() for shard in store.shards()])
    assert found[0] == found[1]


def test_the_order_of_shards_changes_no_partition(tmp_path: Path):
    partitions: list[set[frozenset[str]]] = []
    for name, order in (("one", (0, 1, 2)), ("other", (2, 0, 1))):
        store = write_store(tmp_path / name, *(_rooms(f"t{n}", seed=n) for n in order))
        store.state_rules_path.write_text(IGNORE)
        _credit(store, MERGES["segments"])
        members: dict[tuple[str, int], set[str]] = {}
        for (task, text), state in _state_of_text(store).items():
            members.setdefault((task, state), set()).add(task + text)
        partitions.append({frozenset(own) for own in members.values()})
    assert partitions[0] == partitions[1]


def test_credit_by_other_rules_is_stale(tmp_path: Path):
    store = write_store(tmp_path / "s", _rooms())
    _credit(store, MERGES["segments"])
    assert [found.state for found in credit_freshness(store)] == ["current"]
    store.state_rules_path.write_text(IGNORE)
    (found,) = credit_freshness(store)
    assert (found.state, "rules of states" in found.reason) == ("stale", True)
    _credit(store, MERGES["segments"])
    assert [found.state for found in credit_freshness(store)] == ["current"]
    # A comment and a reason are for people.
    store.state_rules_path.write_text(IGNORE + 'why = "weather"\n# so it is\n')
    assert [found.state for found in credit_freshness(store)] == ["current"]
    store.state_rules_path.unlink()
    assert [found.state for found in credit_freshness(store)] == ["stale"]


def test_a_broken_file_stops_credit_before_it_writes(tmp_path: Path):
    store = write_store(tmp_path / "s", _rooms())
    store.state_rules_path.write_text("[[ignore]]\ntxt = 'a'\n")
    with pytest.raises(OptionError, match=r"states.toml, line 1, \[\[ignore\]\] number 1: .*txt"):
        _credit(store, MERGES["segments"])
    assert not any(shard.credit_path.exists() for shard in store.shards())


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ({"text": r" *\bad\b"}, "a ladder\nand {'t': 1}, 4.5 l"),
        ({"text": r"(?m)^.*ad$\n"}, "and {'t': 1}, 4.5 l"),
        ({"text": "(a)d", "by": r"\1◊"}, "a la◊der a◊\nand {'t': 1}, 4.5 l"),
        ({"text": "A.*L"}, "a ladder ad\nand {'t': 1}, 4.5 l"),
        ({"text": "(?is)A.*L"}, ""),
    ],
)
def test_what_is_left_of_a_text(rule: dict[str, str], left: str):
    text = "a ladder ad\nand {'t': 1}, 4.5 l"
    rules = StateRules(ignore=(StateRule(**rule),))
    steps = complete_trajectories(step_table(trajectory("x", [text, "go", "end"])))[0]
    form = Candidates.after_rules(steps, np.full(1, UNKNOWN), [], rules).form
    assert form.texts[form.code[0]] == left
