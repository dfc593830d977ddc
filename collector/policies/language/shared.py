"""One model for all processes that play: they send what they see, and get decisions back.

The process that has the model answers whoever waits as one batch, while others step environments.
Messages go over a socket in a folder that only this user can enter.
"""

import socket
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from multiprocessing.connection import Connection, Pipe, wait
from threading import Thread
from typing import Any

from graphcredit.collector.policies.base import Decision, Policy
from graphcredit.collector.policies.engines.registry import ENGINES
from graphcredit.collector.policies.language.policy import LanguagePolicy, Question, forget, load
from graphcredit.store.errors import EngineError
from graphcredit.store.files.scratch import ScratchFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedPolicy(LanguagePolicy):
    """A language policy whose model another process of this machine has in memory."""

    address: str
    """Path of the socket at which that process listens."""

    def answer(self, questions: Sequence[Question]) -> list[list[Decision]]:
        """Ask the process that has the model.

        Raises:
            EngineError: It does not answer.
        """
        try:
            connection = _connected(self.address)
            connection.send(questions)
            return connection.recv()
        except (OSError, EOFError) as error:
            raise EngineError(
                f"the process that has the model {self.model.path} must answer: it ended or failed"
            ) from error


@lru_cache(maxsize=1)
def _connected(address: str) -> "Connection[Any, Any]":
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
        return Connection(client.detach())


@contextmanager
def shared(policy: Policy, num_workers: int) -> Generator[Policy]:
    """Yield the policy for processes that play, after loading its model once for all of them.

    Within the block this process answers for the model that it has, or a server for its own.
    Without workers, or without a model, the policy is yielded as it is.

    Raises:
        Exception: Whatever the model raised while others asked.
    """
    if isinstance(policy, LanguagePolicy):
        is_served = ENGINES[policy.kind].is_served
        load(policy, anew=is_served)
        if num_workers and not is_served:
            yield from _answered(policy, num_workers)
            return
    yield policy


def _answered(policy: LanguagePolicy, num_workers: int) -> Generator[Policy]:
    with ScratchFolder() as folder, socket.socket(socket.AF_UNIX) as listener:
        address = str(folder / "model")
        listener.bind(address)
        listener.listen(num_workers)
        ending, end = Pipe()
        server = _Server(policy=policy, listener=listener, ending=ending)
        thread = Thread(target=server.run)
        thread.start()
        try:
            values = {each.name: getattr(policy, each.name) for each in fields(policy)}
            yield SharedPolicy(**values, address=address)
        except EngineError as error:
            raise server.error or error from None
        finally:
            end.close()
            thread.join()
            forget()


@dataclass(kw_only=True)
class _Server:
    """Answers the processes that play, from a thread of the process that has the model."""

    policy: LanguagePolicy
    listener: socket.socket
    ending: "Connection[Any, Any]"
    """Is at its end when nobody asks any more."""
    error: Exception | None = None
    """What the model raised; nobody is answered after it."""
    _connections: "list[Connection[Any, Any]]" = field(default_factory=list["Connection[Any, Any]"])
    _asked: "dict[Connection[Any, Any], Sequence[Question]]" = field(
        default_factory=dict["Connection[Any, Any]", "Sequence[Question]"]
    )
    """What those ask that wait for an answer."""

    def run(self) -> None:
        """Answer until the end, or until the model raises an error."""
        with closing(self.ending), self.listener:
            try:
                while self._is_wanted():
                    pass
            except Exception as error:
                self.error = error
            for connection in self._connections:
                connection.close()

    def _is_wanted(self) -> bool:
        """Wait for what comes next, and answer if half of those that play ask; False at the end.

        The others step environments meanwhile. To answer each at once takes many more batches.
        """
        playing = [each for each in self._connections if each not in self._asked]
        ready = wait([self.ending, self.listener, *playing])
        if self.ending in ready:
            return False
        if self.listener in ready:
            self._connections.append(Connection(self.listener.accept()[0].detach()))
        for connection in playing:
            if connection in ready:
                self._receive(connection)
        if self._asked and 2 * len(self._asked) >= len(self._connections):
            self._answer()
        return True

    def _receive(self, connection: "Connection[Any, Any]") -> None:
        """Read what a process asks, or that it has ended."""
        try:
            self._asked[connection] = connection.recv()
        except (EOFError, OSError):
            self._connections.remove(connection)
            connection.close()

    def _answer(self) -> None:
        asked, self._asked = self._asked, {}
        answers = iter(self.policy.answer([one for many in asked.values() for one in many]))
        for connection, questions in asked.items():
            with suppress(OSError):  # it died; what it played is played again
                connection.send([next(answers) for _ in questions])
