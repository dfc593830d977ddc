"""From texts to nodes: rules, the guard, greedy merging, and what the stage says of it."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings, settings_of
from graphcredit.credit.merging.admissible import UNKNOWN, signature_of_nodes, signatures
from graphcredit.credit.merging.merger import MergeReport, open_merger
from graphcredit.credit.merging.nearest import join_most_similar
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.options import CreditOptions
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store import Store
from graphcredit.store.errors import NothingToCreditError, OptionError
from graphcredit.store.schema import CONFIGURATION_KEY
from tests.worlds import step_table, trajectory, worked_example, write_store


def merged(rows: list[dict[str, Any]], **settings: Any) -> tuple[Nodes, MergeReport]:
    """Return the nodes of some steps."""
    table = step_table(rows)
    steps, _ = complete_trajectories(table)
    found = open_merger(MergeSettings(**settings)).nodes(steps, table)
    return found.nodes, found.report()


def with_admissible(rows: list[dict[str, Any]], *lists: list[str] | None) -> list[dict[str, Any]]:
    """Return the steps with a list of admissible actions each."""
    return [row | {"admissible_actions": a} for row, a in zip(rows, lists, strict=True)]


def credit(store: Store, *names: str, **settings: Any) -> CreditReport:
    """Credit a store of one iteration and return its report."""
    wanted = CreditSettings(estimators=configure(names), merge=MergeSettings(**settings))
    (report,) = assign_credit(store, wanted).values()
    return report


def test_texts_that_are_equal_after_the_rules_are_one_node():
    rows = [*trajectory("x", "A a B b a c C"), *trajectory("y", "a a b d D")]
    nodes, report = merged(rows, normalise=("casefold",))
    # A and a: 0; B and b: 1; C 2; D 3.
    assert nodes.state_of_step.tolist() == [0, 1, 0, 0, 1]
    assert nodes.target_of_step.tolist() == [1, 0, 2, 1, 3]
    assert nodes.num_texts.tolist() == [2, 2, 1, 1]
    assert (report.num_texts, report.num_states) == (6, 4)


def test_merging_stays_within_a_group_and_leaves_goals_alone():
    won = trajectory("x", "A a a", success=True, task_id="t0")
    nodes, _ = merged([*won, *trajectory("y", "a a A", task_id="t1")], normalise=("casefold",))
    assert nodes.node_start.tolist() == [0, 2, 3]
    assert nodes.goal_of_group.tolist() == [1, -1]
    assert nodes.state_of_step.tolist() == [0, 2]
    assert nodes.target_of_step.tolist() == [1, 2]


def test_a_merge_that_creates_contradictions_shows():
    # go leads from A to B and from a to C: one node once A and a are one.
    rows = [*trajectory("x", "A go B"), *trajectory("y", "a go C")]
    _, report = merged(rows, normalise=("casefold",))
    assert (report.num_contradictions_before, report.num_contradictions) == (0, 1)


def test_a_merge_that_resolves_contradictions_shows():
    rows = [*trajectory("x", "A go B"), *trajectory("y", "A go b")]
    _, report = merged(rows, normalise=("casefold",))
    assert (report.num_contradictions_before, report.num_contradictions) == (1, 0)


def test_the_guard_keeps_states_with_different_admissible_actions_apart():
    rows = [*trajectory("x", "A a B"), *trajectory("y", "a a b")]
    differing = with_admissible(rows, ["a", "open"], ["a", "close"])
    nodes, report = merged(differing, normalise=("casefold",))
    assert nodes.state_of_step.tolist() == [0, 2]
    # Nothing is known of B and b, where both trajectories stop.
    assert nodes.target_of_step.tolist() == [1, 1]
    assert report.num_refused == 1
    nodes, report = merged(differing, normalise=("casefold",), guard=False)
    assert nodes.state_of_step.tolist() == [0, 0]
    assert report.num_refused == 0


def test_signatures_tell_null_from_empty_and_look_at_the_set():
    lists = pa.chunked_array([[["x", "y"], None, []], [["y", "x", "x"], ["x"], ["xy"]]])
    found = signatures(lists.cast(pa.list_(pa.string()))).tolist()
    assert found[1] == UNKNOWN
    assert found[0] == found[3]
    assert len({found[0], found[2], found[4], found[5]}) == 4
    assert min(found[:1] + found[2:]) >= 0


def test_a_list_without_actions_is_one_more_list_of_a_node():
    lists = pa.chunked_array([[[f"a{n}"] for n in range(64)] + [[]]])
    some, none = np.split(signatures(lists), [64])
    steps = np.concatenate([some, some, np.repeat(none, 64)])
    # Nodes 0 … 63 have seen one list each, nodes 64 … 127 the same and the empty one.
    node = np.concatenate([np.arange(64), np.arange(64, 128), np.arange(64, 128)])
    found = signature_of_nodes(steps, node, 128)
    assert (found[:64] != found[64:]).all()


def test_a_node_with_two_lists_has_a_signature_of_its_own():
    found = signature_of_nodes(np.array([5, 7, 5, 7, 5, -1]), np.array([0, 0, 1, 2, 3, 4]), 6)
    assert found[1] == found[3]
    assert len({found[0], found[1], found[2]}) == 3
    assert found[4:].tolist() == [UNKNOWN, UNKNOWN]


def unit(*rows: tuple[float, float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return rows of length 1."""
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_each_vector_joins_the_most_similar_representative():
    # Directions of 0, 60, 40 and 45 degrees: 40 is nearer to 60, 45 too.
    angles = np.radians([0, 60, 40, 45])
    vectors = unit(*zip(np.cos(angles), np.sin(angles), strict=True))
    zeros = np.zeros(4, np.int64)
    found, refused = join_most_similar(vectors, zeros, zeros, float(np.cos(np.radians(41))))
    assert found.tolist() == [0, 1, 1, 1]
    assert refused == 0
    found, _ = join_most_similar(vectors, zeros, zeros, float(np.cos(np.radians(10))))
    assert found.tolist() == [0, 1, 2, 2]


def test_a_signature_makes_a_vector_join_the_next_best_and_is_counted():
    angles = np.radians([0, 60, 40])
    vectors = unit(*zip(np.cos(angles), np.sin(angles), strict=True))
    found, refused = join_most_similar(vectors, np.zeros(3, int), np.array([1, 2, 1]), 0.7)
    assert (found.tolist(), refused) == ([0, 1, 0], 1)
    found, refused = join_most_similar(vectors, np.zeros(3, int), np.array([1, 2, 3]), 0.7)
    assert (found.tolist(), refused) == ([0, 1, 2], 1)


def test_a_representative_without_a_signature_takes_the_first_that_joins():
    vectors = unit((1, 0), (1, 0), (1, 0))
    found, refused = join_most_similar(vectors, np.zeros(3, int), np.array([-1, 4, 5]), 0.9)
    assert (found.tolist(), refused) == ([0, 0, 2], 1)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-9, 9)), min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_greedy_merging_agrees_with_a_slow_one(rows: list[tuple[int, int]], seed: int):
    rng = np.random.default_rng(seed)
    vectors = unit(*((float(a), float(b)) for a, b in rows))
    group = np.sort(rng.integers(0, 2, len(rows)))
    found, _ = join_most_similar(vectors, group, np.full(len(rows), UNKNOWN), 0.97)
    chosen: list[int] = []
    for i in range(len(rows)):
        cosines = {j: float(vectors[i] @ vectors[j]) for j in chosen if group[j] == group[i]}
        best = max(cosines.values(), default=0.0)
        if best >= 0.97 - 1e-5:
            assert cosines[int(found[i])] >= best - 1e-6
        else:
            assert found[i] == i
            chosen.append(i)


def test_more_vectors_than_a_block_are_merged_alike():
    rng = np.random.default_rng(0)
    centres = np.eye(40, dtype=np.float32)
    which = rng.integers(0, 40, 900)
    nothing = np.full(900, UNKNOWN)
    found, _ = join_most_similar(centres[which], np.zeros(900, int), nothing, 0.95)
    first = {code: int(np.argmax(which == code)) for code in range(40)}
    assert found.tolist() == [first[code] for code in which.tolist()]


def test_the_stage_merges_reports_and_records_how(tmp_path: Path):
    noisy = [row | {"state": f"{row['state']}!"} for row in worked_example()]
    for row, following in itertools.pairwise(noisy):
        if following["step_index"]:
            row["next_state"] = following["state"]
    store = write_store(tmp_path / "s", noisy)
    report = credit(store, "graphgpo", substitute=("!=>",))
    assert (report.num_texts, report.num_merged_texts) == (5, 1)
    shard = pq.ParquetFile(store.shards()[0].credit_path)
    assert shard.read()["graphgpo_advantage"][4].as_py() == pytest.approx(0.5240, abs=5e-5)
    made_by = json.loads(shard.schema_arrow.metadata[CONFIGURATION_KEY])["graphgpo"]
    assert made_by["substitutions"] == ["!=>"]
    assert (made_by["merge"], made_by["guard"]) == ("exact", True)
    nodes = pq.ParquetFile(store.graph_dir("r0", 0) / "nodes.parquet").read()
    assert nodes["state"].to_pylist() == ["A!", "B!", "C!", "D", "won"]
    assert nodes["num_merged"].to_pylist() == [1, 2, 1, 1, 1]


def test_embedding_merges_what_is_similar_and_records_how(tmp_path: Path):
    long = "You are in a bright kitchen with a fridge, a stove and a table. " * 3
    rows = [
        *trajectory("x", [long, "a", "B"], success=True),
        *trajectory("y", [long + "Sale!", "b", "C"]),
    ]
    store = write_store(tmp_path / "s", rows)
    report = credit(store, "graphgpo", merge="embedding", threshold=0.9)
    assert (report.num_texts, report.num_merged_texts) == (3, 1)
    metadata = pq.ParquetFile(store.shards()[0].credit_path).schema_arrow.metadata
    made_by = json.loads(metadata[CONFIGURATION_KEY])["graphgpo"]
    assert (made_by["merge"], made_by["threshold"]) == ("embedding", 0.9)
    assert made_by["embedder"] == "ngram"


@pytest.mark.parametrize(
    "settings",
    [{"normalise": ("casefold", "alfworld")}, {"merge": "embedding"}, {"merge": "segments"}],
)
def test_a_store_without_a_complete_trajectory_has_no_states(
    tmp_path: Path, settings: dict[str, Any]
):
    dead = trajectory("dead", "A a B", success=None)
    store = write_store(tmp_path / "s", dead)
    with pytest.raises(NothingToCreditError, match=r"found 1 incomplete rollout \(1 step\)"):
        credit(store, "graphgpo", **settings)
    assert not store.shards()[0].credit_path.exists()
    # Beside a whole one it changes nothing.
    store = write_store(tmp_path / "s", [*dead, *worked_example()])
    report = credit(store, "graphgpo", **settings)
    assert (report.num_incomplete, report.num_texts) == (1, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"merge": "magic"}, "--merge must be one of exact, "),
        ({"threshold": 0.0}, "above 0: got 0.0"),
        ({"threshold": float("nan")}, "a finite number: got nan"),
        ({"normalise": ("nope",)}, "no rule is called 'nope'"),
        ({"substitute": ("nope",)}, "REGEX=>TEXT"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
):
    store = write_store(tmp_path / "s", worked_example())
    with pytest.raises(OptionError, match=message):
        credit(store, "grpo", **settings)


def test_what_an_earlier_version_of_a_merge_made_is_of_another_graph():
    assert MergeSettings(merge="segments").as_json()["merge_version"] == 4
    assert "merge_version" not in MergeSettings(merge="embedding").as_json()


def test_only_a_merge_reads_the_admissible_actions():
    assert MergeSettings().columns == ()
    assert MergeSettings(merge="embedding", guard=False).columns == ()
    assert MergeSettings(merge="embedding").columns == ("admissible_actions",)


def test_options_of_the_merge_may_be_set_like_those_of_estimators():
    texts = ("merge.normalise=casefold", "merge.normalise=whitespace", "merge.guard=no")
    texts += ("merge.substitute=a=b=>c", "gigpo.gamma=0.5")
    settings = settings_of(CreditOptions(estimators=("gigpo",), set=texts))
    assert settings.merge == MergeSettings(
        normalise=("casefold", "whitespace"), substitute=("a=b=>c",), guard=False
    )
    assert settings.estimators == configure(["gigpo"], ["gigpo.gamma=0.5"])
    for wrong, message in (
        ("merge.gard=no", "merge has no option 'gard'"),
        ("merge.guard=maybe", "merge.guard must be true or false: got 'maybe'"),
        ("merge.guard", "a setting must read merge.OPTION=VALUE"),
    ):
        with pytest.raises(OptionError, match=message):
            settings_of(CreditOptions(estimators=("gigpo",), set=(wrong,)))
