"""Explanations of credit: a function of each estimator's options, one for each table row.

What they return goes into the metadata of the credit; `store/provenance/explained.py` has its
words.
"""

from typing import Any

from graphcredit.store.provenance.explained import Compared, Explanation


def whole_trajectory(options: Any) -> Explanation:
    """GRPO: the return of the trajectory, among those of its group."""
    same = (_return(options),)
    return Explanation(total="", parts={"episode_advantage": same, "advantage": same})


def against_the_others(_: Any) -> Explanation:
    """RLOO: the return of the trajectory, against the others."""
    same = (Compared(what="the return of its rollout", among="others"),)
    return Explanation(total="", parts={"episode_advantage": same, "advantage": same})


def discounted(options: Any) -> Explanation:
    """Return what followed, by itself or among the steps of the group."""
    followed = Compared(
        what="the return that followed" + _discounted(options.gamma),
        among="group" if options.baseline == "group" else "nobody",
    )
    return Explanation(total="", parts={"advantage": (followed,)})


def gigpo(options: Any) -> Explanation:
    """Return what followed, among the steps from the same state."""
    followed = Compared(
        what="the return that followed" + _discounted(options.gamma),
        among="states",
        unit=_unit(options),
    )
    return _two_parts(followed, step=options.omega, episode=1.0, of_trajectory=_return(options))


def hgpo(options: Any) -> Explanation:
    """Return what followed, among steps with the same recent states."""
    followed = Compared(
        what=f"the return that followed{_discounted(options.gamma)}, for each number of last "
        f"states from 1 to {options.history + 1}",
        among="past",
        unit=_unit(options),
    )
    same = (followed,)
    return Explanation(total="", parts={"step_advantage": same, "advantage": same})


def turn_credit(options: Any) -> Explanation:
    """Return what the score gained, among the steps of the trajectory."""
    of_trajectory = Compared(
        what="the return of its rollout, and what its score gained", among="trajectories"
    )
    gained = Compared(
        what="what the score gained here and, the less the later, after it", among="trajectory"
    )
    return _two_parts(gained, step=options.beta, episode=1.0, of_trajectory=of_trajectory)


def turn_rloo(options: Any) -> Explanation:
    """Return what followed, against what the others earned from the same turn on."""
    followed = Compared(
        what=f"the return from this turn on{_discounted(options.gamma)}, 0 where a rollout had "
        "ended",
        among="others",
    )
    return Explanation(total="", parts={"advantage": (followed,)})


def rewardflow(options: Any) -> Explanation:
    """Return the potential that a step gains, among the steps from the same state."""
    is_by_returns = options.worth == "returns"
    gained = Compared(
        what=f"the gain of {options.gamma:g} to the power of the seen number of steps to the "
        + ("best end, times what was scored there" if is_by_returns else "goal"),
        among="states",
        unit=_unit(options),
    )
    outcome = Compared(
        what=f"the {'return' if is_by_returns else 'success'} of its rollout",
        among="trajectories",
        unit=_unit(options),
    )
    return _two_parts(
        gained, step=options.step_weight, episode=options.episode_weight, of_trajectory=outcome
    )


def graphgpo(options: Any) -> Explanation:
    """Return the worth of where a step led, among the steps from the same state."""
    worth = Compared(
        what=f"{options.success_reward:g} times {options.distance_discount:g} to the power of its "
        "cost and the seen distance from where it led"
        + (" to the best end, times what was scored there" if options.worth == "returns" else ""),
        among="states",
        unit=_unit(options),
    )
    return _both(worth, options)


def spo3(options: Any) -> Explanation:
    """Return novelty, drop in score and success, among the steps from the same state."""
    worth = Compared(
        what="its novelty, what it took off the difficulty of its state, and the success of its "
        "rollout",
        among="states",
        unit=_unit(options),
    )
    same = (worth,)
    return Explanation(total="", parts={"step_advantage": same, "advantage": same})


def sapo(options: Any) -> Explanation:
    """Return the entities that a step found and cited, among the steps of its trajectory."""
    unit = _unit(options)
    entities = Compared(
        what="the entities it cited or retrieved first, those near the answer counting more",
        among="trajectory",
        unit=f"{unit}, at most 1 either way" if unit else "at most 1 either way",
    )
    return Explanation(
        total=f"the episode part, and {options.strength:g} times its size times the step part",
        parts={"episode_advantage": (_return(options),), "step_advantage": (entities,)},
    )


def g2po(options: Any) -> Explanation:
    """Return the value of where a step led, and the value that it gained."""
    reached = Compared(
        what="the mean return of the state it led to", among="states", unit=_unit(options)
    )
    gained = Compared(what="its gain in that mean return", among="group", unit=_unit(options))
    of_trajectory = Compared(
        what="the return of its rollout", among="trajectories", unit=_unit(options)
    )
    return Explanation(
        total=_sum(episode=1.0, step=options.step_weight),
        parts={"episode_advantage": (of_trajectory,), "step_advantage": (reached, gained)},
    )


def graft(options: Any) -> Explanation:
    """Return the gain in value and the gains ahead, among the transitions from the same state."""
    gained = Compared(
        what="its gain in value if the group goes on as it did, with the gains ahead of it",
        among="edges" if options.edge_counts == "edges" else "states",
        unit=_unit(options),
    )
    return _both(gained, options)


def milegpo(options: Any) -> Explanation:
    """Return way, milestones, traps and branch, among the steps from the same state."""
    worth = Compared(
        what="the seen distance from where it led, what it neared of milestones less traps, and "
        "the success of its transition over the others",
        among="states",
        unit=_unit(options),
    )
    return _both(worth, options)


def reach(options: Any) -> Explanation:
    """Return what the step led to, what was to be expected there, and the progress."""
    parts = {
        "outcome": "what its action and what followed it earn, as far as each is believed",
        "baseline": "what the other steps from here earn",
        "value": "what is still earned from here, by the group's own steps",
        "q": "what is still earned from here with its action",
        "progress": "the share of its cost that the step turned into distance to the goal, which "
        "is no part of the advantage",
    }
    scale = " over the returns' spread" * (options.normalize == "std")
    return Explanation(
        total=f"outcome less baseline{scale}, and less where few rollouts were compared; "
        "0 is the group's least return, 1 its greatest",
        parts={part: (Compared(what=what, among="nobody"),) for part, what in parts.items()},
    )


def _return(options: Any) -> Compared:
    return Compared(what="the return of its rollout", among="trajectories", unit=_unit(options))


def _both(of_step: Compared, options: Any) -> Explanation:
    return _two_parts(
        of_step,
        step=options.step_weight,
        episode=options.episode_weight,
        of_trajectory=_return(options),
    )


def _two_parts(
    of_step: Compared, *, step: float, episode: float, of_trajectory: Compared
) -> Explanation:
    return Explanation(
        total=_sum(episode=episode, step=step),
        parts={"episode_advantage": (of_trajectory,), "step_advantage": (of_step,)},
    )


def _sum(*, episode: float, step: float) -> str:
    return f"{_times(episode)}the episode part, and {_times(step)}the step part"


def _times(weight: float) -> str:
    return "" if weight == 1 else f"{weight:g} times "


def _discounted(gamma: float) -> str:
    return "" if gamma == 1 else f", times {gamma:g} for each step that it came later"


def _unit(options: Any) -> str:
    return "standard deviations" if options.normalize == "std" else ""
