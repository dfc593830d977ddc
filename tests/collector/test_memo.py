"""An environment that remembers: what a rollout sees is what a real environment would show it."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.environments.base import Environment, Transition
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.store.errors import InputError
from tests.collector.corridor import Corridor


class _Counted(Corridor):
    """A corridor that counts what it is asked."""

    num_open = 0
    num_asked = 0

    def __init__(self, num_rooms: int = 4) -> None:
        super().__init__(num_rooms=num_rooms)
        _Counted.num_open += 1

    def step(self, action: str) -> Transition:
        _Counted.num_asked += 1
        return super().step(action)

    def close(self) -> None:
        super().close()
        _Counted.num_open -= 1


@pytest.fixture(autouse=True)
def _from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "num_open", 0)
    monkeypatch.setattr(_Counted, "num_asked", 0)


def _go(environment: Environment, *actions: str) -> Transition:
    environment.reset()
    return [environment.step(action) for action in actions][-1]


def test_what_was_done_before_is_not_asked_again():
    environments = Environments()
    first = _go(environments.enter("a", _Counted), "east", "east")
    second = _go(environments.enter("a", _Counted), "east", "east")
    assert second is first
    assert (_Counted.num_asked, _Counted.num_open) == (2, 1)


def test_a_rollout_that_leaves_what_is_known_goes_on_with_its_own_real_environment():
    environments = Environments()
    a, b = (environments.enter("a", _Counted) for _ in range(2))
    for _ in range(2):
        a.step("east")
        b.step("east")
    b.step("west")
    # 2 steps of a; b's environment follows to room 2 once it is needed, then goes west
    assert (_Counted.num_asked, _Counted.num_open) == (2 + 2 + 1, 2)
    b.step("west")
    assert _Counted.num_asked == 6


def test_a_refused_action_leads_nowhere_and_is_asked_once_in_each_place():
    environments = Environments()
    walk = environments.enter("a", _Counted)
    refused = [walk.step("fly") for _ in range(3)]
    assert [(done.is_action_valid, done.observation.state) for done in refused] == [
        (False, "room 0")
    ] * 3
    assert walk.step("east").observation.state == "room 1"
    assert _Counted.num_asked == 2


def test_no_more_environments_are_open_than_allowed_and_all_close_in_the_end():
    environments = Environments(max_open=2)
    walks = [environments.enter(key, _Counted) for key in ("a", "b", "c", "a")]
    for number, walk in enumerate(walks):
        assert walk.step("east").observation.state == "room 1"
        assert walk.step("west" if number else "east").is_action_valid
        assert _Counted.num_open <= 2
    assert [walk.step("east").observation.state for walk in walks] == ["room 3"] + ["room 1"] * 3
    environments.close()
    assert _Counted.num_open == 0


def test_what_is_forgotten_is_asked_again():
    environments = Environments(max_transitions=2)
    _go(environments.enter("a", _Counted), "east", "east")
    _go(environments.enter("b", _Counted), "east")
    assert _go(environments.enter("a", _Counted), "east").observation.state == "room 1"
    assert _Counted.num_asked == 4


def test_an_environment_that_does_something_else_the_second_time_is_refused():
    class Moody(Corridor):
        num_resets = 0

        def step(self, action: str) -> Transition:
            return super().step(action if Moody.num_resets < 2 else "west")

        def reset(self):
            Moody.num_resets += 1
            return super().reset()

    environments = Environments()
    first, second = (environments.enter("a", lambda: Moody(num_rooms=4)) for _ in range(2))
    first.step("east")
    second.step("east")
    with pytest.raises(InputError, match="'east', there was 'room 1', and the next time"):
        second.step("east")


@pytest.mark.parametrize("fails_at", [2, 3, 4])
def test_after_an_action_that_did_not_return_others_see_what_is_true(fails_at: int):
    """The real environment has moved, and who has it next must not take it for where it was."""

    class Interrupted(_Counted):
        def step(self, action: str) -> Transition:
            done = super().step(action)
            if _Counted.num_asked == fails_at:
                raise KeyboardInterrupt
            return done

    environments = Environments()
    first = environments.enter("a", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        _go(first, "east", "east", "west", "east")
    first.close()
    second = environments.enter("a", Interrupted)
    second.reset()
    seen = [second.step(action).observation.state for action in ("east", "east", "west", "east")]
    assert seen == ["room 1", "room 2", "room 1", "room 2"]


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 30))
def test_interleaved_rollouts_see_what_each_would_see_alone(
    seed: int, max_open: int, max_transitions: int
):
    rng = random.Random(seed)
    environments = Environments(max_open=max_open, max_transitions=max_transitions)
    pairs: list[tuple[Environment, Corridor]] = []
    opened: Callable[[], _Counted] = lambda: _Counted(num_rooms=9)  # noqa: E731
    for _ in range(60):
        if not pairs or rng.random() < 0.1:
            pairs.append((environments.enter(rng.choice("ab"), opened), opened()))
        walk, alone = rng.choice(pairs)
        if rng.random() < 0.1:
            assert walk.reset() == alone.reset()
        else:
            action = rng.choice(("east", "west", "fly"))
            assert walk.step(action) == alone.step(action)
        if rng.random() < 0.05:
            walk.close()
            pairs.remove((walk, alone))
