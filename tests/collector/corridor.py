"""The smallest environment: rooms in a row, won in the last, lost by going west of the first."""

from graphcredit.collector.environments.base import Environment, Observation, Transition


class Corridor(Environment):
    """Accepts `east` and `west`; going back costs twice as much."""

    def __init__(self, *, num_rooms: int) -> None:
        self._last = num_rooms - 1
        self._room = 0
        self.is_closed = False

    def reset(self) -> Observation:
        self._room = 0
        return self._observe()

    def step(self, action: str) -> Transition:
        is_valid = action in ("east", "west")
        self._room += {"east": 1, "west": -1}.get(action, 0)
        won = self._room == self._last
        return Transition(
            observation=self._observe(),
            reward=1.0 if won else 0.0,
            cost=2.0 if action == "west" else 1.0,
            is_action_valid=is_valid,
            terminated=won or self._room < 0,
            success=won,
        )

    def close(self) -> None:
        self.is_closed = True

    def _observe(self) -> Observation:
        state = f"room {self._room}"
        distance = self._last - self._room
        return Observation(
            state=state,
            text=state if self._room % 2 else f"You are in {state}.",
            admissible_actions=("east", "west"),
            oracle_actions=("east",) * distance if self._room >= 0 else None,
        )
