"""An environment that is a table: which place an action leads to."""

from graphcredit.collector.environments.base import Environment, Observation, Transition


class Maze(Environment):
    """Places joined by actions; in WON it is won, in LOST lost. Other actions are refused."""

    def __init__(self, ways: dict[str, dict[str, str]]) -> None:
        """Take the ways of each place; the first is the start."""
        self._ways = ways
        self._place = next(iter(ways))
        self.told: list[str] = []
        """Actions since the last reset."""

    def reset(self) -> Observation:
        """Go back to the start."""
        self._place = next(iter(self._ways))
        self.told = []
        return self._observe()

    def step(self, action: str) -> Transition:
        """Go where the action leads."""
        self.told.append(action)
        ways = self._ways.get(self._place, {})
        self._place = ways.get(action, self._place)
        return Transition(
            observation=self._observe(),
            reward=1.0 if self._place == "WON" else 0.0,
            is_action_valid=action in ways,
            terminated=self._place in ("WON", "LOST"),
            success=self._place == "WON",
        )

    def _observe(self) -> Observation:
        return Observation(
            state=self._place, admissible_actions=tuple(sorted(self._ways.get(self._place, {})))
        )
