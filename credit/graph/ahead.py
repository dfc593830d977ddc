"""Means over the edges that lie exactly k hops ahead of a node, for every k.

An edge lies k hops ahead where it is the last of a walk of k edges that starts at the node. It
counts once for each such walk.
"""

from collections.abc import Iterator

import numpy as np

from graphcredit.credit.steps.arrays import Floats, Ints


def means_of_walks(source: Ints, target: Ints, value: Floats, num_nodes: int) -> Iterator[Floats]:
    """Yield, for each k, the mean of the k-th edge's value over all walks of k edges.

    Numbers of walks grow without bound, so their logarithms are kept.

    Args:
        source: [num_edges] node each edge leaves.
        target: [num_edges] node it enters.
        value: [num_edges].
        num_nodes: Number of nodes.

    Yields:
        [num_nodes] 0 where no walk of k edges starts. The last k is the last with a walk.
    """
    count = np.bincount(source, minlength=num_nodes)
    mean = np.bincount(source, value, num_nodes) / np.maximum(count, 1)
    log_count = np.log(np.maximum(count, 1)) + np.where(count > 0, 0.0, -np.inf)
    while len(source):
        yield mean
        if not (goes_on := np.isfinite(log_count[target])).all():
            source, target = source[goes_on], target[goes_on]
        most = np.full(num_nodes, -np.inf)
        np.maximum.at(most, source, log_count[target])
        weight = np.exp(log_count[target] - most[source])
        total = np.maximum(np.bincount(source, weight, num_nodes), 1.0)
        mean = np.bincount(source, weight * mean[target], num_nodes) / total
        log_count = np.log(total) + most
