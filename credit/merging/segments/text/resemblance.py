"""Whether the words of a text are those of one of some others."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

_LEAST = 0.5
"""Share of equal words from which one text resembles another."""


class Resemblance:
    """Finds whether a text resembles one of these; it remembers what it was asked."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        """Index texts, given as their words."""
        self._sizes: list[int] = []
        self._having: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """Each word to the texts that have it, and how often."""
        for number, words in enumerate(sorted({tuple(sorted(words)) for words in texts})):
            self._sizes.append(len(words))
            for word, times in Counter(words).items():
                self._having[word].append((number, times))
        self._answers: dict[tuple[str, ...], bool] = {}

    def resembles(self, words: Sequence[str]) -> bool:
        """Return whether half of the words, in any order, are those of one text."""
        key = tuple(sorted(words))
        if key not in self._answers:
            self._answers[key] = self._most_equal(key)
        return self._answers[key]

    def _most_equal(self, words: tuple[str, ...]) -> bool:
        common = Counter[int]()
        for word, times in Counter(words).items():
            for number, there in self._having.get(word, ()):
                common[number] += min(times, there)
        return any(
            2 * number >= _LEAST * (len(words) + self._sizes[text])
            for text, number in common.items()
        )
