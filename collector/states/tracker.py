"""States by a rule while an agent plays, for who logs steps by a recorder."""

from graphcredit.collector.states.calls import Visit, called
from graphcredit.collector.states.table import must_learn, tool_rule
from graphcredit.store.errors import OptionError


class ToolStates:
    """The state of an agent that uses tools, by a rule, call by call."""

    def __init__(self, rule: str) -> None:
        """Start a trajectory.

        Args:
            rule: A rule for tools, as of `graphcredit import --state`. `effects` must name its
                tools, since there is no log yet to learn them from: `effects:book,cancel`.

        Raises:
            OptionError: There is no such rule, or it is to be learned.
        """
        self._rule = tool_rule(rule)
        if must_learn(rule):
            raise OptionError(f"a rule must name its tools while a rollout is played: got {rule!r}")
        self._visits: list[Visit] = []

    @property
    def state(self) -> str:
        """The state after all calls so far."""
        return self.seen("")

    def seen(self, text: str) -> str:
        """Return the state of an agent that now sees a text, for rules with `last`."""
        return self._rule([*self._visits, Visit(seen=text, calls=())])[-1]

    def call(
        self, tool: str, arguments: object = "", result: str = "", *, is_failed: bool = False
    ) -> str:
        """Take a call, and return the state after it.

        Args:
            tool: Its name.
            arguments: JSON, or the values that are written as JSON.
            result: What it returned; one that says "error" is of a failed call.
            is_failed: Whether it failed, where the result does not say so.
        """
        made = called(tool, arguments, result, is_failed=is_failed)
        self._visits.append(Visit(seen="", calls=(made,)))
        return self.state
