"""Lines that come and go: which lines, and which words, are there or not whatever the state is."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from graphcredit.credit.merging.segments.observations import Observations
from graphcredit.credit.merging.segments.parse import COLOURS
from graphcredit.credit.merging.segments.statistics import Sightings
from graphcredit.credit.merging.segments.tokens import Line, template
from graphcredit.credit.steps.arrays import Ints

Form: TypeAlias = tuple[str, str]
"""What lines have in common that differ in their values: the address and the template."""

RARE = ""
"""Stands for all words that are in one observation only."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def form_of(line: Line) -> Form:
    """Return the form of a line."""
    return line.address, template(line.pieces)


def words_of(form: Form) -> set[str]:
    """Return the words of a form."""
    return set(_WORD.findall(form[1].casefold()))


def forms_in(lines: Iterable[Line]) -> set[Form]:
    """Return the forms of the lines of a text; colours are no lines of their own."""
    return {form_of(line) for line in lines if not line.address.endswith(COLOURS)}


def words_in(forms: Sequence[set[Form]], nodes: Iterable[int]) -> list[set[str]]:
    """Return the words of the forms of each text, rare ones as one."""
    words = [set[str]().union(*map(words_of, own)) for own in forms]
    times = Counter(word for node in nodes for word in words[node])
    return [{word if times[word] > 1 else RARE for word in own} for own in words]


def presence(
    features: Sequence[Iterable[Form] | Iterable[str]], observations: Observations
) -> tuple[Sightings, list[Form | str], list[Form | str]]:
    """Return whether each feature that comes and goes in a class is in each observation.

    Args:
        features: Those of the text of each node.
        observations: All observations; those of the groups that have a feature are compared.

    Returns:
        The sightings, with the value 1 or 0; their features; and the features that never come or go
        within a class, though they are in several of its observations.
    """
    nodes, group, equivalence = observations.node, observations.group, observations.equivalence
    size = np.bincount(equivalence)
    having: defaultdict[Form | str, list[int]] = defaultdict(list)
    for number, node in enumerate(nodes.tolist()):
        for feature in features[node]:
            having[feature].append(number)
    chosen: list[Form | str] = []
    lasting: list[Form | str] = []
    for feature, own in having.items():
        classes, times = np.unique(equivalence[own], return_counts=True)
        if (times < size[classes]).any():
            chosen += [feature] * (len(own) > 1)
        elif (times > 1).any():
            lasting.append(feature)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 2))
    places: list[Ints] = [np.empty(0, np.int64)]
    seen: list[Ints] = [np.empty(0, np.int64)]
    values: list[Ints] = [np.empty(0, np.int64)]
    is_there = np.zeros(len(nodes), np.int64)
    for place, feature in enumerate(chosen):
        own = np.array(having[feature])
        is_there[own] = 1
        for there in np.unique(group[own]).tolist():
            members = order[starts[there] : starts[there + 1]]
            places.append(np.full(len(members), place))
            seen.append(members)
            values.append(is_there[members])
        is_there[own] = 0
    value = np.concatenate(values)
    sightings = Sightings(
        place=np.concatenate(places),
        observation=np.concatenate(seen),
        value=value,
        size=value.astype(np.float64),
        names=[()] * len(value),
        num_places=len(chosen),
    )
    return sightings, chosen, lasting
