"""Reads of a credit run: how often it opens the steps of an iteration, and loads a model."""

import pickle
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.embedding.model import ModelEmbedder
from graphcredit.credit.merging.nearest import Vectors
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps import batches
from graphcredit.credit.steps.batches import Plan, ShardPart
from graphcredit.store import Store
from graphcredit.store.layout import Shard
from tests.worlds import step_table, worked_example, write_store

ITERATIONS = (0, 1, 2)


def _three_iterations(root: Path) -> Store:
    for number in ITERATIONS:
        rows = [
            row | {name: f"{row[name]} {number}" for name in ("state", "next_state")}
            for row in worked_example()
        ]
        store = write_store(root, rows, iteration=number)
    return store


def _credit(store: Store, estimator: str, merge: MergeSettings) -> None:
    assign_credit(store, CreditSettings(estimators=configure([estimator]), merge=merge))


@pytest.mark.parametrize(
    ("estimator", "merge", "expected"),
    [
        ("grpo", "exact", 1),
        # To learn what is noise, then to merge.
        ("grpo", "segments", 2),
        # To count where trajectories acted, then for credit.
        ("spo3", "exact", 2),
    ],
)
def test_the_steps_of_an_iteration_are_read_once_for_each_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimator: str, merge: str, expected: int
):
    reads: Counter[int] = Counter()
    read_batch = batches.read_batch

    def counted(
        shards: Sequence[Shard], plan: Plan, batch: int, columns: Sequence[str]
    ) -> list[ShardPart]:
        reads[shards[0].iteration] += 1
        return read_batch(shards, plan, batch, columns)

    monkeypatch.setattr(batches, "read_batch", counted)
    _credit(_three_iterations(tmp_path / "s"), estimator, MergeSettings(merge=merge))
    assert reads == dict.fromkeys(ITERATIONS, expected)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the models that are loaded, of a stand-in for the library."""
    names: list[str] = []

    class Model:
        def __init__(self, name: str, **options: Any) -> None:
            names.append(name)

        def encode(self, texts: list[str], **options: Any) -> Vectors:
            return np.eye(26, dtype=np.float32)[[ord(text[0]) % 26 for text in texts]]

    module = ModuleType("sentence_transformers")
    monkeypatch.setattr(module, "SentenceTransformer", Model, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return names


MODEL = MergeSettings(merge="embedding", embedder="some/model")


def test_a_model_is_loaded_once_a_run(tmp_path: Path, loaded: list[str]):
    _credit(_three_iterations(tmp_path / "s"), "grpo", MODEL)
    assert loaded == ["some/model"]


def test_a_run_whose_vectors_are_all_kept_loads_no_model(tmp_path: Path, loaded: list[str]):
    store = _three_iterations(tmp_path / "s")
    _credit(store, "grpo", MODEL)
    loaded.clear()
    _credit(store, "graphgpo", MODEL)
    assert loaded == []


def test_a_table_of_several_iterations_loads_a_model_once(loaded: list[str]):
    steps = step_table(worked_example())
    parts = [steps.append_column("iteration", [[n] * steps.num_rows]) for n in ITERATIONS]
    credit = compute(pa.concat_tables(parts), estimators=["grpo"], merge=MODEL)
    assert credit["grpo_advantage"].null_count == 0
    assert loaded == ["some/model"]


def test_a_model_that_is_loaded_is_not_sent_to_other_processes(loaded: list[str]):
    model = ModelEmbedder("some/model")
    model.load()
    copy: ModelEmbedder = pickle.loads(pickle.dumps(model))
    assert copy.embed(["a"]).shape == (1, 26)
    assert loaded == ["some/model"] * 2
