"""Each game in a process of its own, which may die without harm to other games.

The planner ends its process at some errors: a game whose PDDL it refuses, memory that it does not
get. All environments of one game in this process share its engine, because an engine can be asked
for any sequence of actions. Only the games asked last have an engine; another one is started when
it is needed, and finds its way by the same actions.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from graphcredit.collector.environments.alfworld.answer import Answer
from graphcredit.store.errors import UnplayableError

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
    """Its file."""
    with_plan: bool
    """Whether answers include a plan."""


class _Process:
    """One running engine."""

    def __init__(self, game: GameFile) -> None:
        self._game = game
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "graphcredit.collector.environments.alfworld.serve"),
                *(str(game.path), "plan" if game.with_plan else "no plan"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "0"},
        )

    def answer(self, actions: Sequence[str]) -> Answer:
        """Return what a sequence of actions leads to.

        Raises:
            UnplayableError: The process is dead, refused the game, or takes too long.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(list(actions)).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it is dead, which is noticed below; it may have said why
        found = json.loads(self._line() or "null")
        if found is None:
            raise UnplayableError(f"{self._game.path} {self._death()}")
        if "error" in found:
            raise UnplayableError(f"{self._game.path} cannot be played: {found['error']}")
        found["actions"] = tuple(found["actions"])
        found["plan"] = None if found["plan"] is None else tuple(found["plan"])
        return Answer(**found)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def _line(self) -> bytes:
        """Return a line of output; nothing if the process is dead, or was too slow and is now."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]:
            self._process.kill()
        return self._process.stdout.readline()

    def _death(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        words = " ".join(self._said.read().decode(errors="replace").split())[-_LAST_WORDS:]
        said = f", and said last: {words}" if words else ""
        return f"cannot be played: its process ended with exit code {code}{said}"


@dataclass(kw_only=True, slots=True)
class Engines:
    """The engines of this process, by game."""

    running: OrderedDict[GameFile, _Process] = field(
        default_factory=OrderedDict[GameFile, _Process]
    )
    """In the order of their last use."""
    users: Counter[GameFile] = field(default_factory=Counter[GameFile])
    """Open environments by game."""
    refused: dict[GameFile, str] = field(default_factory=dict[GameFile, str])
    """Why a game could not be played; it is not tried again while it has users."""

    def join(self, game: GameFile) -> None:
        """Count an environment of a game."""
        self.users[game] += 1

    def leave(self, game: GameFile) -> None:
        """Count one less; a game that nobody plays needs no engine."""
        self.users[game] -= 1
        if self.users[game] <= 0 and game in self.running:
            self.running.pop(game).close()

    def answer(self, game: GameFile, actions: Sequence[str]) -> Answer:
        """Return what a sequence of actions leads to in a game.

        Raises:
            UnplayableError: The game cannot be loaded, or its process died.
        """
        if game in self.refused:
            raise UnplayableError(self.refused[game])
        if game not in self.running:
            while len(self.running) >= MAX_ENGINES:
                self.running.popitem(last=False)[1].close()
            self.running[game] = _Process(game)
        self.running.move_to_end(game)
        try:
            return self.running[game].answer(actions)
        except UnplayableError as error:
            self.refused[game] = str(error)
            self.running.pop(game).close()
            raise


ENGINES = Engines()
"""Those of this process."""
