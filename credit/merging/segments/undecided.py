"""States that stay apart for want of evidence: counted, so that a recall below 1 is no secret."""

import numpy as np

from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs

_NONE = -1


def count_undecided(parsed: Parsed, place: Ints, is_known: Bools) -> int:
    """Return how many pairs of states are the same but for one segment that nothing is known of.

    They share at least one segment, and one of the two may have none where the other has one. What
    they share is compared by the sum of its hashes, whatever its order.

    Args:
        parsed: What is left of the texts without noise.
        place: [num_texts] equal for texts that might be one state: those of one group, with the
            same admissible actions.
        is_known: [num_segments] whether certain looks at a state show that the segment stays there,
            or that it does not.
    """
    # Any numbers do that are the same in every run.
    mixed = np.random.default_rng(0).integers(1 << 62, size=len(parsed.segments), dtype=np.int64)
    whole = np.zeros(parsed.num_texts, np.int64)
    np.add.at(whole, parsed.text, mixed[parsed.segment])
    size = np.bincount(parsed.text, minlength=parsed.num_texts)
    is_open = ~is_known[parsed.segment] & (size[parsed.text] > 1)
    text, segment = parsed.text[is_open], parsed.segment[is_open]
    texts = np.flatnonzero(size)
    owner = np.concatenate([place[text], place[texts]])
    rest = np.concatenate([whole[text] - mixed[segment], whole[texts]])
    other = np.concatenate([segment, np.full(len(texts), _NONE)])
    rest = np.unique(rest, return_inverse=True)[1]
    among, _, _ = factorise_pairs(owner, rest)
    _, where, _ = factorise_pairs(among, other - _NONE)
    versions = np.bincount(where)
    return int((versions * (versions - 1) // 2).sum())
