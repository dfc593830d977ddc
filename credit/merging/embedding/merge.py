"""The merge `embedding`: texts whose vectors are similar enough are one state."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.embedding.cache import NamedEmbedder
from graphcredit.credit.merging.embedding.model import ModelEmbedder
from graphcredit.credit.merging.embedding.ngram import (
    NGRAM,
    Embedder,
    NgramEmbedder,
    embed_distinct,
)
from graphcredit.credit.merging.nearest import join_most_similar
from graphcredit.credit.steps.nodes import merge_nodes

KeepVectors: TypeAlias = Callable[[NamedEmbedder], Embedder]
"""Returns an embedder that asks a model only for vectors that are not kept yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingMerge:
    """Merges each node with the most similar one before it, if it is similar enough."""

    embedder: Embedder
    """Makes the vectors."""
    threshold: float
    """Least cosine."""

    def learn(self, batches: Iterable[Candidates]) -> "EmbeddingMerge":
        """Return itself: it needs to see nothing first."""
        del batches
        return self

    def unite(self, candidates: Candidates) -> Union:
        """Return the groups of similar candidates."""
        nodes = candidates.nodes
        states = np.flatnonzero(nodes.text_of_node >= 0)
        group = candidates.may_unite()[states]
        order = np.argsort(group, kind="stable")
        states, group = states[order], group[order]
        texts = [candidates.forms[code] for code in candidates.form_of(nodes)[states].tolist()]
        representative, num_refused = join_most_similar(
            embed_distinct(self.embedder, texts),
            group,
            candidates.signature_of(nodes)[states],
            self.threshold,
        )
        label = np.arange(len(nodes.text_of_node))
        label[states] = states[representative]
        return Union(nodes=merge_nodes(nodes, label), num_refused=num_refused)

    def read(self, candidates: Candidates) -> list[str]:
        """Return the normal forms."""
        return candidates.forms


def open_embedder(name: str, keep: KeepVectors | None) -> Embedder:
    """Return `ngram`, or a model that is loaded when the first text needs it.

    Args:
        name: `ngram`, or the name or path of a sentence-transformers model.
        keep: Keeps the vectors of a model; those of `ngram` are made faster than read.
    """
    if name == NGRAM:
        return NgramEmbedder()
    model = ModelEmbedder(name)
    return keep(model) if keep else model


def check_embedder(name: str) -> None:
    """Raise an error if a model is asked for that cannot be loaded; see `ModelEmbedder.load`."""
    if name != NGRAM:
        ModelEmbedder(name).load()
