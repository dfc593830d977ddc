"""Questions about countries with exactly one right answer each, and their names.

A question is named `<hops>hop-s<number>`, for example `2hop-s1`. The numbers enumerate all
questions of a kind, in a pseudorandom order that is the same everywhere.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import entries_of, seeded_tasks
from graphcredit.collector.environments.search.facts import COUNTRY, Facts, load_facts
from graphcredit.store.errors import OptionError

ENVIRONMENT = "search"

_ENTRY = re.compile(r"(?P<kind>[23]hop)(?:-s(?P<number>[0-9]{1,9}))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question and its answer."""

    hops: int
    """Number of relations between the entity where the question starts and the answer."""
    text: str
    entities: tuple[str, ...]
    """The entities that it names, from which a search can start."""
    answer: str


def all_questions(facts: Facts) -> Iterator[Question]:
    """Yield every question that has exactly one right answer."""
    for name, kind in facts.kinds.items():
        if kind != COUNTRY:
            continue
        for currency, neighbour in _only_neighbours(facts, name):
            (answer,) = facts.pages[neighbour]["capital"]
            yield Question(
                hops=2,
                text=f"What is the capital of the country that borders {name} and whose currency "
                f"is the {currency}?",
                entities=(name, currency),
                answer=answer,
            )
            (capital,) = facts.pages[name]["capital"]
            yield Question(
                hops=3,
                text=f"Of the country whose capital is {capital}, one neighbour has the currency "
                f"{currency}. What is the capital of that neighbour?",
                entities=(capital, currency),
                answer=answer,
            )


def _only_neighbours(facts: Facts, country: str) -> Iterator[tuple[str, str]]:
    """Yield (currency, neighbour) for each currency that exactly one neighbour has."""
    neighbours_of: dict[str, list[str]] = {}
    for neighbour in facts.pages[country].get("borders", ()):
        for currency in facts.pages[neighbour].get("currency", ()):
            neighbours_of.setdefault(currency, []).append(neighbour)
    for currency, neighbours in neighbours_of.items():
        if len(neighbours) == 1:
            yield currency, neighbours[0]


@cache
def _numbered() -> Mapping[str, tuple[Question, ...]]:
    """Return the questions of each kind, by their number."""
    ordered = sorted(
        all_questions(load_facts()),
        key=lambda question: blake2b(question.text.encode(), digest_size=8).digest(),
    )
    return {
        f"{hops}hop": tuple(question for question in ordered if question.hops == hops)
        for hops in (2, 3)
    }


def question_named(spec: str) -> Question:
    """Return a question by its full name."""
    kind, number = _parse_entry(spec)
    if number is None:
        raise OptionError(f"a question is named <hops>hop-s<number>: got {spec!r}")
    return _numbered()[kind][number]


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks by `2hop`, `3hop`, or single questions such as `2hop-s1`.

    The seed is the number of the first round's questions. After the last question of a kind comes
    the first, so any number is valid.
    """
    sizes = {kind: len(questions) for kind, questions in _numbered().items()}
    return seeded_tasks(
        ENVIRONMENT,
        [_parse_entry(entry) for entry in entries_of(games, num_tasks, default="2hop,3hop")],
        lambda kind, number, _: f"{kind}-s{number % sizes[kind]}",
        num_tasks=num_tasks,
        seed=seed,
        num_rounds=max(sizes.values()),
    )


def _parse_entry(entry: str) -> tuple[str, int | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise OptionError(
            "questions are 2hop or 3hop, with an optional number, for example 2hop-s1: "
            f"got {entry!r}"
        )
    kind, number = match["kind"], None if match["number"] is None else int(match["number"])
    count = len(_numbered()[kind])
    if number is not None and number >= count:
        raise OptionError(f"{kind} has questions 0 to {count - 1}: got {number}")
    return kind, number
