"""What the runs came to: tables, a plot, and the table of all iterations, to keep.

    python -m experiments.textworld.report --setting easy --out runs
    python -m experiments.textworld.report --out runs --save experiments/textworld/kept

Runs that are not done yet are left out and counted. Those that are only in what was kept before are
in, unless they began from other weights than the runs in OUT, or were made on another kind of
device. Needs the extra `experiments`.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from experiments.textworld.markdown import markdown
from experiments.textworld.plot import plot
from experiments.textworld.run import tuned
from experiments.textworld.runs import KEPT, Runs
from experiments.textworld.settings import (
    SETTINGS,
    Tuning,
    repeats,
    sweep,
    sweep_rates,
    variants,
)
from experiments.textworld.tables import (
    BASELINE,
    arms_table,
    health_table,
    held_out_table,
    sweep_table,
    variants_table,
)
from graphcredit.store.atomic import atomic_path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True, help="where runs were made")
    parser.add_argument("--kept", type=Path, default=KEPT, help="tables of runs made before")
    parser.add_argument("--baseline", default=BASELINE, help="the arm to compare others with")
    parser.add_argument("--save", type=Path, help="where table and plot go; OUT if not given")
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    runs = Runs(out=options.out, kept=options.kept)
    best = tuned(runs, setting.name)
    if not best:
        parser.error("no run of the sweep is done, neither in OUT nor in KEPT")
    save = options.save or options.out
    if reason := _incomparable(runs, setting.name, best):
        if save.resolve() == options.kept.resolve():
            parser.error(
                f"--save must not be --kept, {options.kept}, whose runs would be lost: {reason}"
            )
        print(f"the kept runs are left out: {reason}\n")
        runs = Runs(out=options.out)
    for arm in setting.arms:
        if arm not in best:
            print(f"{arm}: no run of the sweep is done\n")
    swept = [*sweep(setting.name), *sweep_rates(setting.name, best)]
    wanted = repeats(setting.name, best)
    explaining = variants(setting.name, best)
    table = runs.table(setting.name, [*swept, *wanted, *explaining])
    done, explained = runs.done(wanted), runs.done(explaining)
    arms_done = done["arm"].unique().to_list() if len(done) else []
    if options.baseline not in {BASELINE, *arms_done}:
        parser.error(f"--baseline must have a run that is done: {', '.join(arms_done) or 'none'}")
    found = {cell: run for cell in swept if (run := runs.of(cell)) is not None}
    print(f"{len(found)} of {len(swept)} runs of the sweep are done\n")
    if found:
        print(markdown(sweep_table(found)))
    num_done = done.select("arm", "seed").n_unique() if len(done) else 0
    print(f"{num_done} of {len(wanted)} repeats are done\n")
    if num_done:
        both = pl.concat([done, explained], how="diagonal_relaxed")
        print(markdown(arms_table(done, setting, best, options.baseline)))
        if len(explained):
            print(markdown(variants_table(both, setting)))
        print(markdown(health_table(both, setting)))
        if setting.held_out:
            print(markdown(held_out_table(done, setting, options.baseline)))
    save.mkdir(parents=True, exist_ok=True)
    if len(table):
        with atomic_path(save / f"{setting.name}.parquet") as path:
            table.write_parquet(path)
    if num_done:
        plot(done, setting, save / f"{setting.name}.png")


def _incomparable(runs: Runs, name: str, best: Mapping[str, Tuning]) -> str | None:
    """Return why kept runs cannot be compared with those that were made here, or None."""
    if strangers := runs.strangers(name):
        return f"warm policies {strangers} in {runs.out} have other weights than theirs"
    devices = runs.devices([*sweep(name), *sweep_rates(name, best), *repeats(name, best)])
    if len(devices) > 1:
        return f"of all runs, some were made on {', and others on '.join(sorted(devices))}"
    return None


if __name__ == "__main__":
    main()
