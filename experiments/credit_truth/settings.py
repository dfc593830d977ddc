"""Settings of the published estimators, and of the control without a graph, at their best.

They are chosen on the worlds for design by `tune.py`, never on those that judge: on the thirteen
with wins, and of the control once more on the four with scores, where another is best.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from graphcredit.credit.estimators.discounted import Discounted
from graphcredit.credit.estimators.graft import Graft
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.table import Assigner

TUNED: Mapping[str, Assigner] = {
    "discounted, tuned": Discounted(gamma=0.8),
    "discounted, tuned on scores": Discounted(gamma=0.95, baseline="group"),
    "graphgpo, tuned": GraphGpo(normalize="none"),
    "graft, tuned": Graft(gae_lambda=0.0, failure_ends="apart", normalize="none"),
}
"""The best of `tried`. An estimator's name comes before the comma."""


def tried() -> Iterator[tuple[str, Assigner]]:
    """Yield every estimator and setting that is tried."""
    for gamma, baseline in product((0.5, 0.7, 0.8, 0.9, 0.95), ("none", "group")):
        yield "discounted", Discounted(gamma=gamma, baseline=baseline)
    for weight, normalize in product((0.0, 1.0), ("std", "none")):
        for discount in (0.1, 0.5, 0.8, 0.95):
            yield (
                "graphgpo",
                GraphGpo(distance_discount=discount, episode_weight=weight, normalize=normalize),
            )
        for decay, ends in product((0.0, 0.6, 0.95), ("apart", "shared")):
            yield (
                "graft",
                Graft(
                    gae_lambda=decay, failure_ends=ends, episode_weight=weight, normalize=normalize
                ),
            )
