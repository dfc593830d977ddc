"""Each game in a process of its own, which may die without harm to other games.

The planner calls `exit` at some errors: a game whose PDDL it refuses, memory that it does not get.
It would end a worker that plays dozens of games. So its engine is a worker process of its own, one
for all environments of a game in this process, because an engine can be asked for any sequence of
actions. Only the games asked last have an engine; another one is started when it is needed, and
finds its way by the same actions. An engine that dies is not started again: it would die again, and
what it says last names the reason.
"""

import os
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from graphcredit.collector.environments.alfworld.answer import Answer
from graphcredit.store.errors import UnplayableError
from graphcredit.store.workers.process import WorkerProcess

MAX_ENGINES = 8
"""Most engines that are running at a time; each takes 80 to 250 MB."""
ANSWER_SECONDS = 600.0
"""Longest time for one answer. Loading and planning take seconds, even on a busy machine."""
_LAST_WORDS = 300
"""Most characters of a dead process's last words that are told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GameFile:
    """A game to play."""

    path: Path
    with_plan: bool


def _answers(game: GameFile, sequences: Iterator[Sequence[str]]) -> Iterator[Answer]:
    """Load a game and answer sequences of actions; it is the work of an engine's process."""
    from graphcredit.collector.environments.alfworld.engine import Engine

    try:
        engine = Engine(game.path, with_plan=game.with_plan)
        yield from map(engine.answer, sequences)
    except Exception as error:
        # An error of the planner's own class would load the planner where it is received.
        raise UnplayableError(f"{type(error).__name__}: {error}") from None


class _EngineProcess:
    """One running engine."""

    def __init__(self, game: GameFile) -> None:
        self._game = game
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = WorkerProcess(
            environment=os.environ | {"PYTHONHASHSEED": "0"}, output=self._said
        )
        self._process.begin(partial(_answers, game))

    def answer(self, actions: Sequence[str]) -> Answer:
        """Return what a sequence of actions leads to."""
        self._process.send(tuple(actions))
        if not self._process.connection.poll(ANSWER_SECONDS):
            self._process.kill()
        message = self._process.receive()
        if message is None:
            raise UnplayableError(f"{self._game.path} cannot be played: {self._death()}")
        error, answer = message
        if error is not None:
            raise UnplayableError(f"{self._game.path} cannot be played: {error}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._said.close()

    def _death(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        words = " ".join(self._said.read().decode(errors="replace").split())[-_LAST_WORDS:]
        said = f", and said last: {words}" if words else ""
        return f"its process ended with exit code {code}{said}"


@dataclass(kw_only=True, slots=True)
class Engines:
    """The engines of this process, by game."""

    running: OrderedDict[GameFile, _EngineProcess] = field(
        default_factory=OrderedDict[GameFile, _EngineProcess]
    )
    """In the order of their last use."""
    users: Counter[GameFile] = field(default_factory=Counter[GameFile])
    """Open environments by game."""
    refused: dict[GameFile, str] = field(default_factory=dict[GameFile, str])
    """Why a game could not be played; it is not tried again."""

    def join(self, game: GameFile) -> None:
        """Count an environment of a game."""
        self.users[game] += 1

    def leave(self, game: GameFile) -> None:
        """Count one less; a game that nobody plays needs no engine."""
        self.users[game] -= 1
        if self.users[game] <= 0 and game in self.running:
            self.running.pop(game).close()

    def answer(self, game: GameFile, actions: Sequence[str]) -> Answer:
        """Return what a sequence of actions leads to in a game."""
        if game in self.refused:
            raise UnplayableError(self.refused[game])
        if game not in self.running:
            while len(self.running) >= MAX_ENGINES:
                self.running.popitem(last=False)[1].close()
            self.running[game] = _EngineProcess(game)
        self.running.move_to_end(game)
        try:
            return self.running[game].answer(actions)
        except UnplayableError as error:
            self.refused[game] = str(error)
            self.running.pop(game).close()
            raise


ENGINES = Engines()
"""Those of this process."""
