"""The ALFWorld environment: household tasks in text, as ALFRED's authors published them.

- `state` is every fact that can change and holds, a line for each relation: what is where, open,
  carried, clean, hot, cool, switched on. It leaves out which things were looked at, on which
  nothing depends. So it tells apart what the game's words do not: "You arrive at loc 8" says not
  what is carried.
- `text` is the game's reply to the last action; at first, its opening with the task.
- Admissible actions are those that TextWorld lists. All others are answered "Nothing happens." and
  count as refused.
- The reward is 1 for the action that wins, else 0. No game can be lost.
- The oracle's plan is the planner's, from this very state. It wins; it is not always a shortest
  one, so its length is an upper bound of the distance.
- The game runs in a process of its own (`process.py`).
"""

from pathlib import Path

from graphcredit.collector.environments.alfworld.answer import Answer
from graphcredit.collector.environments.alfworld.games import game_file
from graphcredit.collector.environments.alfworld.process import ENGINES, GameFile
from graphcredit.collector.environments.base import Environment, Observation, Transition


class AlfworldEnvironment(Environment):
    """One game."""

    def __init__(self, game: GameFile) -> None:
        """Make the environment of a game, which is loaded when it is first played."""
        self._game = game
        self._taken: list[str] = []
        ENGINES.join(game)

    def reset(self) -> Observation:
        """Start the game again."""
        self._taken.clear()
        return _observed(ENGINES.answer(self._game, ()))

    def step(self, action: str) -> Transition:
        """Take an action; one that is not admissible changes nothing."""
        command = " ".join(action.split())
        answer = ENGINES.answer(self._game, (*self._taken, command))
        if answer.is_valid:
            self._taken.append(command)
        return Transition(
            observation=_observed(answer),
            reward=float(answer.is_won and answer.is_valid),
            is_action_valid=answer.is_valid,
            terminated=answer.is_won,
            success=answer.is_won,
        )

    def close(self) -> None:
        """End the game's process, unless another environment plays it."""
        ENGINES.leave(self._game)


def _observed(answer: Answer) -> Observation:
    return Observation(
        state=answer.state,
        text=answer.text,
        admissible_actions=answer.actions,
        oracle_actions=answer.plan,
        task=answer.task,
    )


def open_alfworld(spec: str, games_dir: Path, with_oracle: bool) -> AlfworldEnvironment:
    """Open the game of a task."""
    path = game_file(spec, games_dir)
    return AlfworldEnvironment(GameFile(path=path, with_plan=with_oracle))
