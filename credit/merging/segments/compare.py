"""States of several iterations, compared by what is left of their texts without noise."""

from dataclasses import dataclass, replace

import numpy as np

from graphcredit.credit.merging.exact import same_text
from graphcredit.credit.merging.recognise import Looks
from graphcredit.credit.merging.segments.rules import NoiseRules
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Ints


def written(parsed: Parsed, any_order: bool) -> list[str]:
    """Return [num_texts] the segments of each text as lines: address, tab, tokens."""
    lines = [f"{part.address}\t{' '.join(part.tokens)}" for part in parsed.segments]
    texts = ([lines[code] for code in codes] for codes in parsed.lists())
    return ["\n".join(sorted(own) if any_order else own) for own in texts]


def _read(text: str) -> list[Segment]:
    lines = (line.partition("\t") for line in text.split("\n") if line)
    return [Segment(address, tuple(rest.split(" ")) if rest else ()) for address, _, rest in lines]


@dataclass(frozen=True, kw_only=True, slots=True)
class SameSegments:
    """Unites states that are the same but for what is noise in this iteration."""

    rules: NoiseRules
    """What the iteration shows."""

    def __call__(self, looks: Looks) -> Ints:
        """Return [n] the first of the states that each is."""
        return same_text(replace(looks, texts=[self._left(text) for text in looks.texts]))

    def _left(self, text: str) -> str:
        """Return what is left of what an earlier iteration left of a text."""
        rules = self.rules
        parts = [rules.after_typos(rules.before_words(part)) for part in _read(text)]
        score = rules.judge.scores(parts)
        seen = set[Segment]()
        kept: list[Segment] = []
        for part, noise in zip(parts, score, strict=True):
            if not (part.address or part.tokens):
                continue
            if noise < np.inf and not (part in seen and rules.repeats.are_idle(part)):
                kept.append(part)
                seen.add(part)
        lines = [f"{part.address}\t{' '.join(part.tokens)}" for part in kept]
        return "\n".join(sorted(lines) if rules.any_order else lines)
