"""Warm policies, from which all runs begin: copied from the kept ones, or made by imitation.

Arithmetic differs between kinds of machines, and so do the weights that they learn. Compared runs
must begin from the same weights; kept ones are bfloat16, like published models.
"""

import shutil
from pathlib import Path

from experiments.textworld.cells import warm_start
from experiments.textworld.settings import SETTINGS
from graphcredit.loop.warmup import WarmupOptions, run_warmup
from graphcredit.store.files.atomic import atomic_directory
from graphcredit.store.files.lock import alone_in
from graphcredit.store.progress import silent

KEPT_WARM = Path(__file__).parent / "kept" / "warm"
"""Directory of the kept policies, each in `<setting>-<number>`."""


def make_warm(out: Path, name: str, number: int, *, kept: Path = KEPT_WARM) -> None:
    """Provide a warm policy for the runs: copy the kept one, or make it. Keep an existing one.

    Args:
        out: Directory of all runs and warm starts.
        name: Name of the setting.
        number: Number of the policy.
        kept: Directory of kept policies; a missing one is made.

    Raises:
        InputError: Another process is providing it.
    """
    source = kept / f"{name}-{number}"
    if not source.exists():
        imitate(out, name, number)
        return
    model = warm_start(out, name, number) / "model"
    refusal = f"{model} must be written by one process, but another process does so: try again"
    with alone_in(model.parent, refusal):
        if not model.exists():
            with atomic_directory(model) as directory:
                shutil.copytree(source, directory, dirs_exist_ok=True)


def imitate(out: Path, name: str, number: int) -> None:
    """Make a warm policy that imitates random play of a setting's games, unless it exists."""
    setting = SETTINGS[name]
    games = (*setting.games, *setting.held_out)
    plan = WarmupOptions(
        directory=warm_start(out, name, number),
        env="textworld",
        games=setting.specs(games),
        tasks=len(games),
        episodes=setting.episodes // len(games),
        max_steps=setting.max_steps,
        vocabulary=setting.vocabulary,
        steps=setting.updates,
        seed=number,
        workers=0,
    )
    run_warmup(plan, on_progress=silent, with_own_play=False)
