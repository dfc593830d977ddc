"""Generate TextWorld games, each once: they are cached in a directory under their name.

Importing this file imports TextWorld.
"""

import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import textworld
from textworld.challenges import CHALLENGES
from textworld.generator import QuestGenerationError, compile_game, make_game

from graphcredit.collector.environments.textworld.games import Game
from graphcredit.store.errors import OptionError

_SEED_STRIDE = 1_000_000
_MAX_SEEDS = 20
_SEED_KEY = "generator_seed"

_CHALLENGES = {
    "coin": "tw-coin_collector",
    "treasure": "tw-treasure_hunter",
    "cooking": "tw-cooking",
}


def game_file(game: Game, directory: Path) -> Path:
    """Return the playable file of a game; generate it first if it does not exist.

    Several processes may ask for the same game at the same time: files appear atomically, and
    TextWorld makes the same file from the same seed.

    Args:
        game: The game. If its seed has no quest of the wanted length, the game is made from the
            first of seed + 1,000,000, seed + 2,000,000, … that has one; `generator_seed` returns
            the seed in use.
        directory: The cache, with one folder per TextWorld version.

    Raises:
        OptionError: None of 20 seeds has such a quest.
    """
    folder = directory / f"textworld-{version('textworld')}"
    path = folder / f"{game.name}.z8"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as making:
            made = _generate(game, Path(making) / path.name)
            # The game file comes last: if it exists, so does its description.
            for suffix in (".json", ".z8"):
                os.replace(made.with_suffix(suffix), path.with_suffix(suffix))
    return path


def generator_seed(path: Path) -> int:
    """Return the seed from which a game file was made."""
    description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return description["metadata"][_SEED_KEY]


def _generate(game: Game, path: Path) -> Path:
    for attempt in range(_MAX_SEEDS):
        seed = game.seed + attempt * _SEED_STRIDE
        options = textworld.GameOptions()
        options.seeds = seed
        options.path = str(path)
        try:
            built = _build(game, options)
        except QuestGenerationError:
            continue
        built.metadata[_SEED_KEY] = seed
        compile_game(built, options)
        return path
    raise OptionError(
        f"TextWorld must find a quest for the settings of {game.family}-{game.settings}: none of "
        f"{_MAX_SEEDS} seeds from {game.seed} on has one. Ask for a shorter quest or more rooms."
    )


def _build(game: Game, options: textworld.GameOptions) -> textworld.Game:
    numbers = game.numbers
    if game.family == "custom":
        options.nb_rooms = numbers["r"]
        options.nb_objects = numbers["o"]
        options.quest_length = numbers["q"]
        options.quest_breadth = 1
        options.grammar.only_last_action = bool(numbers["b"])
        return make_game(options)
    _, make, _ = CHALLENGES[_CHALLENGES[game.family]]
    if game.family == "cooking":
        return make(_cooking(numbers, game.seed), options)
    return make({"level": numbers["l"]}, options)


def _cooking(numbers: dict[str, int], seed: int) -> dict[str, object]:
    return {
        "recipe": numbers["r"],
        "take": numbers["t"],
        "go": numbers["g"],
        "open": bool(numbers["o"]),
        "cook": bool(numbers["k"]),
        "cut": bool(numbers["c"]),
        "drop": bool(numbers["d"]),
        "recipe_seed": seed,
        "split": None,
    }
