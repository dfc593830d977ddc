"""Slow reference: the formulas read aloud, in plain Python and networkx, one group at a time.

It shares no code with `credit/`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

EPSILON = 1e-6
GOAL = ("goal",)

Step = Mapping[str, Any]
Key = tuple[str, str, int]


@dataclass
class Group:
    """The complete trajectories of one task, each a list of steps in order."""

    trajectories: dict[str, list[Step]]

    def steps(self) -> Iterable[tuple[str, int, Step]]:
        for name, steps in self.trajectories.items():
            for index, step in enumerate(steps):
                yield name, index, step

    def ok(self, name: str) -> bool:
        return bool(self.trajectories[name][-1]["success"])

    def is_valid(self, name: str, index: int) -> bool:
        is_last = index == len(self.trajectories[name]) - 1
        return self.trajectories[name][index]["is_action_valid"] or (is_last and self.ok(name))

    def target(self, name: str, index: int) -> Any:
        is_last = index == len(self.trajectories[name]) - 1
        return GOAL if is_last and self.ok(name) else self.trajectories[name][index]["next_state"]

    def size(self) -> float:
        """Return the largest sum of rewards without their signs."""
        return max(
            math.fsum(abs(s["reward"]) for s in steps) for steps in self.trajectories.values()
        )

    def returns(self) -> dict[str, float]:
        return {n: math.fsum(s["reward"] for s in steps) for n, steps in self.trajectories.items()}


def groups_of(rows: Iterable[Step]) -> dict[str, Group]:
    """Return the groups of complete trajectories."""
    by_name: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for row in rows:
        by_name[row["task_id"], row["trajectory_id"]].append(row)
    groups: dict[str, Group] = {}
    for (task, name), steps in sorted(by_name.items()):
        ordered = sorted(steps, key=lambda step: step["step_index"])
        if is_complete(ordered):
            groups.setdefault(task, Group({})).trajectories[name] = ordered
    return groups


def is_complete(steps: list[Step]) -> bool:
    for index, step in enumerate(steps):
        is_last = index == len(steps) - 1
        has_end = step["terminated"] or step["truncated"]
        if step["step_index"] != index or has_end != is_last:
            return False
        if step["success"] is not None and not is_last:
            return False
        if not is_last and step["next_state"] != steps[index + 1]["state"]:
            return False
    return True


def relative(values: list[float], normalize: str = "std") -> list[float]:
    n = len(values)
    if n == 1 or max(values) == min(values):
        return [0.0] * n
    mean = math.fsum(values) / n
    if normalize == "none":
        return [v - mean for v in values]
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    return [(v - mean) / (std + EPSILON) for v in values]


def episode_part(
    group: Group, values: dict[str, float], normalize: str, stat_over: str
) -> dict[str, float]:
    names = list(group.trajectories)
    if stat_over == "trajectories":
        return dict(zip(names, relative([values[n] for n in names], normalize), strict=True))
    repeated = [(n, values[n]) for n in names for _ in group.trajectories[n]]
    return dict(
        zip([n for n, _ in repeated], relative([v for _, v in repeated], normalize), strict=True)
    )


def state_part(
    group: Group, values: dict[tuple[str, int], float], normalize: str
) -> dict[tuple[str, int], float]:
    members: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, index, step in group.steps():
        members[step["state"]].append((name, index))
    return {
        key: value
        for keys in members.values()
        for key, value in zip(keys, relative([values[key] for key in keys], normalize), strict=True)
    }


def distances(group: Group, *, pruned: bool, end: Any = GOAL) -> dict[Any, float]:
    """Return the distance of every node to an end; nodes without a path are left out."""
    graph = nx.DiGraph()
    graph.add_node(end)
    for name, index, step in group.steps():
        source, target = step["state"], group.target(name, index)
        if pruned and (source == target or not group.is_valid(name, index)):
            continue
        cost = 1.0 if pruned else step["cost"]
        if not graph.has_edge(source, target) or graph[source][target]["cost"] > cost:
            graph.add_edge(source, target, cost=cost)
    return nx.single_source_dijkstra_path_length(graph.reverse(), end, weight="cost")


def returns_in_units(group: Group) -> dict[str, float]:
    """Return R', from 0 for the least return to 1 for the greatest; success where all are equal."""
    returns = group.returns()
    least, greatest = min(returns.values()), max(returns.values())
    if greatest - least <= 1e-12 * group.size():
        return {name: float(group.ok(name)) for name in returns}
    return {name: (value - least) / (greatest - least) for name, value in returns.items()}


def best_ends(group: Group, discount: float, *, pruned: bool) -> dict[Any, float]:
    """Return the best of worth · discount^distance over the ends, where it is not 0."""
    scored: dict[Any, list[float]] = defaultdict(list)
    for name, value in returns_in_units(group).items():
        scored[group.target(name, len(group.trajectories[name]) - 1)].append(value)
    best: dict[Any, float] = {}
    for end, values in scored.items():
        for node, distance in distances(group, pruned=pruned, end=end).items():
            worth = math.fsum(values) / len(values) * discount**distance
            best[node] = max(best.get(node, 0.0), worth)
    return {node: worth for node, worth in best.items() if worth > 0}


def _discounted_returns(group: Group, gamma: float) -> dict[tuple[str, int], float]:
    return {
        (name, index): math.fsum(
            gamma**k * later["reward"] for k, later in enumerate(group.trajectories[name][index:])
        )
        for name, index, _ in group.steps()
    }


def grpo(group: Group, *, normalize: str = "std", stat_over: str = "trajectories"):
    part = episode_part(group, group.returns(), normalize, stat_over)
    return {(name, index): part[name] for name, index, _ in group.steps()}


def rloo(group: Group):
    returns = group.returns()
    result = {}
    for name, index, _ in group.steps():
        others = [value for other, value in returns.items() if other != name]
        result[name, index] = returns[name] - math.fsum(others) / len(others) if others else 0.0
    return result


def discounted(group: Group, *, gamma: float = 0.9, baseline: str = "none"):
    followed = _discounted_returns(group, gamma)
    mean = math.fsum(followed.values()) / len(followed) if baseline == "group" else 0.0
    return {key: value - mean for key, value in followed.items()}


def gigpo(
    group: Group,
    *,
    gamma: float = 0.95,
    omega: float = 1.0,
    normalize: str = "std",
    stat_over: str = "trajectories",
):
    step = state_part(group, _discounted_returns(group, gamma), normalize)
    episode = episode_part(group, group.returns(), normalize, stat_over)
    return {key: episode[key[0]] + omega * step[key] for key in step}


def rewardflow(
    group: Group,
    *,
    gamma: float = 0.9,
    step_weight: float = 1.0,
    episode_weight: float = 1.0,
    normalize: str = "std",
    stat_over: str = "trajectories",
    worth: str = "success",
):
    hops = distances(group, pruned=True)
    best = {node: gamma**far for node, far in hops.items()}
    outcome = {name: float(group.ok(name)) for name in group.trajectories}
    if worth == "returns":
        best, outcome = best_ends(group, gamma, pruned=True), returns_in_units(group)

    def value(node: Any) -> float:
        return best.get(node, 0.0)

    reward = {
        (name, index): value(group.target(name, index)) - value(step["state"])
        if group.is_valid(name, index)
        else 0.0
        for name, index, step in group.steps()
    }
    step = state_part(group, reward, normalize)
    episode = episode_part(group, outcome, normalize, stat_over)
    return {key: step_weight * step[key] + episode_weight * episode[key[0]] for key in step}


def graphgpo(
    group: Group,
    *,
    distance_discount: float = 0.1,
    success_reward: float = 10.0,
    step_weight: float = 1.0,
    episode_weight: float = 1.0,
    normalize: str = "std",
    stat_over: str = "trajectories",
    worth: str = "success",
):
    known = distances(group, pruned=False)
    best = {node: distance_discount**far for node, far in known.items()}
    if not any(group.ok(name) for name in group.trajectories):
        best = {}
    if worth == "returns":
        best = best_ends(group, distance_discount, pruned=False)
    unreachable = distance_discount * min(best.values(), default=0.0)
    reward = {
        (name, index): success_reward
        * distance_discount ** step["cost"]
        * best.get(group.target(name, index), unreachable)
        for name, index, step in group.steps()
    }
    step = state_part(group, reward, normalize)
    episode = episode_part(group, group.returns(), normalize, stat_over)
    return {key: step_weight * step[key] + episode_weight * episode[key[0]] for key in step}


def hgpo(
    group: Group,
    *,
    gamma: float = 0.95,
    history: int = 2,
    length_alpha: float = 1.0,
    normalize: str = "std",
):
    returns = _discounted_returns(group, gamma)
    terms: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
    for n in range(1, history + 2):
        clusters: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
        for name, steps in group.trajectories.items():
            states = [step["state"] for step in steps]
            for index in range(n - 1, len(states)):
                clusters[tuple(states[index - n + 1 : index + 1])].append((name, index))
        for keys in clusters.values():
            values = [returns[key] for key in keys]
            if len(values) < 2 or max(values) == min(values):
                continue
            mean = math.fsum(values) / len(values)
            sigma = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
            divisor = sigma + EPSILON if normalize == "std" else 1.0
            rounding = 1e-12 * max(map(abs, values))
            for key, value in zip(keys, values, strict=True):
                if abs(value - mean) > rounding:
                    terms[key].append((n, (value - mean) / divisor))
    result = {}
    for key in returns:
        total = math.fsum((n + 1) ** length_alpha for n, _ in terms[key])
        result[key] = math.fsum(
            (n + 1) ** length_alpha / (total + EPSILON) * a for n, a in terms[key]
        )
    return result


def g2po(
    group: Group,
    *,
    gamma: float = 0.95,
    step_weight: float = 1.0,
    success_reward: float = 10.0,
    invalid_penalty: float = 0.1,
    normalize: str = "std",
):
    returns = group.returns()
    visits: dict[Any, list[float]] = defaultdict(list)
    for name, index, step in group.steps():
        left = len(group.trajectories[name]) - index
        visits[step["state"]].append(gamma**left * returns[name])
    value = {state: math.fsum(seen) / len(seen) for state, seen in visits.items()}
    value[GOAL] = success_reward

    def reached(name: str, index: int) -> float:
        is_last = index == len(group.trajectories[name]) - 1
        return 0.0 if is_last and not group.ok(name) else value[group.target(name, index)]

    keys = [(name, index) for name, index, _ in group.steps()]
    after = {key: reached(*key) for key in keys}
    gain = {(n, i): after[n, i] - value[step["state"]] for n, i, step in group.steps()}
    penalised = {
        key: after[key] - (0.0 if group.is_valid(*key) else invalid_penalty) for key in keys
    }
    siblings = state_part(group, penalised, normalize)
    everyone = dict(zip(keys, relative([gain[key] for key in keys], normalize), strict=True))
    episode = episode_part(group, returns, normalize, "trajectories")
    return {key: episode[key[0]] + step_weight * (siblings[key] + everyone[key]) for key in keys}


def graft(
    group: Group,
    *,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
    hops: int = 200,
    failure_ends: str = "shared",
    edge_counts: str = "edges",
    step_weight: float = 1.0,
    episode_weight: float = 1.0,
    normalize: str = "std",
    stat_over: str = "trajectories",
):
    taken: dict[tuple[str, int], tuple[Any, Any]] = {}
    sinks = {("failed",)}
    for name, index, step in group.steps():
        target = group.target(name, index)
        if index == len(group.trajectories[name]) - 1 and not group.ok(name):
            target = target if failure_ends == "shared" else ("failed",)
            sinks.add(target)
        taken[name, index] = step["state"], target
    counts = Counter(taken.values())
    value = _on_policy_value(counts, sinks, gamma)
    gain = {(u, v): gamma * value[v] - value[u] for u, v in counts}
    lies_ahead = {
        node: math.fsum(
            (gamma * gae_lambda) ** k * mean
            for k, mean in enumerate(_means_ahead(gain, node, hops), start=1)
        )
        for node in {v for _, v in counts}
    }
    worth = {(u, v): gain[u, v] + lies_ahead[v] for u, v in counts}
    worth = {edge: 0.0 if abs(w) <= 1e-9 else w for edge, w in worth.items()}
    step_advantage: dict[tuple[Any, Any], float] = {}
    for node in {u for u, _ in counts}:
        edges = [edge for edge in counts if edge[0] == node]
        if len(edges) == 1:
            (x,) = (worth[edge] for edge in edges)
            step_advantage[edges[0]] = x if normalize == "none" or x == 0 else math.copysign(1, x)
            continue
        repeats = [edge for edge in edges for _ in range(counts[edge])]
        members = repeats if edge_counts == "steps" else edges
        found = relative([worth[edge] for edge in members], normalize)
        step_advantage |= dict(zip(members, found, strict=True))
    episode = episode_part(group, group.returns(), normalize, stat_over)
    return {
        key: episode_weight * episode[key[0]] + step_weight * step_advantage[edge]
        for key, edge in taken.items()
    }


def _on_policy_value(
    counts: Mapping[tuple[Any, Any], int], sinks: set[Any], gamma: float
) -> dict[Any, float]:
    """Solve the equations of the nodes from which the goal is reached; the rest is 0."""
    graph = nx.DiGraph([edge for edge in counts if edge[0] not in sinks])
    graph.add_node(GOAL)
    solved = sorted(nx.ancestors(graph, GOAL), key=repr)
    row = {node: number for number, node in enumerate(solved)}
    matrix, right = np.eye(len(solved)), np.zeros(len(solved))
    visits: Counter[Any] = Counter()
    for (u, _), n in counts.items():
        visits[u] += n
    for (u, v), n in counts.items():
        if u in row and v == GOAL:
            right[row[u]] += gamma * n / visits[u]
        elif u in row and v in row:
            matrix[row[u], row[v]] -= gamma * n / visits[u]
    solution = np.linalg.solve(matrix, right).tolist()
    nodes = {node for edge in counts for node in edge}
    return dict.fromkeys(nodes, 0.0) | dict(zip(solved, solution, strict=True)) | {GOAL: 1.0}


def _means_ahead(gain: Mapping[tuple[Any, Any], float], start: Any, hops: int) -> Iterable[float]:
    """Walk forward from a node, with the number of walks to each edge."""
    reached = Counter({start: 1})
    for _ in range(hops):
        walks: Counter[tuple[Any, Any]] = Counter()
        for u, v in gain:
            if reached[u]:
                walks[u, v] = reached[u]
        if not walks:
            return
        total = sum(walks.values())
        yield math.fsum(n / total * gain[edge] for edge, n in walks.items())
        reached = Counter()
        for (_, v), n in walks.items():
            reached[v] += n


def milegpo(
    group: Group,
    *,
    distance_discount: float = 0.1,
    success_reward: float = 10.0,
    shaping: float = 0.5,
    branch_weight: float = 0.5,
    decay: float = 0.9,
    excess_weight: float = 0.5,
    coverage_weight: float = 0.25,
    degree_weight: float = 0.25,
    failure_weight: float = 0.5,
    loop_weight: float = 0.5,
    step_weight: float = 1.0,
    episode_weight: float = 1.0,
    normalize: str = "std",
    stat_over: str = "trajectories",
):
    edge = {(name, i): (step["state"], group.target(name, i)) for name, i, step in group.steps()}
    paths = {
        name: [step["state"] for step in steps] + [group.target(name, len(steps) - 1)]
        for name, steps in group.trajectories.items()
    }
    won = {name for name in paths if group.ok(name)}
    lost = paths.keys() - won
    edges = set(edge.values())
    degree = Counter(node for pair in edges for node in pair)
    milestones: dict[Any, float] = {}
    traps: dict[Any, float] = {}
    mean = len(won) / len(paths)
    for node in {node for path in paths.values() for node in path} - {GOAL}:
        visitors = {name for name, path in paths.items() if node in path}
        if visitors & won:
            milestones[node] = (
                excess_weight * max(len(visitors & won) / len(visitors) - mean, 0)
                + coverage_weight * len(visitors & won) / len(won)
                + degree_weight * degree[node] / max(degree.values())
            )
        else:
            visits = sum(path.count(node) for path in paths.values())
            returns = (visits - len(visitors)) / visits
            traps[node] = failure_weight * mean + loop_weight * len(visitors) / len(lost) * returns
    graph = nx.DiGraph()
    for key, (u, v) in edge.items():
        cost = group.trajectories[key[0]][key[1]]["cost"]
        if not graph.has_edge(u, v) or graph[u][v]["cost"] > cost:
            graph.add_edge(u, v, cost=cost)
    far = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))

    def potential(scores: dict[Any, float], node: Any) -> float:
        return max(
            (s * decay ** far[node][v] for v, s in scores.items() if v in far[node]), default=0
        )

    def rise(scores: dict[Any, float], u: Any, v: Any) -> float:
        return max(potential(scores, v) - potential(scores, u), 0)

    def rate(pair: tuple[Any, Any]) -> float:
        takers = {name for (name, _), taken in edge.items() if taken == pair}
        return len(takers & won) / len(takers)

    reward: dict[tuple[str, int], float] = {}
    for key, (u, v) in edge.items():
        others = [rate(pair) for pair in edges if pair[0] == u and pair[1] != v]
        branch = rate((u, v)) - math.fsum(others) / len(others) if others else 0.0
        near = distance_discount ** far[v][GOAL] if GOAL in far[v] else 0.0
        shaped = rise(milestones, u, v) - rise(traps, u, v)
        reward[key] = success_reward * (near + shaping * shaped + branch_weight * branch)
    step = state_part(group, reward, normalize)
    episode = episode_part(group, group.returns(), normalize, stat_over)
    return {key: step_weight * step[key] + episode_weight * episode[key[0]] for key in step}


def spo3(
    iterations: list[list[Step]],
    *,
    alpha: float = 1.0,
    xi: int = 10,
    zeta: float = 0.1,
    omega_k: float = 0.1,
    normalize: str = "std",
) -> list[dict[Key, float]]:
    """Return the advantages of each iteration of a run.

    Of every trajectory all that ended before it are counted again: those of its task in which some
    step was taken from a state.
    """
    groups = [groups_of(rows) for rows in iterations]
    ended = sorted(
        (number, steps[-1]["logged_at"], name, task)
        for number, by_task in enumerate(groups)
        for task, group in by_task.items()
        for name, steps in group.trajectories.items()
    )
    rewards: dict[tuple[int, str], dict[tuple[str, int], float]] = defaultdict(dict)
    for num_ended, (number, _, name, task) in enumerate(ended):
        before = [groups[i][task].trajectories[n] for i, _, n, t in ended[:num_ended] if t == task]

        def count(state: Any, before: list[list[Step]] = before) -> tuple[int, int]:
            outcomes = [
                bool(steps[-1]["success"])
                for steps in before
                if any(step["state"] == state for step in steps)
            ]
            return len(outcomes), sum(outcomes)

        def score(state: Any, capital_t: int = 1 + num_ended, count: Any = count) -> float:
            n, k = count(state)
            p = k / (n + EPSILON)
            if n == 0:
                return 1.0
            if n - k >= xi and p <= zeta:
                return 0.0
            return math.exp(-alpha * math.log(capital_t) * p)

        group = groups[number][task]
        for index, step in enumerate(group.trajectories[name]):
            source, target = step["state"], group.target(name, index)
            w = 0.5 * math.exp(-omega_k * count(source)[0])
            drop = score(source) - score(target)
            won = target == GOAL
            rewards[number, task][name, index] = (
                w * (source != target) + (0.5 - w) * drop + 0.5 * won
            )
    return [
        {
            (task, *key): value
            for task, group in by_task.items()
            for key, value in state_part(group, rewards[number, task], normalize).items()
        }
        for number, by_task in enumerate(groups)
    ]


ESTIMATORS = {
    "grpo": grpo,
    "rloo": rloo,
    "discounted": discounted,
    "gigpo": gigpo,
    "rewardflow": rewardflow,
    "graphgpo": graphgpo,
    "hgpo": hgpo,
    "g2po": g2po,
    "graft": graft,
    "milegpo": milegpo,
}


def advantages(rows: Iterable[Step], name: str, **options: Any) -> dict[Key, float]:
    """Return {(task, trajectory, step): advantage} of every step of a complete trajectory."""
    if name == "spo3":
        return spo3([list(rows)], **options)[0]
    return {
        (task, trajectory, index): value
        for task, group in groups_of(rows).items()
        for (trajectory, index), value in ESTIMATORS[name](group, **options).items()
    }
