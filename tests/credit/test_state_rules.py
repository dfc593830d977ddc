"""The rules of states.toml: what they say of a text, and that no merge says otherwise."""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.overrule.apply import find
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import OptionError
from graphcredit.store.provenance.freshness import credit_freshness
from graphcredit.store.schema import RULES_MET_KEY
from graphcredit.store.state_rules.rule import StateRule
from tests.worlds import trajectory, write_store

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


IGNORE = '[[ignore]]\nvalues = "It is {time}"\n[[ignore]]\nwords = ["wet", "dry"]\n'


@pytest.mark.parametrize("merge", MERGES)
def test_what_is_ignored_is_no_part_of_a_state(tmp_path: Path, merge: str):
    store = write_store(tmp_path / "s", _rooms())
    store.state_rules_path.write_text(IGNORE)
    touched = _credit(store, MERGES[merge])
    states = _state_of_text(store)
    assert len(states) > 10
    # At this threshold, the rest is alike enough for `embedding` to make one state of it.
    assert len(set(states.values())) == (3 if merge != "embedding" else 1)
    # The text after the last step of a failure has none of it.
    assert set(touched.values()) == {len(states)}
    (shard,) = store.shards()
    metadata = pq.read_schema(shard.credit_path).metadata
    assert json.loads(metadata[RULES_MET_KEY]) == touched


@pytest.mark.parametrize("merge", MERGES)
def test_what_is_kept_is_never_united(tmp_path: Path, merge: str):
    store = write_store(tmp_path / "s", _rooms())
    text = IGNORE + '[[keep]]\nwords = ["wet", "dry"]\n[[keep]]\ntext = "The door is {word}"\n'
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
        '[[ignore]]\nvalues = "It is {time}"\ntasks = "kitchen-*"\n'
        '[[ignore]]\nwords = ["wet", "dry"]\ntasks = "kitchen-*"\n'
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
        store.state_rules_path.write_text(IGNORE + '[[keep]]\nwords = ["open", "shut"]\n')
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
    with pytest.raises(OptionError, match=r"states.toml, line 1, \[\[ignore\]\] number 1: .*'txt'"):
        _credit(store, MERGES["segments"])
    assert not any(shard.credit_path.exists() for shard in store.shards())


@pytest.mark.parametrize(
    ("rule", "text", "left"),
    [
        ({"text": "An ad."}, "A room. An ad. A door.", "A room. A door."),
        ({"text": "An ad."}, "A room.\nAn ad.\nA door.", "A room.\nA door."),
        ({"text": "an  AD."}, "A room. An ad.", "A room."),
        ({"text": "An ad."}, "An ad. A room.", "A room."),
        ({"text": "ad"}, "A ladder and an ad", "A ladder and an"),
        ({"text": "Ad: {any}"}, "x\nAd: buy it, now\ny", "x\ny"),
        ({"text": "Ad: {any}!"}, "Ad: buy! buy!", "buy!"),
        ({"text": "{{x}} {number}"}, "a {x} 5,0 b", "a b"),
        ({"values": "Fuel: {number} l"}, "Fuel: 4.5 l, 3 l", "Fuel: ◊ l, 3 l"),
        ({"values": "(#{id})"}, "nut (#83ab12)", "nut (#◊)"),
        ({"words": ["cellar", "root cellar"]}, "a Root  cellar, cellars", "a cellar, cellars"),
        ({"field": "a.t"}, '{"a": {"t": 1, "u": 2}}', '{"a": {"u": 2}}'),
        ({"field": "a.t"}, '{"a": {"u": 2, "t": [1]}}', '{"a": {"u": 2}}'),
        ({"field": "a.t"}, '{"a": {"t": 1}}', '{"a": {}}'),
        ({"field": "t"}, 'so: {"t": "}{", "u": {"t": 3}} end', 'so: {"u": {"t": 3}} end'),
        ({"field": "**.t"}, '{"t": 1, "u": {"t": 3, "v": [{"t": 4}]}}', '{"u": {"v": [{}]}}'),
        ({"field": "v[].t"}, '{"t": 1, "v": [{"t": 4, "w": 5}]}', '{"t": 1, "v": [{"w": 5}]}'),
        ({"field": "*.t"}, '{"t": 1, "u": {"t": 3}}', '{"t": 1, "u": {}}'),
        ({"field": "t"}, '{"t": 1', '{"t": 1'),
        ({"field": "t"}, '{"u": 1.10, "v":  1e400}', '{"u": 1.10, "v":  1e400}'),
    ],
)
def test_what_is_left_of_a_text(rule: dict[str, Any], text: str, left: str):
    assert find(StateRule(**rule), text).text == left


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["t", "u", 'v"{', "w}"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def _pruned(value: Any) -> Any:
    """Return a value without the fields t: the slow twin of the rule `**.t`."""
    if isinstance(value, dict):
        return {name: _pruned(own) for name, own in value.items() if name != "t"}
    return [_pruned(own) for own in value] if isinstance(value, list) else value


@given(st.dictionaries(st.sampled_from(["t", "u", 'v"{']), _JSON, min_size=1), st.booleans())
def test_a_field_goes_and_nothing_else(value: Any, is_indented: bool):
    text = json.dumps(value, indent=2 if is_indented else None)
    left = find(StateRule(field="**.t"), text).text
    assert json.loads(left) == _pruned(value)
    if "t" not in json.dumps(value):
        assert left == text
