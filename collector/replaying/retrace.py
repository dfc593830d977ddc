"""Bring an environment along a logged trajectory, and compare what is seen with what was logged."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.playing.episode import after, take
from graphcredit.collector.policies.base import Decision, PolicyView
from graphcredit.collector.replaying.decisions import LoggedStep


@dataclass(frozen=True, kw_only=True, slots=True)
class RetracedState:
    """A state of an episode, with everything that led to it."""

    view: PolicyView
    """What the policy knows there."""
    sent: tuple[str, ...] = ()
    """The actions that lead the environment there from a reset: those that it accepted."""
    key: bytes = b""
    """A digest of all actions so far. Environments are deterministic, so places of one task with
    equal keys are the same."""
    num_steps: int = 0
    """Steps that were taken so far, refused ones included."""
    is_over: bool = False
    """Whether the environment ended the episode with the last of them."""
    success: bool = False
    """Whether the last of them accomplished the task."""


def retrace(
    environment: Environment, steps: Sequence[LoggedStep], last: int
) -> tuple[list[RetracedState], str | None]:
    """Take the logged actions, as long as everything is as it was logged.

    Args:
        environment: The environment of the task.
        steps: The logged steps.
        last: The last step to take.

    Returns:
        The places before step 0, 1, …, and, where all is as logged, after step `last`. And why
        there are no more; None if there are all.
    """
    place = RetracedState(view=PolicyView(observation=environment.reset()))
    places: list[RetracedState] = []
    for number, step in enumerate(steps[: last + 2]):
        problem = _seen_otherwise(place.view.observation, step)
        if problem is not None:
            return places, f"step {number}: {problem}"
        places.append(place)
        if number > last:
            return places, None
        place, done = _taken(environment, place, steps, number)
        problem = _done_otherwise(done, step)
        if problem is not None:
            return places, f"step {number}: {problem}"
    return [*places, place], None


def _taken(
    environment: Environment, place: RetracedState, steps: Sequence[LoggedStep], number: int
) -> tuple[RetracedState, Transition]:
    step = steps[number]
    before = place.view.observation
    decision = Decision(action=step.action, is_malformed=_was_malformed(before, steps, number))
    done = take(environment, before, decision)
    reached = RetracedState(
        view=after(place.view, decision, done),
        sent=(*place.sent, step.action) if done.is_action_valid else place.sent,
        key=blake2b(place.key + step.action.encode(), digest_size=16).digest(),
        num_steps=place.num_steps + 1,
        is_over=done.terminated,
        success=done.success,
    )
    return reached, done


def _was_malformed(before: Observation, steps: Sequence[LoggedStep], number: int) -> bool:
    """Return whether an action may pass for an answer that the environment never got.

    The log does not tell such answers from actions that the environment refused. Neither changes
    its state, and if the text that was shown next is the same, neither changed anything.
    """
    if steps[number].is_action_valid or number + 1 == len(steps):
        return False
    later = steps[number + 1]
    return (later.state, later.observation) == (before.state, _text(before))


def _text(observation: Observation) -> str | None:
    """Return the text as it is logged: None if it is the state."""
    return None if observation.text == observation.state else observation.text


def _seen_otherwise(seen: Observation, step: LoggedStep) -> str | None:
    """Return what differs between an observation and the logged one, or None."""
    if seen.state != step.state:
        return "another state than the logged one"
    if _text(seen) != step.observation:
        return "another observation than the logged one"
    if step.admissible_actions not in (None, seen.admissible_actions):
        return "other admissible actions than the logged ones"
    return None


def _done_otherwise(done: Transition, step: LoggedStep) -> str | None:
    """Return what differs between a transition and the logged one, or None."""
    if done.is_action_valid != step.is_action_valid:
        now = "accepted" if done.is_action_valid else "refused"
        return f"the action is {now} now, and was not when it was logged"
    if done.observation.state != step.next_state:
        return "the action leads to another state than the logged one"
    if done.terminated != step.terminated or (done.terminated and done.success != step.success):
        return "the episode ends otherwise than logged"
    if done.reward != step.reward:
        return f"reward {done.reward:g} instead of the logged {step.reward:g}"
    return None
