"""`graphcredit er-graph`, on questions whose answer takes two pages."""

import json
from pathlib import Path

import polars as pl
import pytest

import graphcredit
from graphcredit.store import open_store
from graphcredit.store.parquet.er_graph import read_er_graph
from tests.cli.in_process import run

PAGES = {
    "Ada Brook": "Ada Brook\nAda Brook is a painter. She was born in Millford.",
    "Millford": "Millford\nOnce a market, Millford lies on the Tarn River.",
    "Oskar Lund": "Oskar Lund\nOskar Lund sang with the Blue Owls.",
}
QUESTION = "Which river crosses the town where Ada Brook was born?"


def played(task: str, name: str, pages: list[str], answer: str) -> list[dict[str, object]]:
    """Return the steps of a rollout that reads pages, and answers."""
    seen = [QUESTION, *(PAGES[page] for page in pages), "The episode is over."]
    acts = [*(f"search[{page}]" for page in pages), f"finish[{answer}]"]
    is_won = answer == "Tarn River"
    return [
        {"task": task, "episode": name, "t": t, "obs": seen[t], "next_obs": seen[t + 1]}
        | {"action": act, "reward": float(is_won and t == len(pages)), "done": t == len(pages)}
        for t, act in enumerate(acts)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rows = [
        *played("q1", "a", ["Ada Brook", "Millford"], "Tarn River"),
        *played("q1", "b", ["Oskar Lund"], "Blue Owls"),
        *played("q2", "c", ["Millford"], "Tarn River"),
        *played("q2", "d", ["Ada Brook"], "Millford"),
        *played("q3", "e", ["Ada Brook"], "Millford"),
    ]
    graphcredit.record(pl.DataFrame(rows), tmp_path / "store")
    return tmp_path / "store"


def related(store: Path, task: str) -> dict[str, tuple[bool, set[str]]]:
    """Return the entities of a task: whether each is an answer, and what it is related to."""
    graph = read_er_graph(open_store(store)).of_tasks([task])
    pairs = [(row["head_id"], row["tail_id"]) for row in graph.relations.to_pylist()]
    return {
        row["entity_id"]: (
            row["is_answer"],
            {other for pair in pairs if row["entity_id"] in pair for other in pair}
            - {row["entity_id"]},
        )
        for row in graph.entities.to_pylist()
    }


def test_the_way_from_question_to_answer_is_drawn_from_texts(store: Path):
    report = json.loads(run("er-graph", store, "--json").out)
    assert related(store, "q1") == {
        "ada brook": (False, {"millford"}),
        "millford": (False, {"ada brook", "tarn river"}),
        "tarn river": (True, {"millford"}),
        "oskar lund": (False, {"blue owls"}),
        "blue owls": (False, {"oskar lund"}),
    }
    assert (report["tasks"], report["tasks_with_answer"]) == (3, 2)  # nobody won q3
    graphcredit.credit(store, estimators="sapo")
    steps = graphcredit.scan(store).filter(task_id="q1").collect()
    assert dict(steps.select("action", "sapo_step_reward").rows()) == pytest.approx(
        {
            "search[Ada Brook]": 0.25 + 0.5,
            "search[Millford]": 1.0,
            "finish[Tarn River]": 0.0,
            "search[Oskar Lund]": 0.0,
            "finish[Blue Owls]": 0.0,
        }
    )


def test_answers_and_triples_of_somebody_who_has_them(store: Path, tmp_path: Path):
    (tmp_path / "gold.csv").write_text("task_id,answer\nq3,Tarn River\n")
    (tmp_path / "kb.jsonl").write_text(
        "\n".join(
            json.dumps({"head": head, "relation": "of", "tail": tail})
            for head, tail in [("Millford", "Tarn River"), ("Tarn River", "Sea"), ("X", "Y")]
        )
    )
    given = ("--answers", tmp_path / "gold.csv", "--triples", tmp_path / "kb.jsonl")
    assert run("er-graph", store, *given).exit_code == 0
    assert related(store, "q3") == {
        "millford": (False, {"tarn river"}),
        "tarn river": (True, {"millford", "sea"}),
        "sea": (False, {"tarn river"}),
    }
    assert related(store, "q1") == {}


def test_a_given_answer_that_only_begins_sentences_is_related_too(tmp_path: Path):
    state = "Who lived with Ada Brook?\nTom lived with Ada Brook."
    rows = [{"task": "q", "episode": "a", "t": 0, "obs": state, "next_obs": "Over.", "done": True}]
    rows[0] |= {"action": "finish[nobody]", "reward": 0.0}
    graphcredit.record(pl.DataFrame(rows), tmp_path / "store")
    (tmp_path / "gold.csv").write_text("task_id,answer\nq,Tom\n")
    assert run("er-graph", tmp_path / "store", "--answers", tmp_path / "gold.csv").exit_code == 0
    assert related(tmp_path / "store", "q")["tom"] == (True, {"ada brook"})


def test_a_row_without_an_answer_is_named(store: Path, tmp_path: Path):
    (tmp_path / "gold.jsonl").write_text('{"task_id": "q1", "gold": "x"}\n')
    ended = run("er-graph", store, "--answers", tmp_path / "gold.jsonl")
    assert ended.exit_code == 2
    assert "line 1: a row must have task_id, answer: it has task_id, gold" in ended.err
