"""What certain looks at one state show of lines, names of fields and the order of segments."""

from collections import defaultdict
from itertools import chain, pairwise

from graphcredit.credit.merging.segments.looks.align import looks
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import name_of
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens, kind_of
from graphcredit.credit.merging.segments.text.wrapped import (
    SoftBreaks,
    Words,
    around_break,
    soft_breaks,
    words_of,
)

_SEVERAL = 3
_LEAST = 2
"""In so many states lines or an order must be seen to change."""


def learn_breaks(sample: SampledGroups) -> SoftBreaks:
    """Return the line breaks that looks at one state have, or have not."""
    lines = [text.splitlines() for text in sample.texts]
    words = {line: words_of(line) for own in lines for line in own}
    broken = [{around_break(words[a], words[b]) for a, b in pairwise(own)} for own in lines]
    found = soft_breaks(chain.from_iterable(broken), words.values())
    if not (found.between or found.inside):
        return found
    whole = {line: found.in_line(own) for line, own in words.items()}
    number = 0
    for _, nodes in looks(sample.visits):
        at_break = set[Words]().union(*(broken[node] for node in nodes))
        number += any(whole[line] & at_break for node in nodes for line in lines[node])
    return found if number >= _LEAST else SoftBreaks()


def loose_fields(parsed: Parsed, visits: Visits) -> frozenset[str]:
    """Return names of fields without which looks at one state say the same, such as `Well:`.

    Or with other words before the colon, such as `Sie tragen:` for `Inventory:`.
    """
    lists = parsed.lists()
    said = [
        tuple([SLOT if kind_of(token) else token for token in part.tokens])
        for part in parsed.segments
    ]
    states: dict[str, set[int]] = defaultdict(set)
    for state, (_, nodes) in enumerate(looks(visits)):
        addresses: dict[Tokens, set[str]] = defaultdict(set)
        for code in {code for node in nodes for code in lists[node]}:
            tokens = said[code]
            after = tokens.index(":") + 1 if ":" in tokens else 0
            for own in {tokens, tokens[after:]}:
                addresses[own].add(parsed.segments[code].address)
        for tokens, own in addresses.items():
            for address in own if tokens else ():
                name = name_of(address)
                if name and address.removesuffix(name).rstrip() in own:
                    states[name].add(state)
    return frozenset(name for name, seen in states.items() if len(seen) >= _SEVERAL)


def order_changes(parsed: Parsed, visits: Visits) -> bool:
    """Return whether looks at one state have the same segments in another order."""
    lists = parsed.lists()
    found = 0
    for _, nodes in looks(visits):
        orders = {tuple(lists[node]) for node in nodes}
        found += len({tuple(sorted(order)) for order in orders}) < len(orders)
    return found >= _LEAST
