"""A cache of transitions by the prefix of actions, so that environments repeat no work.

An environment is deterministic: the same actions after a reset give the same transitions. So the
transitions are kept as a tree of actions, and a rollout walks along it without a real environment.
When it takes an action that the tree lacks, a real environment is brought to its place, and takes
the action. A refused action leaves the rollout where it is.

The recorded steps are the same with and without this cache. Rollouts of one task that take the same
actions, as those of a trained policy do, cost next to nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.store.errors import InputError

MAX_OPEN = 64
"""Most real environments that are open at a time."""
MAX_TRANSITIONS = 50_000
"""Most transitions in the cache; those of the least recently played tasks are dropped first."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Node:
    """A place in the tree, reached by the actions from the root."""

    observation: Observation
    parent: "_Node | None" = None
    action: str = ""
    """The action that leads here from the parent."""
    known: dict[str, tuple[Transition, "_Node"]] = field(default_factory=dict)
    """Action to its transition and the next node, which is this one if the action is refused."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Memory:
    """The tree of one task."""

    root: _Node
    note: str | None
    num_transitions: int = 0


@dataclass(eq=False, kw_only=True, slots=True)
class _Real:
    """A real environment."""

    key: Hashable
    environment: Environment
    at: _Node | None = None
    """Its place in the tree; None before the first reset, and after an action that raised."""
    user: "_Walk | None" = None
    """The rollout that used it last, if that is still open."""


class Environments:
    """Real environments and their cached transitions, shared by the rollouts of a process."""

    def __init__(self, *, max_open: int = MAX_OPEN, max_transitions: int = MAX_TRANSITIONS) -> None:
        self._max_open = max_open
        self._max_transitions = max_transitions
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._reals: list[_Real] = []  # in the order of their last use

    def enter(self, key: Hashable, open_real: Callable[[], Environment]) -> Environment:
        """Return an environment for one rollout, which must close it when it has ended.

        Args:
            key: Identifies the environment: equal keys mean the same task, opened in the same way.
            open_real: Opens a real environment.
        """
        return _Walk(self, key, open_real)

    def close(self) -> None:
        """Close every real environment; the cache is kept."""
        while self._reals:
            self._reals.pop().environment.close()

    def memory_for(self, walk: "_Walk") -> _Memory:
        """Return the tree of a rollout's task; if there is none, make one with its root."""
        if walk.key not in self._memories:
            real = self._real_for(walk)
            root = _Node(observation=real.environment.reset())
            real.at = root
            self._memories[walk.key] = _Memory(root=root, note=real.environment.note)
        self._memories.move_to_end(walk.key)
        return self._memories[walk.key]

    def explore(self, walk: "_Walk", memory: _Memory, here: _Node, action: str) -> None:
        """Take a new action at a rollout's place in a real environment; cache the transition."""
        real = self._real_for(walk)
        _bring(real, here)
        # If the step raises, the environment's place is unknown.
        real.at = None
        done = real.environment.step(action)
        there = here
        if done.is_action_valid:
            there = _Node(observation=done.observation, parent=here, action=action)
        real.at = there
        here.known[action] = (done, there)
        memory.num_transitions += 1
        while sum(m.num_transitions for m in self._memories.values()) > self._max_transitions:
            self._memories.popitem(last=False)

    def leave(self, walk: "_Walk") -> None:
        """Free the real environment of a rollout that has ended."""
        for real in self._reals:
            if real.user is walk:
                real.user = None

    def _real_for(self, walk: "_Walk") -> _Real:
        """Return a real environment for a rollout.

        In order of preference: its own one; a free one of the same task; a new one; and if too many
        are open, the least recently used one, free ones first.
        """
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


class _Walk(Environment):
    """The environment of one rollout: a place in the tree."""

    def __init__(
        self, environments: Environments, key: Hashable, open_real: Callable[[], Environment]
    ) -> None:
        self.key = key
        self.open_real = open_real
        self._environments = environments
        self._memory = environments.memory_for(self)
        self.note = self._memory.note
        self._at = self._memory.root

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
    """Bring a real environment to a node: forward from its place, or from a reset."""
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
            "an environment must be deterministic: after the same actions, the last of them "
            f"{known.action or 'a reset'!r}, there was {known.observation.state[:120]!r}, and the "
            f"next time {found.state[:120]!r}"
        )
