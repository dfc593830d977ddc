"""The words of a drawing: labels, tips and the notes of its legend."""

from collections.abc import Collection, Mapping, Sequence

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.names import headline
from graphcredit.viewer.graph.shading import OwnStep, Shading, signed
from graphcredit.viewer.graph.task_graph import Edge, Node
from graphcredit.viewer.graph.true_distances import TrueDistances
from graphcredit.viewer.queries.truth import MARKS
from graphcredit.viewer.widgets.text import one_line

_LABEL_LENGTH = 22
_MOST_NUMBERS = 4
_MOST_NAMES = 4


def state_name(node: Node) -> str:
    """Return the label of a state: its number and its first words, on one line."""
    if node.is_goal:
        return "GOAL"
    return f"{node.state_id}  {one_line(headline(node), 18)}"


def box_label(node: Node, apart: Mapping[int, str]) -> str:
    """Return three lines: the state, what distinguishes it, its seen distance and its visits."""
    distance = "no way seen" if node.goal_distance is None else f"{node.goal_distance:g} to go"
    name = "GOAL" if node.is_goal else f"{node.state_id} {one_line(headline(node), 12)}"
    told = apart.get(node.state_id)
    return "\n".join([name, *([told] if told else []), f"{distance} · {node.visits}×"])


def fold_label(kind: str, nodes: Sequence[Node], values: Sequence[float | None]) -> str:
    """Return three lines on a fold: which states, their seen distances, and their credit.

    Args:
        kind: chain or room.
        nodes: Its states.
        values: The advantages of the transitions between them.
    """
    far = ["no way seen" if n.goal_distance is None else f"{n.goal_distance:g}" for n in nodes]
    number = f"{len(nodes)} states"
    if kind == "chain":
        which, ends = f"{number} {nodes[0].state_id} → {nodes[-1].state_id}", (far[0], far[-1])
        distance = ends[0] if ends[0] == ends[1] else " → ".join(ends)
    else:
        which = f"{number} behind one"
        known = [n.goal_distance for n in nodes if n.goal_distance is not None]
        ends = (f"{min(known):g}", f"{max(known):g}") if known else (far[0], far[0])
        distance = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return "\n".join(
        [which, distance if distance == "no way seen" else f"{distance} to go", _range(values)]
    )


def fold_tip(kind: str, nodes: Sequence[Node], values: Sequence[float | None]) -> str:
    """Return what the pointer tells of a fold; the arguments are those of its label."""
    number = counted(len(values), "transition")
    if kind == "chain":
        where, named = "in a row", (nodes[0], nodes[-1])
    else:
        where, named = "behind one state", tuple(nodes[:_MOST_NAMES])
    facts = f"{counted(len(nodes), 'state')} {where}, {number} between: {_range(values)}"
    more = len(nodes) - len(named) if kind == "room" else 0
    return "\n".join([facts, *map(state_name, named), *([f"and {more} more"] if more else [])])


def fold_notes(kinds: Collection[str]) -> list[str]:
    """Return the notes of the legend on the folds of a drawing."""
    named = {
        "chain": "a chain of states",
        "room": "a room, what lies behind one state",
    }
    found = [words for kind, words in named.items() if kind in kinds]
    return [f"stacked: {' or '.join(found)}, and the range of its advantages"] if found else []


def _range(values: Sequence[float | None]) -> str:
    """Return the least and the greatest advantage."""
    known = [value for value in values if value is not None]
    ends = list(dict.fromkeys([signed(min(known)), signed(max(known))])) if known else ["–"]
    return " to ".join(ends)


def scale_ends(values: Sequence[float], limit: float) -> list[str]:
    """Return the ends of a scale from -limit to limit as text; they say if values lie beyond."""
    is_below, is_above = min(values, default=0.0) < -limit, max(values, default=0.0) > limit
    return [f"{'≤ ' if is_below else ''}-{limit:.2g}", f"{'≥ ' if is_above else ''}+{limit:.2g}"]


def distance_words(node: Node, truth: TrueDistances | None) -> str:
    """Return the seen distance of a state and the true one, as far as they are known."""
    seen = (
        "no way to the goal was seen"
        if node.goal_distance is None
        else f"seen {node.goal_distance:g} to the goal"
    )
    known = "" if truth is None else truth.words(node.state_id)
    return f"{seen} · {known}" if known else seen


def legend_notes(shading: Shading) -> list[str]:
    """Return the notes of the legend about marks on transitions."""
    notes = ["⇄ yellow: the signs differ"] if shading.others is not None else []
    if shading.truth is not None:
        notes.append("✓ ✗: the mean advantage has the sign of the true progress, or not")
    if shading.own:
        notes.append("numbers: steps of the trajectory, in its own colours; elsewhere means")
    return notes


def node_tip(node: Node, shading: Shading) -> str:
    """Return what the pointer tells of a state."""
    facts = [
        distance_words(node, shading.truth),
        f"{counted(node.visits, 'visit')}, {node.success_rate:.0%} succeeded",
    ]
    if node.num_merged > 1:
        facts.append(counted(node.num_merged, "text"))
    return f"{state_name(node)}\n{' · '.join(facts)}\n{one_line(node.state, 160)}"


def edge_label(edge: Edge, shading: Shading, *, has_room: bool) -> str:
    """Return the marks of a transition, the trajectory's step numbers, and its action."""
    own = shading.own.get(edge.ends, ())
    flip = "⇄" if shading.is_flipped(edge) else ""
    marks = f"{flip}{MARKS[shading.verdict(edge)]}"
    if not has_room and not own:
        return marks.strip("✓")
    actions = list(dict.fromkeys(step.action for step in own)) or edge.actions
    first, *others = (one_line(action, _LABEL_LENGTH) for action in actions)
    more = f" +{len(others)}" if others else ""
    return " ".join(filter(None, [marks, _numbers(own), first + more]))


def _numbers(own: Sequence[OwnStep]) -> str:
    shown = ", ".join(str(step.index) for step in own[:_MOST_NUMBERS])
    return f"{shown}{', …' if len(own) > _MOST_NUMBERS else ''}:" if own else ""


def edge_tip(edge: Edge, shading: Shading) -> str:
    """Return what the pointer tells of a transition."""
    verdict = shading.verdict(edge)
    notes = [
        f"{shading.advantage} {signed(shading.value(edge))}",
        counted(edge.visits, "step"),
        *(["pruned"] if edge.is_pruned else []),
        *([f"{verdict} with the true progress"] if verdict else []),
    ]
    lines = [
        " | ".join(one_line(action) for action in edge.actions[:6]),
        " · ".join(notes),
        *(
            f"step {step.index}: {signed(step.value)} {one_line(step.action)}"
            for step in shading.own.get(edge.ends, ())[:6]
        ),
    ]
    return "\n".join(lines)
