"""Facts about countries, as pages that a searcher can open and read.

A page is an entity. A country has `borders`, `capital`, `cities` (its largest), `continent` and
`currency`; a city has its `country`; continents and currencies have nothing to read.

The facts come from GeoNames (https://www.geonames.org), licence CC BY 4.0. `facts.json` is a
selection of countries and of their five largest cities; the name of a city that is not the only
thing of its name has its country in brackets.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

COUNTRY, CITY = "country", "city"

Page = Mapping[str, tuple[str, ...]]
"""Relation to the names of entities, in the order in which they are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """All pages."""

    pages: Mapping[str, Page]
    """By name; continents and currencies have empty ones."""
    kinds: Mapping[str, str]
    """`country` or `city` by name; other entities are in `pages` only."""

    def hops_to(self, goal: str) -> dict[str, int]:
        """Return, for each page, the number of relations to read in a row to reach `goal`.

        Pages from which it cannot be reached are left out.
        """
        leads_to: dict[str, list[str]] = {}
        for name, page in self.pages.items():
            for tail in {tail for tails in page.values() for tail in tails}:
                leads_to.setdefault(tail, []).append(name)
        return breadth_first(goal, leads_to)


def breadth_first(start: str, neighbours: Mapping[str, list[str]]) -> dict[str, int]:
    """Return the distance of every node that can be reached from `start`."""
    distance = {start: 0}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for neighbour in neighbours.get(name, ()):
            if neighbour not in distance:
                distance[neighbour] = distance[name] + 1
                queue.append(neighbour)
    return distance


@cache
def load_facts() -> Facts:
    """Return the facts that are part of this package."""
    path = files("graphcredit.collector.environments.search") / "facts.json"
    return facts_of(json.loads(path.read_text(encoding="utf-8"))["countries"])


def facts_of(countries: Mapping[str, Mapping[str, list[str]]]) -> Facts:
    """Return the pages of some countries, and of all entities that they name.

    Args:
        countries: Country to relation to names of entities, which must be unique.
    """
    pages: dict[str, dict[str, tuple[str, ...]]] = {}
    kinds: dict[str, str] = {}
    for country, relations in countries.items():
        kinds[country] = COUNTRY
        pages[country] = {name: tuple(tails) for name, tails in relations.items()}
        for city in (*relations.get("capital", ()), *relations.get("cities", ())):
            kinds[city] = CITY
            pages[city] = {"country": (country,)}
    for relations in list(pages.values()):
        for tails in relations.values():
            for tail in tails:
                pages.setdefault(tail, {})
    return Facts(pages=pages, kinds=kinds)
