"""What certain looks at one state show of lines, names of fields and the order of segments."""

from collections import defaultdict

from graphcredit.credit.merging.segments.looks.align import looks
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import (
    name_of,
    parse,
    without_layout,
)
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens, kind_of

_SEVERAL = 3
_LEAST = 2
"""In so many states lines or an order must be seen to change."""


def breaks_change(sample: SampledGroups) -> bool:
    """Return whether looks at one state have the same words on other lines."""
    squashed = ["".join(text.split()) for text in sample.texts]
    found = 0
    for _, nodes in looks(sample.visits):
        first = {squashed[node]: node for node in reversed(nodes)}
        found += any(
            _sentences(sample.texts[node]) != _sentences(sample.texts[first[squashed[node]]])
            for node in nodes
        )
    return found >= _LEAST


def _sentences(text: str) -> list[Tokens]:
    """Return the tokens of the segments of a text, without punctuation and gaps."""
    return [without_layout(part).tokens for part in parse(text)]


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
