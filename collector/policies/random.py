"""The random policy: any admissible action, with equal probability."""

import random
from dataclasses import dataclass

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import Decision
from graphcredit.collector.policies.scripted import ScriptedPolicy, scripted
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPolicy(ScriptedPolicy):
    """Uniform over the admissible actions, including those that only look."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "random"

    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return one of the admissible actions."""
        return scripted(observation, any_admissible(observation, rng))


def any_admissible(observation: Observation, rng: random.Random) -> str:
    """Return an admissible action at random.

    Raises:
        InputError: The environment lists none.
    """
    if not observation.admissible_actions:
        raise InputError(
            "a random policy needs the environment's admissible actions: there are none at "
            f"{observation.state[:80]!r}"
        )
    return rng.choice(observation.admissible_actions)
