"""Check that the oracle's plan is the shortest, by searching for a shorter one.

    python -m experiments.credit_quality.oracle

The search starts at the beginning of every game and after some random actions. It tries all plans
shorter than the oracle's on the game's logic, breadth first, up to a budget of states. Each kind of
game has a row: the number of states without a shorter plan, the number with one, and how much
shorter it is.
"""

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from textworld.generator.game import Game, GameProgression
from textworld.generator.inform7 import Inform7Game
from textworld.logic import Action, Rule, State

from experiments.credit_quality.games import GAMES, by_kind
from graphcredit.collector.collection import default_cache_dir
from graphcredit.collector.environments.textworld.games import parse_game
from graphcredit.collector.environments.textworld.make_games import game_file
from graphcredit.collector.environments.textworld.walkthrough import without_detours

WALKS: tuple[int, ...] = (0, 4, 8)
"""Random actions before a state is examined."""
BUDGET = 3_000
"""States that a search may expand."""

_IDLE = ("look", "inventory", "examine")


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Result of the search from one state."""

    distance: int
    """Actions of the oracle's plan."""
    shortest: int | None
    """Actions of the shortest plan; None if the budget did not suffice."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", choices=list(GAMES), default="development")
    options = parser.parse_args()
    print("| kind | states | no shorter plan | a shorter plan | by, mean | not decided |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, games in by_kind(GAMES[options.games]["textworld"]).items():
        found = [verdict for game in games for verdict in examine(game)]
        gaps = [v.distance - v.shortest for v in found if v.shortest is not None]
        shorter = [gap for gap in gaps if gap]
        mean = f"{sum(shorter) / len(shorter):.1f}" if shorter else "–"
        print(
            f"| {kind} | {len(found)} | {len(gaps) - len(shorter)} | {len(shorter)} | {mean} "
            f"| {len(found) - len(gaps)} |",
            flush=True,
        )


def examine(name: str, cache_dir: Path | None = None) -> Iterator[Verdict]:
    """Yield a verdict on each examined state of a game.

    Args:
        name: Full name of the game.
        cache_dir: Where games are kept; the user's cache by default.
    """
    path = game_file(parse_game(name), cache_dir or default_cache_dir())
    game = Game.load(str(path.with_suffix(".json")))
    for length in WALKS:
        progress = _walked(game, length, random.Random(f"{name} {length}"))
        if progress is not None:
            yield _verdict(game, progress)


def _walked(game: Game, length: int, rng: random.Random) -> GameProgression | None:
    """Return a game after some random actions; None if they ended it."""
    progress = GameProgression(game)
    for _ in range(length):
        actions = [a for a in progress.valid_actions if not a.name.startswith(_IDLE)]
        progress.update(rng.choice(sorted(actions, key=str)))
        if progress.done:
            return None
    return progress


def _verdict(game: Game, progress: GameProgression) -> Verdict:
    actions = progress.winning_policy
    assert actions is not None  # A finished game was left out before.
    commands = Inform7Game(game).gen_commands_from_actions(actions)
    distance = len(without_detours(commands, actions, progress.state.facts))
    shortest, is_decided = _shortest(game, progress, below=distance)
    return Verdict(distance=distance, shortest=shortest if is_decided else None)


def _shortest(game: Game, progress: GameProgression, *, below: int) -> tuple[int, bool]:
    """Return the length of the shortest plan, `below` if none is shorter, and whether it is sure.

    A plan leads to the facts that complete the last quest. It counts if it wins the game.
    """
    rules = [rule for rule in game.kb.rules.values() if not rule.name.startswith(_IDLE)]
    goal = set(game.quests[-1].win_events[0].condition.preconditions)
    layer: list[tuple[State, tuple[Action, ...]]] = [(progress.state, ())]
    seen = {frozenset(progress.state.facts)}
    budget = BUDGET
    for length in range(1, below):
        following: list[tuple[State, tuple[Action, ...]]] = []
        for state, plan in layer:
            budget -= 1
            if budget < 0:
                return below, False
            for child, action in _children(state, rules):
                facts = frozenset(child.facts)
                if goal <= facts and _wins(progress, (*plan, action)):
                    return length, True
                if facts not in seen:
                    seen.add(facts)
                    following.append((child, (*plan, action)))
        layer = following
    return below, True


def _children(state: State, rules: list[Rule]) -> Iterator[tuple[State, Action]]:
    for action in state.all_applicable_actions(rules):
        child = state.copy()
        child.apply(action)
        yield child, action


def _wins(progress: GameProgression, plan: tuple[Action, ...]) -> bool:
    played = progress.copy()
    for action in plan:
        played.update(action)
    return played.completed and not played.failed


if __name__ == "__main__":
    main()
