"""The oracle policy: it follows the environment's winning plan, with random mistakes.

Its skill can be anything between perfect and random, and the true quality of each step is known. A
mistake is any admissible action, including those that only look: credit must find wasted steps, so
the data must have them. A mistake may happen to be the plan's action.
"""

import random
from dataclasses import dataclass

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import Decision
from graphcredit.collector.policies.random import any_admissible
from graphcredit.collector.policies.scripted import ScriptedPolicy, scripted
from graphcredit.store.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class OraclePolicy(ScriptedPolicy):
    """Follows the plan with probability 1 - epsilon, else takes a random admissible action."""

    epsilon: float
    """Probability of a mistake at each step, 0 to 1."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            OptionError: `epsilon` is not a probability.
        """
        if not 0.0 <= self.epsilon <= 1.0:
            raise OptionError(f"epsilon of the oracle policy must be 0 to 1: got {self.epsilon}")

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"oracle:{self.epsilon}"

    @property
    def needs_oracle(self) -> bool:
        """True: it follows the environment's plan."""
        return True

    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return the plan's next action or a mistake; without a plan, a random action."""
        if observation.oracle_actions and rng.random() >= self.epsilon:
            return scripted(observation, observation.oracle_actions[0])
        return scripted(observation, any_admissible(observation, rng))
