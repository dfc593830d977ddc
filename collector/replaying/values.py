"""Estimate what a place is worth: the share of plays from there that succeed.

Environments are deterministic, so Q of an action is the value of the place that it leads to, with
one step less to go. Both are estimated alike: K independent plays by the policy. The random numbers
of a play depend on the seed, the task, the actions so far and the number of the play, and on
nothing else. So places that several trajectories share are played from once.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random

from graphcredit.collector.environments.base import Environment, Task, replay
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.playing.episode import after, drive, take
from graphcredit.collector.playing.job import enter
from graphcredit.collector.policies.base import Decision, DecisionRequest, Policy
from graphcredit.collector.replaying.retrace import RetracedState


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """The outcomes of the plays from a place."""

    num_plays: int
    num_wins: int
    """Those that succeeded."""
    first_actions: tuple[str, ...] = ()
    """The first action of each play."""

    @property
    def share(self) -> float:
        """Share of the plays that succeeded: an estimate without bias."""
        return self.num_wins / self.num_plays

    @property
    def variance(self) -> float:
        """Variance of the share as Agresti and Caffo estimate it, above 0 even for 0 of K.

        p(1 - p)/(K + 2) with p = (wins + 1)/(K + 2). Source: Agresti and Caffo, The American
        Statistician 54 (2000) 280-288: the interval that it gives for the difference of two shares
        covers the truth about as often as it says, with few plays and near 0 and 1, too.
        """
        shrunk = (self.num_wins + 1) / (self.num_plays + 2)
        return shrunk * (1 - shrunk) / (self.num_plays + 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Playing:
    """How to play on from a place."""

    policy: Policy
    num_plays: int
    max_steps: int
    """Steps after which an episode is truncated, those before the place included."""
    seed: int
    concurrency: int
    cache_dir: Path


@dataclass(frozen=True, slots=True)
class _Ending:
    key: bytes
    first_action: str
    success: bool


class Values:
    """The values of the places of one task, each estimated once."""

    def __init__(self, playing: Playing, task: Task, environments: Environments) -> None:
        """Begin without any value."""
        self._playing = playing
        self._task = task
        self._environments = environments
        self._known: dict[bytes, Value] = {}

    def enter(self) -> Environment:
        """Return an environment of the task, which the caller must close."""
        of = self._playing
        with_oracle = of.policy.needs_oracle
        return enter(self._environments, self._task, of.cache_dir, with_oracle=with_oracle)

    def of(self, places: Iterable[RetracedState]) -> Mapping[bytes, Value]:
        """Play on from places that have no value yet; return the value of each, by its key."""
        wanted = {place.key: place for place in places}
        endings: dict[bytes, list[_Ending]] = {}
        new = [place for key, place in wanted.items() if key not in self._known]
        plays = iter(self._plays(new))
        for ending in drive(plays, self._playing.policy, self._playing.concurrency):
            endings.setdefault(ending.key, []).append(ending)
        for key, found in endings.items():
            self._known[key] = Value(
                num_plays=len(found),
                num_wins=sum(ending.success for ending in found),
                first_actions=tuple(sorted(ending.first_action for ending in found)),
            )
        return {key: self._known[key] for key in wanted}

    def is_known(self, place: RetracedState) -> bool:
        """Return whether the outcome of a place is known without a play: the episode has ended."""
        return place.is_over or place.num_steps >= self._playing.max_steps

    def _plays(
        self, places: Iterable[RetracedState]
    ) -> Iterator[Generator[DecisionRequest, list[Decision], _Ending]]:
        for place in places:
            for number in range(self._playing.num_plays):
                yield self._play(place, number)

    def _play(
        self, place: RetracedState, number: int
    ) -> Generator[DecisionRequest, list[Decision], _Ending]:
        rng = play_rng(self._playing.seed, self._task, place, number)
        with closing(self.enter()) as environment:
            replay(environment, place.sent)
            view, first_action, success = place.view, "", False
            for step in range(place.num_steps, self._playing.max_steps):
                (decision,) = yield DecisionRequest(view=view, rng=rng)
                if step == place.num_steps:
                    first_action = decision.action
                done = take(environment, view.observation, decision)
                success = done.success
                if done.terminated:
                    break
                view = after(view, decision, done)
        return _Ending(place.key, first_action, success)


def play_rng(seed: int, task: Task, place: RetracedState, number: int) -> Random:
    """Return the random number generator of one play from a place."""
    key = f"{seed}/{task.task_id}/{place.key.hex()}/{number}"
    return Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest()))
