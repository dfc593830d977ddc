"""A trajectory that moves over the graph: where it is, how it came there, and its texts."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.log_text import one_line, visible
from graphcredit.viewer.graph.facts import SHOWN
from graphcredit.viewer.graph.shading import signed
from graphcredit.viewer.graph.task_graph import edge_key, node_key

LONGEST = 6000
"""Characters of a text that are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """The trajectory in one of its states."""

    at: str
    """Key of the state."""
    by: str | None
    """Key of the transition that led there; None at the start."""
    head: str
    """The step that led there, with its value; or that it is the start."""
    thought: str
    """What the agent thought before that step; empty without one."""
    seen: str
    """What it sees there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Play:
    """A trajectory to play."""

    name: str = ""
    """Its id; empty for none."""
    moments: tuple[Moment, ...] = ()
    """The start, then one for each step."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {"name": self.name, "moments": [asdict(moment) for moment in self.moments]}


def play_of(steps: pa.Table, texts: pa.Table, trajectory_id: str) -> Play:
    """Return the moments of a trajectory: its start, and one for each step that is in the graph."""
    text_of = {row["step_index"]: row for row in texts.select(_TEXTS).to_pylist()}
    mine = steps.filter(pc.field("trajectory_id") == trajectory_id).to_pylist()
    if not mine:
        return Play()
    start = Moment(
        at=node_key(mine[0]["state_id"]),
        by=None,
        head="Start",
        thought="",
        seen=_cut(text_of[mine[0]["step_index"]]["state"]),
    )
    return Play(
        name=trajectory_id,
        moments=(start, *(_moment(row, text_of[row["step_index"]]) for row in mine)),
    )


_TEXTS = ["step_index", "state", "thought", "next_state"]


def _moment(row: Mapping[str, Any], texts: Mapping[str, Any]) -> Moment:
    return Moment(
        at=node_key(row["next_state_id"]),
        by=edge_key((row["state_id"], row["next_state_id"])),
        head=f"Step {row['step_index']}: {one_line(row['action'], 200)}  {signed(row[SHOWN])}",
        thought=_cut(texts["thought"]) if texts["thought"] else "",
        seen=_cut(texts["next_state"]),
    )


def _cut(text: str | None) -> str:
    """Return visible text; a very long one is cut, and says by how much."""
    shown = visible(text)
    more = len(shown) - LONGEST
    return shown if more <= 0 else f"{shown[:LONGEST]}… ({more:,} more characters)"
