"""States of several iterations: those of which different things are kept are never one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from graphcredit.credit.merging.recognise import Alike, Looks
from graphcredit.credit.steps.arrays import Ints

_AFTER = "\x1e"
"""Stands between what is kept of a state and what it is recognised by otherwise."""


def with_kept(texts: Iterable[str], kept: Iterable[str]) -> list[str]:
    """Return what states are recognised by, with what is kept of them."""
    return [_AFTER.join(pair) for pair in zip(kept, texts, strict=True)]


@dataclass(frozen=True, slots=True)
class KeptApart:
    """A merge, as a comparison of texts that begin with what is kept."""

    alike: Alike
    """Compares what follows."""

    def __call__(self, observations: Looks) -> Ints:
        """Return [n] the first of the states that each is."""
        parts = [text.partition(_AFTER) for text in observations.texts]
        kept = pa.array([before for before, _, _ in parts], pa.large_string()).dictionary_encode()
        group = observations.group * (len(kept.dictionary) + 1) + kept.indices.to_numpy()
        texts = [after for _, _, after in parts]
        return self.alike(replace(observations, group=group, texts=texts))
