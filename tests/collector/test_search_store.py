"""From `collect --env search` to `credit -e sapo`, on real entities and as it is typed."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.search.entities import entities_near, er_graph_of
from graphcredit.collector.environments.search.facts import load_facts
from graphcredit.collector.environments.search.questions import question_named
from graphcredit.store import Store, open_store
from graphcredit.store.parquet.er_graph import read_er_graph
from tests.cli.in_process import completed
from tests.collector.test_search import QUESTION, WORLD


def graphcredit(*arguments: str | Path) -> str:
    done = completed(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def collect(store: Path, *arguments: str) -> None:
    graphcredit(
        "collect", store, "--env", "search", "--max-steps", "15", "--workers", "0", *arguments
    )


def rows_of(store: Store, run: str) -> list[dict[str, Any]]:
    """Return steps and credit of a run, joined."""
    return [
        step | credit
        for shard in store.shards(run)
        for step, credit in zip(
            pq.ParquetFile(shard.path).read().to_pylist(),
            pq.ParquetFile(shard.credit_path).read().to_pylist(),
            strict=True,
        )
    ]


def test_what_is_far_from_the_answer_is_no_entity_of_the_task():
    # Borland and Borport's sister are 1 and 2 from Bor City; what is 4 away is left out.
    assert entities_near(WORLD, QUESTION) == {
        *("Bor City", "Borland"),
        *("Arland", "Bor Dollar", "Borport"),
        *("Ar City", "Ar Dollar", "Corland", "Middle"),
    }


@pytest.mark.parametrize("spec", ["2hop-s1", "3hop-s4"])
def test_the_entities_of_a_task_have_one_answer_and_everything_on_the_way(spec: str):
    task = Task(environment="search", spec=spec)
    graph = er_graph_of([task])
    question = question_named(spec)
    rows = graph.entities.to_pylist()
    assert [row["name"] for row in rows if row["is_answer"]] == [question.answer]
    assert {row["task_id"] for row in rows} == {task.task_id}
    names = {row["name"] for row in rows}
    assert names >= set(question.entities)
    assert len(names) < len(load_facts().pages)
    ends = {r[end] for r in graph.relations.to_pylist() for end in ("head_id", "tail_id")}
    assert ends <= {row["entity_id"] for row in rows}


@pytest.mark.slow
def test_collecting_twice_merges_the_entities_of_all_tasks(tmp_path: Path):
    root = tmp_path / "store"
    collect(root, "--games", "2hop-s1", "--policy", "oracle:0.5", "--group-size", "2")
    first = read_er_graph(open_store(root)).digest()
    collect(root, "--games", "3hop-s2,2hop-s1", "--policy", "oracle:0.5", "--group-size", "2")
    graph = read_er_graph(open_store(root))
    assert set(graph.entities["task_id"].to_pylist()) == {"search-2hop-s1", "search-3hop-s2"}
    again = tmp_path / "again"
    collect(again, "--games", "3hop-s2,2hop-s1", "--policy", "random", "--group-size", "1")
    assert read_er_graph(open_store(again)).digest() == graph.digest() != first


def test_sapo_credits_real_searches(tmp_path: Path):
    root = tmp_path / "store"
    collect(root, "--policy", "oracle:0", "--games", "2hop-s1", "--group-size", "1", "--run", "won")
    collect(root, "--policy", "oracle:0.5", "--tasks", "6", "--oracle")
    collect(root, "--policy", "random", "--tasks", "3", "--run", "random")
    reports = json.loads(graphcredit("credit", root, "-e", "sapo", "-e", "grpo", "--json"))
    assert {row["num_groups_without_entities"] for row in reports} == {0}
    assert {row["num_groups_without_answer"] for row in reports} == {0}
    assert "0 errors, 0 notices" in graphcredit("check", root)
    store = open_store(root)
    _check_the_way_of_the_oracle(rows_of(store, "won"))
    _check_that_progress_is_preferred(rows_of(store, "r0"))
    thoughts = {row["thought"] for row in rows_of(store, "random")}
    assert None not in thoughts
    assert len(thoughts) > 10


def _check_the_way_of_the_oracle(steps: list[dict[str, Any]]) -> None:
    """Which neighbour of Bolivia pays in pesos (ARS): Argentina, so Buenos Aires.

    d: Buenos Aires 0; Argentina 1; its neighbours, among them Bolivia, Brazil, Chile, Paraguay,
    2; Peru 3, a neighbour of Bolivia but not of Argentina.
    """
    assert [step["action"] for step in steps] == [
        "search[Bolivia]",
        "lookup[borders]",
        "search[Argentina]",
        "lookup[capital]",
        "answer[Buenos Aires]",
    ]
    rewards = [step["sapo_step_reward"] for step in steps]
    found = 1 / 2 + 3 / 4 + 1 / 8
    assert rewards == [1 / 4, 1 / 4 + found, 1 / 2, 1, 1]
    # The third step cites Argentina, which is the open page, and finds nothing new; the fourth
    # cites nothing new and finds the answer, the fifth cites it.


def _check_that_progress_is_preferred(steps: list[dict[str, Any]]) -> None:
    failed = {s["trajectory_id"] for s in steps if s["success"] is False}
    assert 0 < len(failed) < len({s["trajectory_id"] for s in steps})
    nearer, others = [], []
    for step in steps:
        if step["trajectory_id"] in failed and step["success"] is None:
            is_nearer = step["next_oracle_distance"] < step["oracle_distance"]
            (nearer if is_nearer else others).append(step["sapo_step_advantage"])
    assert sum(nearer) / len(nearer) > sum(others) / len(others) + 0.3
