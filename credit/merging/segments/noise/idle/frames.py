"""Frames: the tokens that stand before and after what varies in a segment."""

from dataclasses import dataclass, field
from typing import NamedTuple

from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens


class Frame(NamedTuple):
    """All of a segment but what varies in it."""

    address: str
    before: Tokens
    after: Tokens
    length: int
    """Tokens that vary; 0 for any number, but one at least."""

    def span_in(self, tokens: Tokens) -> slice | None:
        """Return where the tokens that vary are in a segment of this address, if it has them."""
        stop = len(tokens) - len(self.after)
        start = len(self.before)
        length = stop - start
        fits = length == self.length if self.length else length > 0
        if fits and tokens[:start] == self.before and tokens[stop:] == self.after:
            return slice(start, stop)
        return None


@dataclass(frozen=True, slots=True)
class FrameIndex:
    """Some frames, found by their beginning."""

    all: frozenset[Frame] = frozenset()
    _of: dict[tuple[str, str], list[Frame]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        index: dict[tuple[str, str], list[Frame]] = {}
        for frame in sorted(self.all):
            first = frame.before[0] if frame.before else ""
            index.setdefault((frame.address, first), []).append(frame)
        object.__setattr__(self, "_of", index)

    def in_segment(self, part: Segment) -> list[tuple[Frame, slice]]:
        """Return the frames that a segment has, and where it varies."""
        if not (self._of and part.tokens):
            return []
        found = [
            (frame, frame.span_in(part.tokens))
            for first in (part.tokens[0], "")
            for frame in self._of.get((part.address, first), ())
        ]
        return [(frame, span) for frame, span in found if span is not None]

    def apply(self, part: Segment) -> Segment:
        """Return a segment with slots where it varies."""
        if not (found := self.in_segment(part)):
            return part
        tokens = list(part.tokens)
        for _, span in found:
            tokens[span] = [SLOT] + [""] * (span.stop - span.start - 1)
        return Segment(part.address, tuple([token for token in tokens if token]))
