"""The service of `experiments/tool_world` as a world, whose player knows the whole situation."""

from experiments.credit_truth.world import World, enumerate_world
from experiments.tool_world.service import Situation, action_of, service_named

HORIZON = 20


def service(spec: str) -> World:
    """Return the world of a task, with its graded score.

    Args:
        spec: Name of the task, such as `w2-s5`.
    """
    its = service_named(spec)
    calls = {action_of(*call): call for call in its.calls(its.everything)}

    def outcomes(now: Situation, action: str) -> dict[Situation, float]:
        answer = its.call(now, *calls[action])
        return {answer[0]: 1.0} if answer else {}

    return enumerate_world(
        name=spec,
        horizon=HORIZON,
        actions=tuple(calls),
        starts={its.start: 1.0},
        outcomes=outcomes,
        view=str,
        end=lambda now: its.score(now) == 1.0 if now.is_over else None,
    )
