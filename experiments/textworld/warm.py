"""The policies that all runs begin from: copied from those that are kept, or made by imitation.

    python -m experiments.textworld.warm --setting hard --out runs

makes those of a setting that are not kept yet, and keeps them. Arithmetic differs between kinds of
machines, and so do the weights that they learn; runs that are compared must begin from the same. So
the weights are part of the experiment, in bfloat16, as published models are.
"""

import argparse
import shutil
from pathlib import Path

from experiments.textworld.device import use_device
from experiments.textworld.settings import SETTINGS, warm_start
from graphcredit.loop.warmup import WarmupOptions, run_warmup
from graphcredit.store.files.atomic import atomic_directory
from graphcredit.store.files.lock import alone_in
from graphcredit.trainer.model.export import save_model
from graphcredit.trainer.model.loading import load_weights

KEPT_WARM = Path(__file__).parent / "kept" / "warm"
"""A directory of each policy, `<setting>-<number>`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", choices=list(SETTINGS), required=True)
    parser.add_argument("--out", type=Path, required=True, help="where they are made")
    parser.add_argument("--keep", type=Path, default=KEPT_WARM, help="where they are kept")
    options = parser.parse_args()
    use_device("cpu")
    made = options.out / "imitated"  # runs in OUT begin from what is kept
    for number in range(SETTINGS[options.setting].warm_starts):
        if not (options.keep / f"{options.setting}-{number}").exists():
            imitate(made, options.setting, number)
            keep(made, options.setting, number, options.keep)


def make_warm(out: Path, name: str, number: int, *, kept: Path = KEPT_WARM) -> None:
    """Put a warm policy where runs find it, if it is not there.

    Args:
        out: Where all runs and warm starts are.
        name: The setting.
        number: Of the policy.
        kept: Where policies are kept; one that is not there is made.

    Raises:
        InputError: Another process does the same.
    """
    source = kept / f"{name}-{number}"
    if not source.exists():
        imitate(out, name, number)
        return
    model = warm_start(out, name, number) / "model"
    refusal = f"{model} must be put there by one process, but another process does so: try again"
    with alone_in(model.parent, refusal):
        if not model.exists():
            with atomic_directory(model) as directory:
                shutil.copytree(source, directory, dirs_exist_ok=True)


def imitate(out: Path, name: str, number: int) -> None:
    """Make a warm policy, if it is not there: it imitates random play of a setting's games."""
    setting = SETTINGS[name]
    games = (*setting.games, *setting.held_out)
    plan = WarmupOptions(
        directory=warm_start(out, name, number),
        env="textworld",
        games=setting.specs(games),
        tasks=len(games),
        episodes=setting.episodes // len(games),
        max_steps=setting.max_steps,
        steps=setting.updates,
        seed=number,
        workers=0,
    )
    run_warmup(plan, on_progress=lambda what, done, total, note: None)


def keep(out: Path, name: str, number: int, kept: Path) -> None:
    """Keep a warm policy that was made.

    Args:
        out: Where it was made.
        name: The setting.
        number: Of the policy.
        kept: Where it is kept.
    """
    source = warm_start(out, name, number) / "model"
    model = load_weights(source)
    kept.mkdir(parents=True, exist_ok=True)
    save_model(kept / f"{name}-{number}", model, model.state_dict(), source, dtype="bfloat16")


if __name__ == "__main__":
    main()
