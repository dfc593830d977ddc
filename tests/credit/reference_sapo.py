"""Slow SAPO: regular expressions for names, networkx for distances, sets for what is new."""

import math
import re
from typing import Any

import networkx as nx

from graphcredit.store.parquet.er_graph import ErGraph
from tests.credit.reference import Group, episode_part, relative


def named(text: str | None, names: dict[str, list[str]]) -> set[str]:
    """Return the entities that a text names."""
    collapsed = re.sub(r"\s+", " ", text or "").casefold()
    return {
        entity
        for entity, all_names in names.items()
        for name in all_names
        if re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", collapsed)
    }


def worths(graph: ErGraph, task: str, decay: float) -> dict[str, float]:
    """Return c of the entities with a path to an answer."""
    undirected = nx.Graph()
    rows = [row for row in graph.entities.to_pylist() if row["task_id"] == task]
    undirected.add_nodes_from(row["entity_id"] for row in rows)
    undirected.add_edges_from(
        (row["head_id"], row["tail_id"])
        for row in graph.relations.to_pylist()
        if row["task_id"] == task
    )
    answers = {row["entity_id"] for row in rows if row["is_answer"]}
    if not answers:
        return {}
    distance = nx.multi_source_dijkstra_path_length(undirected, answers)
    return {entity: decay**-hops for entity, hops in distance.items()}


def step_rewards(group: Group, graph: ErGraph, task: str, decay: float):
    """Return {trajectory: [reward of each step]}."""
    names = {
        row["entity_id"]: [row["name"], *(row["aliases"] or [])]
        for row in graph.entities.to_pylist()
        if row["task_id"] == task
    }
    worth = worths(graph, task, decay)
    rewards: dict[str, list[float]] = {}
    for trajectory, steps in group.trajectories.items():
        retrieved: set[str] = set()
        cited: set[str] = set()
        rewards[trajectory] = []
        for step in steps:
            newly_cited = (named(step.get("thought"), names) & retrieved) - cited
            newly_retrieved = named(step["next_state"], names) - retrieved
            cited |= newly_cited
            retrieved |= newly_retrieved
            found = [*newly_cited, *newly_retrieved]
            rewards[trajectory].append(math.fsum(worth.get(entity, 0.0) for entity in found))
    return rewards


def sapo(
    group: Group,
    graph: ErGraph,
    task: str,
    *,
    decay: float = 2.0,
    strength: float = 0.5,
    normalize: str = "std",
    stat_over: str = "trajectories",
) -> dict[tuple[str, int], float]:
    """Return the advantage of every step."""
    episode = episode_part(group, group.returns(), normalize, stat_over)
    result: dict[tuple[str, int], Any] = {}
    for name, rewards in step_rewards(group, graph, task, decay).items():
        for index, compared in enumerate(relative(rewards, normalize)):
            clipped = min(max(compared, -1.0), 1.0)
            result[name, index] = episode[name] + strength * abs(episode[name]) * clipped
    return result
