"""The words of a drawing: labels, tips, the notes of its legend, what is shown of a graph."""

from collections.abc import Sequence
from itertools import pairwise

from graphcredit.store.log_text import one_line
from graphcredit.store.plural import counted
from graphcredit.viewer.graph.shading import OwnStep, Shading, signed
from graphcredit.viewer.graph.state_names import StateName, action_words
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.queries.outcomes import succeeded

_MOST_NUMBERS = 4


def state_line(node: Node, name: StateName) -> str:
    """Return the number and the name of a state on one line."""
    return name.title if node.is_goal else f"{node.state_id}  {name.line}"


def box_label(node: Node, name: StateName) -> str:
    """Return three lines: the state, what is told of it, its seen distance and its visits."""
    distance = "no way seen" if node.goal_distance is None else f"{node.goal_distance:g} to go"
    title = name.title if node.is_goal else f"{node.state_id} {name.title}"
    return "\n".join([title, *filter(None, [name.told]), f"{distance} · {node.visits}×"])


def distance_words(node: Node) -> str:
    """Return the seen distance of a state."""
    if node.goal_distance is None:
        return "no way to the goal was seen"
    return f"seen {node.goal_distance:g} to the goal"


def legend_notes(graph: TaskGraph, shading: Shading, *, are_boxes: bool) -> list[str]:
    """Return the notes of the legend about marks, of those alone that are there."""
    nodes, edges = graph.nodes, graph.edges
    no_way = "dashed border" if are_boxes else "◇"
    marks = {
        "in boxes: seen distance, visits": are_boxes,
        f"goal: {'double border' if are_boxes else '☆'}": any(node.is_goal for node in nodes),
        "start: thick border": True,
        f"{no_way}: no way to the goal seen": any(node.goal_distance is None for node in nodes),
        "width: visits": True,
        "bar at the tip: below 0": any((shading.drawn_value(edge) or 0.0) < 0 for edge in edges),
        "dashed: pruned": any(edge.is_pruned for edge in edges),
        "dotted: a way through states not drawn": any(edge.between for edge in edges),
        "colours go by the square root": True,
    }
    notes = [words for words, is_there in marks.items() if is_there]
    if shading.own:
        notes.append("numbers: steps of the rollout, in its own colours; elsewhere means")
    return notes


def node_tip(node: Node, name: StateName, shading: Shading) -> str:
    """Return what the pointer tells of a state."""
    facts = [distance_words(node), f"{counted(node.visits, 'visit')}{succeeded(node.success_rate)}"]
    if node.num_merged > 1:
        facts.append(counted(node.num_merged, "text"))
    return f"{state_line(node, name)}\n{' · '.join(facts)}\n{one_line(node.state, 160)}"


def edge_label(edge: Edge, shading: Shading, *, has_room: bool) -> str:
    """Return the numbers of the trajectory's steps on a transition, and its action."""
    own_steps = shading.own.get(edge.ends, ())
    if not has_room and not own_steps:
        return ""
    actions = list(dict.fromkeys(step.action for step in own_steps)) or edge.actions
    first, *others = (action_words(action) for action in actions)
    more = f" +{len(others)}" if others else ""
    return " ".join(filter(None, [_numbers(own_steps), first + more]))


def _numbers(own: Sequence[OwnStep]) -> str:
    shown = ", ".join(str(step.index) for step in own[:_MOST_NUMBERS])
    return f"{shown}{', …' if len(own) > _MOST_NUMBERS else ''}:" if own else ""


def edge_tip(edge: Edge, shading: Shading) -> str:
    """Return what the pointer tells of a transition."""
    if edge.between:
        return (
            f"A way of {edge.actions[0]} through {counted(len(edge.between), 'state')} that "
            f"{'is' if len(edge.between) == 1 else 'are'} not drawn\n{shading.advantage} "
            f"{signed(edge.advantage)} on average. A click shows the state in its middle."
        )
    notes = [
        f"{shading.advantage} {signed(edge.advantage)}",
        counted(edge.visits, "step"),
        *(["pruned"] if edge.is_pruned else []),
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


WHAT_MATTERS = (
    "where most credit and blame is, where rollouts that won part from those that failed, what "
    "estimators disagree on, the goal, and the ways between"
)


def what_is_shown(graph: TaskGraph, shown: TaskGraph, *, part: str = "") -> str:
    """Return a sentence of what is drawn of a graph, and one of what is left out."""
    words = f"{len(shown.nodes):,} of {len(graph.nodes):,} states"
    ways = [edge for edge in shown.edges if edge.between]
    drawn = {edge.ends for edge in shown.edges if not edge.between}
    if part and len(shown.nodes) < len(graph.nodes):
        words += f": {part}"
    if ways:
        passed = {state for way in ways for state in way.between}
        words += f". Dotted lines are ways through {counted(len(passed), 'more state')}"
        for way in ways:
            drawn |= {*pairwise([way.source, *way.between, way.target])}
    left = [edge for edge in graph.edges if edge.ends not in drawn]
    return f"{words}{_left_out(graph, left)}"


def _left_out(graph: TaskGraph, left: Sequence[Edge]) -> str:
    """Return how many transitions are left out, and with which credit; empty without any."""
    if not left:
        return ""
    values = [edge.advantage or 0.0 for edge in left]
    weight = sum(abs(value) * edge.visits for value, edge in zip(values, left, strict=True))
    total = sum(abs(edge.advantage or 0.0) * edge.visits for edge in graph.edges)
    share = f", {weight / total:.0%} of all credit and blame" if total else ""
    return (
        f". Left out: {counted(len(left), 'transition')}, from {signed(min(values))} to "
        f"{signed(max(values))}{share}"
    )
