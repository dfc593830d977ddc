"""What the runs came to: tables, a plot, and the table of all iterations, to keep.

    python -m experiments.textworld.report --setting easy --out runs

Runs that are not done yet are left out and counted; those that are only in what was kept before are
in. Needs the extra `experiments`.
"""

import argparse
from pathlib import Path

import polars as pl

from experiments.textworld.markdown import markdown
from experiments.textworld.plot import plot
from experiments.textworld.run import tuned
from experiments.textworld.runs import Runs
from experiments.textworld.settings import (
    SETTINGS,
    repeats,
    sweep,
    sweep_rates,
    variants,
)
from experiments.textworld.tables import (
    arms_table,
    health_table,
    held_out_table,
    sweep_table,
    variants_table,
)
from graphcredit.store.atomic import atomic_path

KEPT = Path(__file__).parent / "kept"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, default=KEPT, help="where tables and plots go")
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    runs = Runs(out=options.out, kept=options.kept)
    best = tuned(runs, setting.name)
    swept = [*sweep(setting.name), *sweep_rates(setting.name, best)] if setting.sweep_budget else []
    wanted = repeats(setting.name, best)
    explaining = variants(setting.name, best)
    done, explained = runs.done(wanted), runs.done(explaining)
    options.kept.mkdir(parents=True, exist_ok=True)
    if swept:
        found = {cell: run for cell in swept if (run := runs.of(cell)) is not None}
        print(f"{len(found)} of {len(swept)} runs of the sweep are done\n")
        print(markdown(sweep_table(found)))
    num_done = done.select("arm", "seed").n_unique() if len(done) else 0
    print(f"{num_done} of {len(wanted)} repeats are done\n")
    with atomic_path(options.kept / f"{setting.name}.parquet") as path:
        runs.done([*swept, *wanted, *explaining]).write_parquet(path)
    if num_done:
        both = pl.concat([done, explained], how="diagonal_relaxed")
        print(markdown(arms_table(done, setting, best)))
        print(markdown(variants_table(both, setting)))
        print(markdown(health_table(both)))
        if setting.held_out:
            print(markdown(held_out_table(done)))
        plot(done, setting, options.kept / f"{setting.name}.png")


if __name__ == "__main__":
    main()
