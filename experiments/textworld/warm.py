"""Warm policies, from which all runs begin: copied from the kept ones, or made by imitation.

    python -m experiments.textworld.warm --setting hard --out runs

makes the warm policies of a setting that are not kept yet, and keeps them. Arithmetic differs
between kinds of machines, and so do the weights that they learn. Compared runs must begin from the
same weights, so the weights are part of the experiment. They are bfloat16, like published models.
"""

import argparse
import shutil
from pathlib import Path

from experiments.textworld.cells import warm_start
from experiments.textworld.device import use_device
from experiments.textworld.settings import SETTINGS
from graphcredit.loop.warmup import WarmupOptions, run_warmup
from graphcredit.store.files.atomic import atomic_directory
from graphcredit.store.files.lock import alone_in
from graphcredit.store.progress import silent
from graphcredit.trainer.model.export import distinct, save_model
from graphcredit.trainer.model.loading import load_weights

KEPT_WARM = Path(__file__).parent / "kept" / "warm"
"""Directory of the kept policies, each in `<setting>-<number>`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", choices=list(SETTINGS), required=True)
    parser.add_argument("--out", type=Path, required=True, help="directory to make them in")
    parser.add_argument("--keep", type=Path, default=KEPT_WARM, help="directory to keep them in")
    options = parser.parse_args()
    use_device("cpu")
    made = options.out / "imitated"  # runs in OUT begin from what is kept
    for number in range(SETTINGS[options.setting].warm_starts):
        if not (options.keep / f"{options.setting}-{number}").exists():
            imitate(made, options.setting, number)
            keep(made, options.setting, number, options.keep)


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


def keep(out: Path, name: str, number: int, kept: Path) -> None:
    """Save a warm policy among the kept ones, in bfloat16.

    Args:
        out: Directory in which it was made.
        name: Name of the setting.
        number: Number of the policy.
        kept: Directory of kept policies.
    """
    source = warm_start(out, name, number) / "model"
    model = load_weights(source)
    kept.mkdir(parents=True, exist_ok=True)
    weights = distinct(model, model.bfloat16().state_dict(keep_vars=True))
    save_model(kept / f"{name}-{number}", model, weights, source)


if __name__ == "__main__":
    main()
