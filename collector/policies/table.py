"""Every policy that can be named on the command line."""

from collections.abc import Callable, Sequence
from typing import Protocol

from graphcredit.collector.policies.decision import Decision, Question
from graphcredit.collector.policies.oracle import OraclePolicy
from graphcredit.collector.policies.random import RandomPolicy
from graphcredit.store.errors import OptionError


class Policy(Protocol):
    """Chooses actions. It can be pickled, and holds no state of an episode."""

    @property
    def name(self) -> str:
        """Recorded as `policy_version`."""
        ...

    @property
    def needs_oracle(self) -> bool:
        """Whether observations must have a plan to win."""
        ...

    def decide(self, questions: Sequence[Question]) -> list[list[Decision]]:
        """Return, for each question, as many decisions as it wants."""
        ...


def _random(argument: str) -> Policy:
    if argument:
        raise OptionError(f"the policy random takes no argument: got {argument!r}")
    return RandomPolicy()


def _oracle(argument: str) -> Policy:
    try:
        epsilon = float(argument)
    except ValueError:
        raise OptionError(
            f"the policy oracle is oracle:EPSILON with a number from 0 to 1, for example "
            f"oracle:0.3: got {argument!r}"
        ) from None
    return OraclePolicy(epsilon=epsilon)


POLICIES: dict[str, Callable[[str], Policy]] = {
    "random": _random,
    "oracle": _oracle,
}
"""Name → from what follows the colon, to a policy."""


def parse_policy(text: str) -> Policy:
    """Return the policy of `random` or `oracle:EPSILON`.

    Raises:
        OptionError: There is no such policy, or its argument is out of range.
    """
    name, _, argument = text.partition(":")
    if name not in POLICIES:
        raise OptionError(f"policies are random and oracle:EPSILON: got {text!r}")
    return POLICIES[name](argument)
