"""What actions would do that no step took, by what they did in the most alike state.

Only what can be imagined at all loads this file: polars takes half a second.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.inputs.analogies.jaccard import Block, Sets, compare, sets_of
from graphcredit.credit.inputs.analogies.text_slices import text_slices
from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.parquet.numbers import numpy_of

_ROUNDING = 1e-9
"""Products of ratios that differ, differ by more."""


def imagine(
    steps: Steps, nodes: Nodes, texts: pa.Array, possible: Sets, action: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return the source, the target and the cost of each imagined transition.

    Args:
        steps: Complete trajectories.
        nodes: Of their states.
        texts: [num_nodes] what the text of each state says; null at a goal.
        possible: The actions of each node.
        action: [num_steps] the code of each step's action.
    """
    imagined = _imagine(texts, nodes, possible, _taken(steps, nodes, action))
    source, target, cost = (imagined[name].to_numpy() for name in ("source", "target", "cost"))
    return source, target, cost


def _taken(steps: Steps, nodes: Nodes, action: Ints) -> pl.DataFrame:
    """Return what each action did: group, action, taker (a node), target, and the least cost."""
    steps_of = pl.DataFrame(
        {
            "group": nodes.group_of_step,
            "action": action,
            "taker": nodes.state_of_step,
            "target": nodes.target_of_step,
            "cost": steps.cost,
        }
    ).filter(steps.is_valid)
    keys = ("group", "action", "taker", "target")
    return steps_of.group_by(keys, maintain_order=True).agg(pl.col("cost").min())


def _imagine(texts: pa.Array, nodes: Nodes, possible: Sets, taken: pl.DataFrame) -> pl.DataFrame:
    """Return the source, the target and the cost of each imagined transition."""
    takers = taken.select("group", "action", "taker").unique(maintain_order=True)
    group = nodes.group_of_node[possible.node]
    listed = {"group": group, "action": possible.code, "source": possible.node}
    untried = (
        pl.DataFrame(listed)
        .filter(nodes.goal_of_group[group] >= 0)
        .join(takers, left_on=["action", "source"], right_on=["action", "taker"], how="anti")
        .join(takers, on=["group", "action"], how="semi")
        .sort("source", "action")
    )
    kinds = (possible, _words(texts, nodes.node_start)) if len(untried) else ()
    groups = untried["group"].unique().sort().to_numpy()
    blocks = [Block(rows=range(0), first=0, alike=np.empty((0, 0)))]
    alike = (
        _most_alike(untried, takers, block)
        for block in chain(blocks, compare(kinds, nodes.node_start, groups))
    )
    moves = taken.filter(pl.col("target") != pl.col("taker"))
    found = pl.concat(alike).join(
        moves, on=["group", "action", "taker"], maintain_order="left_right"
    )
    is_sure = pl.col("target").n_unique().over("source", "action") == 1
    return found.filter(is_sure).with_columns(pl.col("cost") / pl.col("alike"))


def _most_alike(untried: pl.DataFrame, takers: pl.DataFrame, block: Block) -> pl.DataFrame:
    """Return the takers that are most alike the nodes of a block, for each untried action."""
    of_block = pl.col("source").is_between(block.rows.start, block.rows.stop - 1)
    pairs = untried.filter(of_block).join(
        takers, on=["group", "action"], maintain_order="left_right"
    )
    source, taker = pairs["source"].to_numpy(), pairs["taker"].to_numpy()
    pairs = pairs.with_columns(
        pl.Series("alike", block.alike[source - block.rows.start, taker - block.first])
    )
    best = pl.col("alike").max().over("source", "action")
    return pairs.filter(pl.col("alike") > 0, pl.col("alike") >= best * (1 - _ROUNDING))


def _words(texts: pa.Array, node_start: Ints) -> Sets:
    """Return the words of each node's text: what white space separates.

    A word may have another code in another group: nobody compares the words of two groups.
    """
    parts = [sets_of(np.empty(0, np.int64), np.empty(0, np.int64))]
    num_before = 0
    for nodes in text_slices(texts, node_start):
        split = pc.utf8_split_whitespace(texts[nodes.start : nodes.stop])
        words = encode(pa.chunked_array([pc.list_flatten(split)]))
        node = nodes.start + numpy_of(pc.list_parent_indices(split)).astype(np.int64)
        is_word = (numpy_of(pc.binary_length(words.texts)) > 0)[words.code]
        parts.append(sets_of(node[is_word], num_before + words.code[is_word]))
        num_before += len(words.texts)
    return Sets(
        node=np.concatenate([part.node for part in parts]),
        code=np.concatenate([part.code for part in parts]),
    )
