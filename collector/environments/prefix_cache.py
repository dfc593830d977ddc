"""Environments that are asked only once: what an action did after a prefix is remembered.

An environment is deterministic: the same actions after a reset give the same transitions. So what
was seen is kept as a tree of actions, and a rollout walks along it without a real environment. When
it leaves what is known, a real one is brought to where the rollout stands, and goes on with it. A
refused action leads nowhere: the rollout stays where it stands. Where the environment says that it
is in a situation that it was in before, branches grow together.

What is recorded is the same with and without this; rollouts of one task that go the same ways, as
those of a trained policy do, cost next to nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.store.errors import InputError

MAX_OPEN = 64
"""Real environments that are open at a time."""
MAX_TRANSITIONS = 50_000
"""Transitions that are remembered; those of the tasks played longest ago are forgotten first."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Node:
    """Where the actions on the way from the root lead, and others that lead to its situation."""

    observation: Observation
    parent: "_Node | None" = None
    action: str = ""
    """Leads here from the parent."""
    known: dict[str, tuple[Transition, "_Node"]] = field(default_factory=dict)
    """Action to what it does here, and where it leads: here, if it is refused."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Memory:
    """What is known of one task."""

    root: _Node
    note: str | None
    places: dict[Hashable, _Node] = field(default_factory=dict)
    """The first node of each situation."""
    num_transitions: int = 0

    def node_at(self, observation: Observation, parent: _Node, action: str) -> _Node:
        """Return where an action led: where it was before, or a new node."""
        node = _Node(observation=observation, parent=parent, action=action)
        if observation.situation is None:
            return node
        return self.places.setdefault(observation.situation, node)


@dataclass(eq=False, kw_only=True, slots=True)
class _Real:
    """A real environment."""

    key: Hashable
    environment: Environment
    at: _Node | None = None
    """Where it stands; None before its first reset, and after an action that did not return."""
    user: "_Walk | None" = None
    """The rollout that used it last, if that is still open."""


class Environments:
    """Real environments and what was seen in them, shared by the rollouts of a process."""

    def __init__(self, *, max_open: int = MAX_OPEN, max_transitions: int = MAX_TRANSITIONS) -> None:
        """Know nothing yet.

        Args:
            max_open: Real environments that may be open at a time.
            max_transitions: Transitions that may be remembered.
        """
        self._max_open = max_open
        self._max_transitions = max_transitions
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._reals: list[_Real] = []  # in the order of their last use

    def enter(self, key: Hashable, open_real: Callable[[], Environment]) -> Environment:
        """Return an environment for one rollout, which closes it when it has ended.

        Args:
            key: What the environment is; equal ones are the same task, opened in the same way.
            open_real: Opens a real one.
        """
        return _Walk(self, key, open_real)

    def close(self) -> None:
        """Close every real environment; what was seen stays known."""
        while self._reals:
            self._reals.pop().environment.close()

    def memory_for(self, walk: "_Walk") -> _Memory:
        """Return what is known of a rollout's task; its start, if nothing was."""
        if walk.key not in self._memories:
            real = self._real_for(walk)
            root = _Node(observation=real.environment.reset())
            real.at = root
            memory = _Memory(root=root, note=real.environment.note)
            if root.observation.situation is not None:
                memory.places[root.observation.situation] = root
            self._memories[walk.key] = memory
        self._memories.move_to_end(walk.key)
        return self._memories[walk.key]

    def explore(self, walk: "_Walk", memory: _Memory, here: _Node, action: str) -> None:
        """Do what was not done before where a rollout stands, and remember it."""
        real = self._real_for(walk)
        _bring(real, here)
        real.at = None
        done = real.environment.step(action)
        there = here
        if done.is_action_valid:
            there = memory.node_at(done.observation, here, action)
        real.at = there
        here.known[action] = (done, there)
        memory.num_transitions += 1
        while sum(m.num_transitions for m in self._memories.values()) > self._max_transitions:
            self._memories.popitem(last=False)

    def leave(self, walk: "_Walk") -> None:
        """Let others have the real environment of a rollout that has ended."""
        for real in self._reals:
            if real.user is walk:
                real.user = None

    def _real_for(self, walk: "_Walk") -> _Real:
        """Return the rollout's own real environment, or a free one, or a new one, or another's."""
        of_task = [real for real in self._reals if real.key == walk.key]
        own = next((real for real in of_task if real.user is walk), None)
        real = own or next((real for real in of_task if real.user is None), None)
        if real is None and len(self._reals) >= self._max_open:
            taken = next((real for real in self._reals if real.user is None), self._reals[0])
            if taken.key == walk.key:
                real = taken
            else:
                self._reals.remove(taken)
                taken.environment.close()
        if real is None:
            real = _Real(key=walk.key, environment=walk.open_real())
        else:
            self._reals.remove(real)
        self._reals.append(real)
        real.user = walk
        return real


class _Walk:
    """The environment of one rollout: a place in what is known."""

    def __init__(
        self, environments: Environments, key: Hashable, open_real: Callable[[], Environment]
    ) -> None:
        self.key = key
        self.open_real = open_real
        self._environments = environments
        self._memory = environments.memory_for(self)
        self._at = self._memory.root

    @property
    def note(self) -> str | None:
        return self._memory.note

    def reset(self) -> Observation:
        self._at = self._memory.root
        return self._at.observation

    def step(self, action: str) -> Transition:
        if action not in self._at.known:
            self._environments.explore(self, self._memory, self._at, action)
        done, self._at = self._at.known[action]
        return done

    def close(self) -> None:
        self._environments.leave(self)


def _bring(real: _Real, there: _Node) -> None:
    """Bring a real environment to a place: onward from where it stands, or from the start."""
    ahead: list[_Node] = []
    node = there
    while node is not real.at and node.parent is not None:
        ahead.append(node)
        node = node.parent
    must_reset = node is not real.at
    real.at = None
    if must_reset:
        _check_same(real.environment.reset(), node)
    for node in reversed(ahead):
        _check_same(real.environment.step(node.action).observation, node)
    real.at = there


def _check_same(found: Observation, known: _Node) -> None:
    if found.state != known.observation.state:
        raise InputError(
            "an environment must do the same after the same actions: after "
            f"{known.action or 'a reset'!r} there was {known.observation.state[:120]!r}, and the "
            f"next time {found.state[:120]!r}"
        )
