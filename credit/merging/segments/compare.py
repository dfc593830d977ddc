"""States of several iterations, compared by the segments that are no noise."""

from dataclasses import dataclass, replace
from itertools import chain, compress, islice

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.exact import same_text
from graphcredit.credit.merging.recognise import Looks
from graphcredit.credit.merging.segments.cut import Segmented
from graphcredit.credit.merging.segments.evidence import Judge
from graphcredit.credit.steps.arrays import Bools, Ints

_BETWEEN = " | "
"""Separates the segments of a text; no segment holds it, and `segments.cut` cuts there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SameSegments:
    """Unites states with the same segments, but for those that are noise in this iteration.

    What an earlier iteration found to be noise is not in a known state's text any more. A segment
    that the known state has left is noise if it is noise in the group now, or, where the group does
    not have it, if it came and went more often than it stayed in the iteration.
    """

    segmented: Segmented
    """The texts of the batch."""
    group_of_text: Ints
    """[num_texts] the group of each."""
    is_noise: Bools
    """[num_pairs] which of their segments are noise."""
    in_order: Bools
    """[num_texts] whether the order and number of the text's segments matters."""
    judge: Judge
    """Knows the whole iteration."""

    def remaining(self) -> list[str]:
        """Return [num_texts] what is left of the texts of the batch without noise."""
        names = self.segmented.names
        kept: list[list[str]] = [[] for _ in range(self.segmented.num_texts)]
        text, segment = self.segmented.text[~self.is_noise], self.segmented.segment[~self.is_noise]
        for number, code in zip(text.tolist(), segment.tolist(), strict=True):
            kept[number].append(names[code])
        return [
            _BETWEEN.join(parts if is_list else sorted(set(parts)))
            for parts, is_list in zip(kept, self.in_order.tolist(), strict=True)
        ]

    def __call__(self, looks: Looks) -> Ints:
        """Return [n] the first of the states that each is."""
        parts = [text.split(_BETWEEN) for text in looks.texts]
        is_noise = self._is_noise(looks.group, parts)
        is_kept = iter((~is_noise).tolist())
        texts = [_BETWEEN.join(compress(own, islice(is_kept, len(own)))) for own in parts]
        return same_text(replace(looks, texts=texts))

    def _is_noise(self, group: Ints, parts: list[list[str]]) -> Bools:
        """Return the verdict on each segment of each text, one text after the other."""
        flat = list(chain.from_iterable(parts))
        names = pa.array([*self.segmented.names, *flat], pa.large_string())
        encoded = names.dictionary_encode()
        code = encoded.indices.to_numpy().astype(np.int64)[len(self.segmented.names) :]
        num_names = max(len(encoded.dictionary), 1)
        key = np.repeat(group, [len(own) for own in parts]) * num_names + code
        own_key = self.group_of_text[self.segmented.text] * num_names + self.segmented.segment
        elsewhere = np.flatnonzero(~np.isin(key, own_key))
        is_noise = np.isin(key, own_key[self.is_noise])
        is_noise[elsewhere] = self.judge.balance([flat[n] for n in elsewhere.tolist()]) > 0
        return is_noise
