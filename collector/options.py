"""The options of a collection, in groups.

A field is written once. Its type, range, default and docstring are also those of the flag of
`graphcredit collect` and of the key in the loop's `[collect]` table.
"""

from typing import ClassVar, Literal

from graphcredit.store.options import AtLeastOne, Count, Options, PathOption, Weight


class CollectorOptions(Options):
    """Base of the groups."""

    owner: ClassVar[str] = "collect"


class GameOptions(CollectorOptions):
    """Which tasks are played."""

    env: str
    """The environment: textworld, search, sokoban, alfworld."""
    games: str | None = None
    """Kinds of games, with commas: custom, coin-l205-s2, 2hop, 6x6b2, valid_seen, …; by default
    those of the environment."""
    tasks: AtLeastOne = 16
    """Number of tasks."""


class PlayOptions(CollectorOptions):
    """How tasks are played."""

    group_size: AtLeastOne = 8
    """Rollouts of each task."""
    max_steps: AtLeastOne = 30
    """Steps after which a rollout is truncated."""
    seed: Count = 0
    """Decides all chance: actions, and the games where `games` leaves them open."""
    workers: Count = 2
    """Processes that step environments; a language model stays in this one. 0 starts none."""
    concurrency: AtLeastOne | None = None
    """Rollouts that a process plays at a time, or all of them with one model; decides the speed
    alone. By default what suits the policy: 64 with a language model."""
    allocation: Literal["spo3"] | None = None
    """spo3 plays a tree for each group: it branches where history/ says that a state is unresolved.
    By default each rollout is played for itself."""
    oracle: bool = False
    """Record the true remaining plan length, at half the speed."""
    games_dir: PathOption | None = None
    """Directory of games: TextWorld's are generated in it, ALFWorld's are read from it. By
    default the user's cache, and $ALFWORLD_DATA."""


class LanguageOptions(CollectorOptions):
    """How a language model plays."""

    template: str | None = None
    """Prompts of a language model: textworld, search, sokoban, alfworld, tiny, or a TOML file; by
    default those of the environment."""
    temperature: Weight = 1.0
    """Sampling temperature of a language model; 0 takes the most probable token."""
    max_new_tokens: AtLeastOne = 512
    """Tokens after which an answer of a language model is cut off."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of a language model; auto is bfloat16 on a GPU."""


class RecordOptions(CollectorOptions):
    """Who plays, and what the rollouts are recorded as."""

    policy: str
    """Who plays: random, oracle:EPSILON, or a language model: hf:PATH, vllm:PATH, or
    vllm-server:PATH@http://HOST:PORT, by default of this machine, port 8000. tutor:PATH plays at
    random, in the model's tokens."""
    run: str = "r0"
    """The run to record."""
    iteration: Count = 0
    """The iteration to record."""


class CollectOptions(LanguageOptions, PlayOptions, RecordOptions):
    """All options of a collection, but for its tasks."""
