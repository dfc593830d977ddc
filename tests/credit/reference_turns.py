"""Slow twins of the estimators of turns: the formulas read aloud, in plain Python."""

import math

from tests.credit.reference import Group, relative

Values = dict[tuple[str, int], float]


def turn_credit(group: Group, *, gamma: float = 0.9, beta: float = 1.0) -> Values:
    credit: Values = {}
    shaped = group.returns()
    for name, steps in group.trajectories.items():
        gained: list[float] = []
        before = None
        for step in steps:
            score = step["score"]
            gained.append(0.0 if score is None or before is None else score - before)
            before = before if score is None else score
        shaped[name] += math.fsum(gained)
        for k, gain in enumerate(gained):
            whole = math.fsum(gamma**d for d in range(k + 1))
            for t in range(k + 1):
                share = gain * gamma ** (k - t) / whole
                credit[name, t] = credit.get((name, t), 0.0) + share
    level = dict(zip(shaped, relative(list(shaped.values()), "none"), strict=True))
    result: Values = {}
    for name, steps in group.trajectories.items():
        of_steps = [credit[name, t] for t in range(len(steps))]
        mean = math.fsum(of_steps) / len(steps)
        for t, value in enumerate(of_steps):
            result[name, t] = level[name] + beta * (value - mean)
    return result


def turn_rloo(group: Group, *, gamma: float = 1.0) -> Values:
    def followed(name: str, t: int) -> float:
        steps = group.trajectories[name][t:]
        return math.fsum(gamma**k * step["reward"] for k, step in enumerate(steps))

    result: Values = {}
    for name, t, _ in group.steps():
        others = [followed(other, t) for other in group.trajectories if other != name]
        baseline = math.fsum(others) / len(others) if others else followed(name, t)
        result[name, t] = followed(name, t) - baseline
    return result


ESTIMATORS = {"turn_credit": turn_credit, "turn_rloo": turn_rloo}
