"""A small world as arrays: every state that its rules can reach, with all transitions.

The policy reads the *view* of a state. What is logged is its *text*: the view, unless a world says
more. Where a text is *own*, it names the rollout too, as an order's number or a date does.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from experiments.episodes import Bools, Floats, Ints

State = TypeVar("State", bound=Hashable)

MAX_STATES = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """A finite-horizon decision process whose player sees a view of the state.

    A state that is over leads to itself. An action that is not admissible does nothing.
    """

    name: str
    horizon: int
    """Steps after which an episode is cut."""
    actions: tuple[str, ...]
    """[num_actions]."""
    views: tuple[str, ...]
    """[num_views] what the player reads."""
    view: Ints
    """[num_states] view of each state."""
    texts: tuple[str, ...]
    """[num_texts] what is logged."""
    text: Ints
    """[num_states] text of each state."""
    is_own: Bools
    """[num_states] whether what is logged names the rollout."""
    starts: Floats
    """[num_tasks, num_states] probability of the first state in each task; groups play the tasks
    in turn. Most worlds are one task."""
    target: Ints
    """[num_states, num_actions, num_outcomes] where an action may lead."""
    probability: Floats
    """[num_states, num_actions, num_outcomes] and how likely; 0 beyond the last outcome."""
    admissible: Bools
    """[num_states, num_actions]."""
    playable: Bools
    """[num_views, num_actions] whether the player may choose an action in a view: if it is
    admissible in some state of the view. Views that end the episode allow everything."""
    is_won: Bools
    """[num_states]."""
    is_over: Bools
    """[num_states] won, or lost for good."""
    score: Floats
    """[num_states] the reward of an episode that ends there; 1 for a win and 0 otherwise, unless
    the world is graded."""

    @property
    def start(self) -> Floats:
        """[num_states] probability of the first state, whatever the task."""
        return self.starts.mean(0)

    @property
    def num_states(self) -> int:
        """Number of states that the rules can reach."""
        return len(self.view)

    @property
    def is_graded(self) -> bool:
        """Whether episodes have scores besides 0 for a loss and 1 for a win."""
        return bool((self.score != self.is_won).any())


def enumerate_world(
    *,
    name: str,
    horizon: int,
    actions: Sequence[str],
    starts: Mapping[State, float],
    outcomes: Callable[[State, str], Mapping[State, float]],
    view: Callable[[State], str],
    end: Callable[[State], bool | None],
    score: Callable[[State], float] | None = None,
    text: Callable[[State], str] | None = None,
    own: Callable[[State], bool] = lambda _: False,
) -> World:
    """Return the world of some rules, with the states that can be reached from a start.

    Args:
        name: Name of the world.
        horizon: Steps after which an episode is cut.
        actions: All actions.
        starts: Probability of each first state.
        outcomes: Returns where an action leads, with probabilities; nothing if not admissible.
        view: Returns what the player sees.
        end: Returns whether the episode is won; None while it goes on.
        score: Returns the reward of an episode that ends in a state; by default whether it is won.
        text: Returns what is logged of a state; by default the view.
        own: Returns whether what is logged of a state names the rollout too.

    Raises:
        ValueError: There are more than `MAX_STATES` states.
    """
    number = {state: place for place, state in enumerate(starts)}
    states, rows = list(starts), list[list[Mapping[State, float]]]()
    for state in states:  # grows while it is read
        over = end(state) is not None
        rows.append([{} if over else _likely(outcomes(state, action)) for action in actions])
        for following in (following for row in rows[-1] for following in row):
            if following not in number:
                number[following] = len(states)
                states.append(following)
        if len(states) > MAX_STATES:
            raise ValueError(f"{name}: a world has at most {MAX_STATES} states; found more")
    target, probability = _transitions(rows, number)
    views, view_of_state = numbered([view(state) for state in states])
    texts, text_of_state = numbered([(text or view)(state) for state in states])
    admissible = np.array([[bool(outcome) for outcome in row] for row in rows])
    ends = [end(state) for state in states]
    is_won = np.array([won is True for won in ends])
    graded = is_won if score is None else np.array([score(state) for state in states])
    return World(
        name=name,
        horizon=horizon,
        actions=tuple(actions),
        views=views,
        view=view_of_state,
        texts=texts,
        text=text_of_state,
        is_own=np.array([own(state) for state in states]),
        starts=np.array([[starts.get(state, 0.0) for state in states]]),
        target=target,
        probability=probability,
        admissible=admissible,
        playable=playable_in(view_of_state, admissible, len(views)),
        is_won=is_won,
        is_over=np.array([won is not None for won in ends]),
        score=graded.astype(np.float64),
    )


def _likely(outcomes: Mapping[State, float]) -> Mapping[State, float]:
    return {state: share for state, share in outcomes.items() if share}


def numbered(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the different texts in order of appearance, and the number of each text."""
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return tuple(number), np.array([number[text] for text in texts])


def playable_in(view: Ints, admissible: Bools, num_views: int) -> Bools:
    playable = np.zeros((num_views, admissible.shape[1]), bool)
    np.logical_or.at(playable, view, admissible)
    return playable | ~playable.any(1, keepdims=True)


def _transitions(
    rows: Sequence[Sequence[Mapping[State, float]]], number: Mapping[State, int]
) -> tuple[Ints, Floats]:
    """Return `World.target` and `World.probability`."""
    width = max(1, max(len(outcome) for row in rows for outcome in row))
    shape = (len(rows), len(rows[0]), width)
    target = np.broadcast_to(np.arange(len(rows))[:, None, None], shape).copy()
    probability = np.zeros(shape)
    probability[:, :, 0] = 1.0
    for place, row in enumerate(rows):
        for action, outcome in enumerate(row):
            if outcome:
                target[place, action, : len(outcome)] = [number[state] for state in outcome]
                probability[place, action, : len(outcome)] = list(outcome.values())
    return target, probability
