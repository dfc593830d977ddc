"""The TextWorld environment: text games that list admissible commands and know a winning plan.

- `state` is the room's description and the inventory, with normalised white space. It has neither
  the status line with its move counter nor the reply to the last command, so revisits are
  recognised.
- `text` is the task, then the game's last reply.
- The reward is the gain in score. A game that is lost ends without success.
- The oracle's plan is the game's own, without its detours (`walkthrough.py`). It wins, and it is
  the shortest if the quest itself has no superfluous action. Computing it halves the speed.

Importing this file imports TextWorld.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import textworld

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.environments.textworld.games import parse_game
from graphcredit.collector.environments.textworld.make_games import game_file, generator_seed
from graphcredit.collector.environments.textworld.walkthrough import without_detours

_PLAIN = re.compile(r"[a-zA-Z][a-zA-Z0-9' -]{0,99}")
_DIRECTIONS = frozenset({"north", "south", "east", "west"})
_LOOK = re.compile(r"look|inventory|examine .*")
_STATUS_LINE = re.compile(r"\n>[^\n]*-=[^\n]*=-\d+/\d+\s*\Z")
_EPILOGUE = re.compile(r"\n\s*You scored \d+ out of a possible \d+, in \d+ turns.*\Z", re.DOTALL)
"""The end of a finished game's text: it counts the moves, and asks whether to restart."""
_UNKNOWN = "That's not a verb I recognise."
"""The game's reply to an unknown word; also our reply to a command that the game is not given."""
_CANNOT = "You can't do that."
"""Our reply to a command that is undone, or that would depend on earlier commands."""
_OF_BEFORE = frozenset({"then", "it", "them", "him", "her"})
"""Words that start a second command, or refer to an earlier one."""


class TextWorldEnvironment(Environment):
    """One game in TextWorld's interpreter."""

    def __init__(
        self, path: Path, *, with_oracle: bool, with_looking: bool = True, note: str | None = None
    ) -> None:
        """Load a game.

        Args:
            path: The game file, with its description (`.json`) beside it.
            with_oracle: Whether observations include a winning plan.
            with_looking: Whether actions that only look, and change nothing, are admissible.
            note: A remark for the report about how the game was generated, or None.
        """
        self.note = note
        infos = textworld.EnvInfos(
            feedback=True,
            description=True,
            inventory=True,
            objective=True,
            admissible_commands=True,
            score=True,
            moves=True,
            won=True,
            lost=True,
            verbs=True,
            policy_commands=with_oracle,
        )
        self._game = textworld.start(str(path), infos)
        self._with_oracle = with_oracle
        self._with_looking = with_looking
        self._moves = 0
        self._score = 0
        self._verbs: frozenset[str] = frozenset()
        self._here: Observation | None = None
        self._taken: list[str] = []

    def reset(self) -> Observation:
        """Start the game again."""
        state: Any = self._game.reset()
        self._verbs = _DIRECTIONS.union(state.verbs)
        self._taken.clear()
        self._here = self._observe(state, is_first=True)
        return self._here

    def step(self, action: str) -> Transition:
        """Give the game a command.

        The action counts as valid if it was admissible, or if the game counted a move: TextWorld
        accepts more wordings than it lists. Unless the command is plain words that begin with a
        verb of the game, it is refused without asking the game: the interpreter has commands of its
        own, which write files or quit. If the game changed without TextWorld's notice, the change
        is undone and the action refused. If the game asks a question, that is undone too, since it
        would take the next command for the answer.
        """
        here = self._here or self.reset()
        was_admissible = action in (here.admissible_actions or ())
        if not was_admissible and (said := self._refusal(action)):
            return _refused(here, said)
        moves, score = self._moves, self._score
        state: Any = self._game.step(action)[0]
        has_moved = state.moves > moves
        is_valid = was_admissible or has_moved
        if not is_valid and _state_text(state) != here.state:
            self._return()
            return _refused(here, _CANNOT)
        if not has_moved and _said(state.feedback, "").endswith("?"):
            self._return()
        elif is_valid:
            self._taken.append(action)
        self._here = self._observe(state, is_first=False)
        return Transition(
            observation=self._here,
            reward=float(self._score - score),
            is_action_valid=is_valid,
            terminated=state.won or state.lost,
            success=state.won,
        )

    def _return(self) -> None:
        """Undo the effects of a command that is not a move, by a reset and a replay.

        For example, "go door" takes the player through the door in the interpreter, but TextWorld's
        facts and commands stay those of the old room and would be wrong from then on. And if the
        game asks which of two chests is meant, it asks again at the next command, even at one that
        is not ambiguous.
        """
        self._game.reset()
        for action in self._taken:
            self._game.step(action)

    def close(self) -> None:
        """Stop the interpreter."""
        self._game.close()

    def _refusal(self, action: str) -> str | None:
        """Return our reply to a command that the game is not given; None if it is given to it."""
        words = action.lower().split()
        if not _PLAIN.fullmatch(action) or words[0] not in self._verbs:
            return _UNKNOWN
        return None if _OF_BEFORE.isdisjoint(words) else _CANNOT

    def _observe(self, state: Any, *, is_first: bool) -> Observation:
        self._moves = state.moves
        self._score = state.score
        admissible = tuple(
            command
            for command in state.admissible_commands
            if self._with_looking or not _LOOK.fullmatch(command)
        )
        said = _said(state.feedback, state.objective if is_first else "")
        task = _normalise(state.objective)
        return Observation(
            state=_state_text(state),
            text=_shown(task, said),
            admissible_actions=admissible,
            oracle_actions=self._plan(state),
            task=task,
        )

    def _plan(self, state: Any) -> tuple[str, ...] | None:
        if not self._with_oracle or state.lost:
            return None
        if state.won:
            return ()
        actions = state["_winning_policy"]
        if actions is None:
            return None
        return tuple(without_detours(state.policy_commands, actions, state["_facts"]))


def open_textworld(spec: str, cache_dir: Path, with_oracle: bool) -> TextWorldEnvironment:
    """Open the game of a task; generate it first if it is not in the cache."""
    game = parse_game(spec)
    path = game_file(game, cache_dir)
    seed = generator_seed(path)
    note = f"{spec}: seed {game.seed} has no such quest, so it was generated from seed {seed}"
    return TextWorldEnvironment(
        path,
        with_oracle=with_oracle,
        with_looking=not game.numbers["n"],
        note=None if seed == game.seed else note,
    )


def _refused(here: Observation, said: str) -> Transition:
    return Transition(
        observation=replace(here, text=_shown(here.task, said)), is_action_valid=False
    )


def _state_text(state: Any) -> str:
    return _normalise(f"{state.description}\n{state.inventory}")


def _shown(task: str | None, said: str) -> str:
    return f"Task: {task}\n{said}"


def _said(feedback: str, objective: str) -> str:
    """Return the game's reply, without status line, epilogue and opening banner."""
    text = _EPILOGUE.sub("", _STATUS_LINE.sub("", feedback))
    _, found, rest = text.partition(objective) if objective else ("", "", "")
    return _normalise(rest if found else text)


def _normalise(text: str) -> str:
    """Return the non-empty lines, with single spaces."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
