"""The result of learning: which typed tokens and which lines of a text are irrelevant."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graphcredit.credit.merging.segments.parse import ATTRIBUTE, COLOURS, Parser
from graphcredit.credit.merging.segments.places import Place, places_of
from graphcredit.credit.merging.segments.presence import RARE, Form, form_of, words_of
from graphcredit.credit.merging.segments.tokens import SLOT, Line

ALIKE = 0.5
"""Share of the words of a line that must come and go, where the line itself was seen too seldom."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Irrelevant:
    """What says nothing of the state; by default nothing."""

    places: Mapping[Place, bool] = field(default_factory=dict[Place, bool])
    """Whether a value is irrelevant, by the description of its place."""
    lines: Mapping[Form, bool] = field(default_factory=dict[Form, bool])
    """Whether a line is irrelevant, by its form."""
    words: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Whether a word comes and goes, for lines without a verdict of their own; what holds for
    `RARE` holds for words that are not here."""

    def __bool__(self) -> bool:
        return any(self.places.values()) or any(self.lines.values()) or any(self.words.values())

    def left_out(self, line: Line) -> frozenset[int]:
        """Return which values of a line are irrelevant: the narrowest verdict on a place counts."""
        verdicts = (
            next((self.places[of] for of in descriptions if of in self.places), False)
            for descriptions in places_of(line)
        )
        return frozenset(number for number, verdict in enumerate(verdicts) if verdict)

    def is_line(self, form: Form) -> bool:
        """Return whether a line is irrelevant; none is with a value that is a part of the state."""
        slots = (("line", *form, str(number)) for number in range(form[1].count(SLOT)))
        if any(self.places.get(slot) is False for slot in slots):
            return False
        verdict = self.lines.get(form)
        if verdict is not None or not self.words:
            return bool(verdict)
        votes = [self.words.get(word, self.words.get(RARE, False)) for word in words_of(form)]
        return sum(votes) > ALIKE * len(votes)


class Reader:
    """Reads texts without what is irrelevant; it remembers which forms of lines are."""

    def __init__(self, irrelevant: Irrelevant) -> None:
        self._irrelevant = irrelevant
        self._parser = Parser()
        self._is_line: dict[Form, bool] = {}

    def read(self, text: str) -> tuple[str, ...]:
        """Return what is kept of the lines of a text: address, tab, line."""
        return self.keep(self._parser.lines(text))

    def keep(self, lines: Iterable[Line]) -> tuple[str, ...]:
        """Return what is kept of some lines."""
        return tuple(kept for kept in map(self._kept, lines) if kept is not None)

    def _kept(self, line: Line) -> str | None:
        form = form_of(line)
        if form not in self._is_line:
            self._is_line[form] = self._irrelevant.is_line(form)
        if self._is_line[form]:
            return None
        left_out = self._irrelevant.left_out(line)
        if left_out and (line.address.endswith(COLOURS) or ATTRIBUTE in line.address):
            return None
        return f"{line.address}\t{line.without(left_out)}"
