"""Vectors of texts: n-grams, models, and the store's memory of what models said."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.embedding.model import ModelEmbedder
from graphcredit.credit.merging.embedding.ngram import NgramEmbedder, embed_distinct
from graphcredit.credit.merging.nearest import Vectors
from graphcredit.store import create_store
from graphcredit.store.errors import InputError, MissingDependencyError
from graphcredit.store.extras import how_to_install


def cosine(one: str, other: str) -> float:
    """Return the cosine of two texts' n-grams."""
    vectors = NgramEmbedder().embed([one, other])
    return float(vectors[0] @ vectors[1])


def test_a_text_is_as_close_to_another_as_they_share_runs_of_characters():
    kitchen = "You are in a kitchen. There is a fridge, a stove and a wooden table here."
    assert cosine(kitchen, kitchen) == pytest.approx(1)
    assert cosine(kitchen, kitchen + " Hi.") > 0.95
    assert cosine(kitchen, "On the shelf: nothing but dust, seven bulbs") < 0.3


def test_two_runs_in_common_of_three_give_two_thirds():
    # "abc" with its spaces has runs of 3 " ab" "abc" "bc ", of 4 " abc" "abc ", of 5 " abc ";
    # "abd" shares " ab" only: one of six.
    assert cosine("abc", "abd") == pytest.approx(1 / 6, abs=1e-6)


@given(st.lists(st.text(), max_size=6))
def test_vectors_have_length_one_and_do_not_depend_on_the_company(texts: list[str]):
    embedder = NgramEmbedder()
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), embedder.dimension)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(vector, embedder.embed([text])[0])
        assert np.linalg.norm(vector) == pytest.approx(1 if text else 0, abs=1e-5)


def test_long_texts_are_embedded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch):
    asked: list[list[int]] = []
    embed = NgramEmbedder._embed  # pyright: ignore[reportPrivateUsage]

    def counted(self: NgramEmbedder, texts: list[str]) -> Vectors:
        asked.append([len(text) for text in texts])
        return embed(self, texts)

    monkeypatch.setattr(NgramEmbedder, "_embed", counted)
    monkeypatch.setattr(NgramEmbedder, "_chunk_characters", 10)
    monkeypatch.setattr(NgramEmbedder, "_chunk_texts", 3)
    vectors = NgramEmbedder().embed(["a" * size for size in (4, 6, 1, 30, 9, 1, 0, 0, 0)])
    assert asked == [[4, 6], [1], [30], [9, 1, 0], [0, 0]]
    assert vectors.shape == (9, 1024)


class CountingEmbedder:
    """Makes a vector of a text's length, and remembers what it was asked for."""

    def __init__(self, identity: str = "counting", fails_after: int = 10**9) -> None:
        self.identity = identity
        self.asked: list[str] = []
        self.fails_after = fails_after

    def embed(self, texts: list[str]) -> Vectors:
        if len(self.asked) >= self.fails_after:
            raise KeyboardInterrupt
        self.asked += texts
        return np.array([[len(text), 1.0] for text in texts], np.float32)


def test_a_text_is_embedded_once_per_call():
    embedder = CountingEmbedder()
    assert embed_distinct(embedder, ["b", "aa", "b"])[:, 0].tolist() == [1, 2, 1]
    assert embedder.asked == ["b", "aa"]


def test_a_text_is_embedded_once_per_store_and_model(tmp_path: Path):
    store = create_store(tmp_path / "s")
    first, second = CountingEmbedder(), CountingEmbedder()
    CachedEmbedder(store, first).embed(["a", "bb"])
    vectors = CachedEmbedder(store, second).embed(["ccc", "bb", "a"])
    assert second.asked == ["ccc"]
    assert vectors.tolist() == [[3, 1], [2, 1], [1, 1]]
    other = CountingEmbedder("another")
    CachedEmbedder(store, other).embed(["a"])
    assert other.asked == ["a"]


def test_an_interrupted_embedding_goes_on_where_it_stopped(tmp_path: Path):
    store = create_store(tmp_path / "s")
    texts = [f"text {number}" for number in range(5000)]
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(store, CountingEmbedder(fails_after=4096)).embed(texts)
    again = CountingEmbedder()
    vectors = CachedEmbedder(store, again).embed(texts)
    assert again.asked == texts[4096:]
    assert vectors[:, 0].tolist() == [len(text) for text in texts]


def test_a_model_needs_sentence_transformers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependencyError, match=re.escape(how_to_install("embed"))):
        ModelEmbedder("all-MiniLM-L6-v2").embed(["a"])


class StandInModel:
    """What sentence-transformers offers, as far as it is used."""

    def __init__(
        self,
        name: str,
        *,
        device: str,
        local_files_only: bool,
        trust_remote_code: bool,
        model_kwargs: dict[str, bool],
    ) -> None:
        assert local_files_only
        assert not trust_remote_code
        assert model_kwargs == {"use_safetensors": True}
        if name == "absent":
            raise OSError("offline")
        if name == "../..":
            raise KeyError("hidden_size")

    def encode(self, texts: list[str], **options: Any) -> Vectors:
        assert options["normalize_embeddings"]
        return np.array([[float(text.startswith("query: "))] for text in texts], np.float32)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    monkeypatch.setattr(module, "SentenceTransformer", StandInModel, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("name", "has_prefix"),
    [
        ("intfloat/e5-base-v2", True),
        ("intfloat/multilingual-e5-small", True),
        ("models/e5-small/", True),
        ("sentence-transformers/all-MiniLM-L6-v2", False),
        ("some/base5-model", False),
    ],
)
def test_only_the_e5_family_gets_its_prefix(name: str, has_prefix: bool):
    assert ModelEmbedder(name).embed(["a"]).tolist() == [[float(has_prefix)]]


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("name", "reason"), [("absent", "offline"), ("../..", "KeyError: 'hidden_size'")]
)
def test_what_is_no_model_is_named_with_the_reason(name: str, reason: str):
    with pytest.raises(
        InputError, match=r"the embedder must be ngram, or a .* on this machine"
    ) as e:
        ModelEmbedder(name).embed(["a"])
    assert str(e.value).endswith(f"{name!r}: {reason}")


def test_a_model_directory_that_changed_is_another_model(tmp_path: Path):
    (tmp_path / "weights").write_text("1")
    before = ModelEmbedder(str(tmp_path)).identity
    (tmp_path / "weights").write_text("12")
    assert ModelEmbedder(str(tmp_path)).identity != before
