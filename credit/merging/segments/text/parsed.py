"""Many texts as lists of segment codes, so that each different segment is handled once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.text.parse import Segment, is_plain, parse
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """Texts as lists of segment codes."""

    text: Ints
    """[num_pairs] the text a segment stands in, ascending."""
    segment: Ints
    """[num_pairs] code of the segment, in the order in which they stand."""
    num_texts: int
    """Texts, those without a segment included."""
    segments: list[Segment]
    """The segment of each code; those that no text has any more may be among them."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Parsed":
        """Parse texts."""
        code_of: dict[Segment, int] = {}
        segment: list[int] = []
        length: list[int] = []
        codes_of: dict[str, list[int]] = {}
        for text in texts:
            before = len(segment)
            # Most lines of plain text are there many times.
            for part in text.splitlines() if is_plain(text) else [text]:
                codes = codes_of.get(part)
                if codes is None:
                    found = parse(part)
                    codes = [code_of.setdefault(own, len(code_of)) for own in found]
                    codes_of[part] = codes
                segment += codes
            length.append(len(segment) - before)
        return cls(
            text=np.repeat(np.arange(len(length)), np.array(length, np.int64)),
            segment=np.array(segment, np.int64),
            num_texts=len(length),
            segments=list(code_of),
        )

    def map(self, change: Callable[[Segment], Segment]) -> "Parsed":
        """Return the same texts with every segment changed; one without tokens may vanish."""
        return self._recoded(self.segment, [change(part) for part in self.segments])

    def map_in_groups(
        self, group_of_text: Ints, change: Callable[[int, Segment], Segment]
    ) -> "Parsed":
        """Return the same texts with every segment changed as its group wants."""
        pair, group, segment = factorise_pairs(group_of_text[self.text], self.segment)
        parts = [
            change(g, self.segments[s])
            for g, s in zip(group.tolist(), segment.tolist(), strict=True)
        ]
        return self._recoded(pair, parts)

    def _recoded(self, old: Ints, parts: list[Segment]) -> "Parsed":
        code_of: dict[Segment, int] = {}
        code = np.array([code_of.setdefault(part, len(code_of)) for part in parts], np.int64)
        segments = list(code_of)
        is_kept = np.array([bool(part.tokens or part.address) for part in segments], bool)
        new = code[old] if len(code) else old
        keep = is_kept[new] if len(new) else np.empty(0, bool)
        return Parsed(
            text=self.text[keep], segment=new[keep], num_texts=self.num_texts, segments=segments
        )

    def without(self, is_dropped: Bools) -> "Parsed":
        """Return the texts without some pairs. `is_dropped` is [num_pairs]."""
        return Parsed(
            text=self.text[~is_dropped],
            segment=self.segment[~is_dropped],
            num_texts=self.num_texts,
            segments=self.segments,
        )

    @property
    def is_repeat(self) -> Bools:
        """[num_pairs] whether the text has the segment before."""
        pair, owner, _ = factorise_pairs(self.text, self.segment)
        found = np.ones(len(pair), np.bool_)
        first = np.full(len(owner), len(pair))
        np.minimum.at(first, pair, np.arange(len(pair)))
        found[first] = False
        return found

    def lists(self) -> list[list[int]]:
        """Return [num_texts] the codes of each text's segments, in order."""
        start = np.searchsorted(self.text, np.arange(self.num_texts + 1))
        flat = self.segment.tolist()
        return [flat[a:b] for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]

    def identities(self, any_order: bool) -> Ints:
        """Return [num_texts] a code: equal for texts with the same segments."""
        code_of: dict[tuple[int, ...], int] = {}
        keys = (tuple(sorted(own) if any_order else own) for own in self.lists())
        return np.array([code_of.setdefault(key, len(code_of)) for key in keys], np.int64)

    def of_visits(self, node: Ints) -> tuple[Ints, Ints]:
        """Return the distinct segments at some visits, as (visit, segment) pairs.

        Args:
            node: [num_visits] the text seen at each.
        """
        _, text, segment = factorise_pairs(self.text, self.segment)
        start = np.searchsorted(text, np.arange(self.num_texts + 1))
        count = np.diff(start)[node]
        visit = np.repeat(np.arange(len(node)), count)
        offset = np.arange(len(visit)) - np.repeat(np.cumsum(count) - count, count)
        return visit, segment[np.repeat(start[node], count) + offset]
