"""Play episodes as generators, and drive many of them at once with batched decisions.

An episode is a generator: it yields a request for decisions, is sent the decisions, and returns its
outcome. It does not know the policy, nor the other episodes. So the requests of all open episodes
can go to the policy as one batch.
"""

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.playing.job import Job, Outcome, trajectory_rng
from graphcredit.collector.playing.schedule import Rollout
from graphcredit.collector.policies.base import Decision, DecisionRequest, Policy, PolicyView
from graphcredit.collector.recording.recorder import StepRecorder

Play = Generator[DecisionRequest, list[Decision], Outcome]
"""Yields requests, is sent decisions, and returns the outcome."""

Ending = TypeVar("Ending")


def episode(job: Job, environment: Environment, rollout: Rollout, recorder: StepRecorder) -> Play:
    """Play one trajectory from its first observation to its end, and record each step at once."""
    rng = trajectory_rng(job.settings.seed, job.iteration, rollout)
    task_id, trajectory_id = rollout.task.task_id, rollout.trajectory_id
    view = PolicyView(observation=environment.reset())
    with recorder.trajectory(task_id=task_id, trajectory_id=trajectory_id) as trajectory:
        while True:
            num_steps = len(view.history) + 1
            (decision,) = yield DecisionRequest(view=view, rng=rng)
            done = take(environment, view.observation, decision)
            truncated = num_steps == job.settings.max_steps and not done.terminated
            trajectory.log(
                **step_columns(job, view.observation, decision, done),
                truncated=truncated,
                success=done.success if done.terminated or truncated else None,
                extra=job.settings.to_json() if num_steps == 1 else None,
            )
            if done.terminated or truncated:
                return Outcome(
                    trajectory_id=trajectory_id,
                    num_steps=num_steps,
                    success=done.success,
                    truncated=truncated,
                    note=environment.note,
                )
            view = after(view, decision, done)


def take(environment: Environment, before: Observation, decision: Decision) -> Transition:
    """Carry out a decision; a malformed answer changes nothing and costs a step."""
    if not decision.is_malformed:
        return environment.step(decision.action)
    return Transition(observation=before, is_action_valid=False)


def after(view: PolicyView, decision: Decision, done: Transition) -> PolicyView:
    """Return the policy's view after a step."""
    seen = (view.observation, decision.action)
    return PolicyView(observation=done.observation, history=(*view.history, seen))


def step_columns(
    job: Job, before: Observation, decision: Decision, done: Transition
) -> dict[str, Any]:
    """Return the columns of a step that come from the policy and the environment."""
    later = done.observation
    with_oracle = job.settings.oracle
    tokens = decision.tokens
    return {
        "state": before.state,
        "next_state": later.state,
        "observation": None if before.text == before.state else before.text,
        "thought": decision.thought,
        "action": decision.action,
        "admissible_actions": before.admissible_actions,
        "is_action_valid": done.is_action_valid,
        "reward": done.reward,
        "cost": done.cost,
        "oracle_distance": before.oracle_distance if with_oracle else None,
        "next_oracle_distance": later.oracle_distance if with_oracle else None,
        "terminated": done.terminated,
        "prompt_ids": tokens and tokens.prompt_ids,
        "response_ids": tokens and tokens.response_ids,
        "response_logprobs": tokens and tokens.response_logprobs,
        "temperature": tokens and tokens.temperature,
        "policy_version": job.policy.name,
    }


def drive(
    plays: Iterator[Generator[DecisionRequest, list[Decision], Ending]],
    policy: Policy,
    concurrency: int,
) -> Generator[Ending]:
    """Play many episodes at a time: gather their requests, ask the policy once, send the answers.

    Args:
        plays: The episodes; the next one starts whenever fewer than `concurrency` are open.
        policy: The policy that decides.
        concurrency: Most episodes that are open at a time.

    Yields:
        The return value of each episode, in the order in which they end.
    """
    asking: dict[Generator[DecisionRequest, list[Decision], Ending], DecisionRequest] = {}
    try:
        while True:
            while len(asking) < concurrency and (play := next(plays, None)) is not None:
                try:
                    asking[play] = next(play)
                except StopIteration as end:
                    yield end.value
            if not asking:
                return
            answers = policy.decide(list(asking.values()))
            for play, decisions in zip(list(asking), answers, strict=True):
                try:
                    asking[play] = play.send(decisions)
                except StopIteration as end:
                    del asking[play]
                    yield end.value
    finally:
        for play in asking:
            play.close()
