"""Report the results of the runs: tables, a plot, and a Parquet file of all iterations.

    python -m experiments.textworld.report --setting easy --out runs
    python -m experiments.textworld.report --out runs --save experiments/textworld/kept

Unfinished runs are left out and counted; of `unseen`, so are pairs that are not whole. Runs that
are only in the kept tables are included, unless they began from other weights than the runs in OUT.
It needs the extra `experiments`.
"""

import argparse
from pathlib import Path

import polars as pl

from experiments.markdown import frame
from experiments.textworld.cells import repeats, sweep, sweep_rates, variants
from experiments.textworld.plot import plot
from experiments.textworld.run import tuned
from experiments.textworld.runs import KEPT, Runs, older_formulas
from experiments.textworld.settings import SETTINGS
from experiments.textworld.tables import (
    BASELINE,
    arms_table,
    health_table,
    held_out_table,
    sweep_table,
    variants_table,
)
from experiments.textworld.unseen import unseen_report, without_half_pairs
from graphcredit.store.files.atomic import atomic_path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--kept", type=Path, default=KEPT, help="directory of kept tables")
    parser.add_argument("--baseline", default=BASELINE, help="arm to compare others with")
    parser.add_argument("--save", type=Path, help="directory for table and plot (OUT)")
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    runs = Runs(out=options.out, kept=options.kept)
    best = tuned(runs, setting.name)
    if not best:
        parser.error("no run of the sweep is done, neither in OUT nor in KEPT")
    save = options.save or options.out
    if strangers := runs.strangers(setting.name):
        if save.resolve() == options.kept.resolve():
            parser.error(
                f"--save must not be --kept, {options.kept}: its runs would be lost, because they "
                f"began from other weights than warm policies {strangers} in {options.out}"
            )
        print(
            f"the kept runs are left out: in {options.out}, warm policies {strangers} have other "
            "weights than those at the start of the kept runs\n"
        )
        runs = Runs(out=options.out)
    for arm in setting.arms:
        if arm not in best:
            print(f"{arm}: no run of the sweep is done\n")
    swept = [*sweep(setting.name), *sweep_rates(setting.name, best)]
    swept, wanted = (
        [c for c in cells if c.arm not in setting.retired or runs.of(c) is not None]
        for cells in (swept, repeats(setting.name, best))
    )
    explaining = variants(setting.name, best)
    table = runs.table(setting.name, [*swept, *wanted, *explaining])
    done, explained = runs.done(wanted), runs.done(explaining)
    arms_done = done["arm"].unique().to_list() if len(done) else []
    if options.baseline not in {BASELINE, *arms_done}:
        parser.error(f"--baseline must have a run that is done: {', '.join(arms_done) or 'none'}")
    swept_runs = {cell: run for cell in swept if (run := runs.of(cell)) is not None}
    print(f"{len(swept_runs)} of {len(swept)} runs of the sweep are done\n")
    if swept_runs:
        print(frame(sweep_table(swept_runs)))
    for arm in older_formulas(runs, [*swept, *wanted, *explaining]):
        print(f"{arm}: made by an older version of its formula, see docs/store.md\n")
    num_done = done.select("arm", "seed").n_unique() if len(done) else 0
    print(f"{num_done} of {len(wanted)} repeats are done\n")
    if setting.one_pass:
        print(unseen_report(done, setting, best))
        table = without_half_pairs(table, setting)
    elif num_done:
        both = pl.concat([done, explained], how="diagonal_relaxed")
        print(frame(arms_table(done, setting, best, options.baseline)))
        if len(explained):
            print(frame(variants_table(both, setting)))
        print(frame(health_table(both, setting)))
        if setting.held_out:
            print(frame(held_out_table(done, setting, options.baseline)))
    save.mkdir(parents=True, exist_ok=True)
    if len(table):
        with atomic_path(save / f"{setting.name}.parquet") as path:
            table.write_parquet(path)
    if num_done and not setting.one_pass:
        plot(done, setting, save / f"{setting.name}.png")


if __name__ == "__main__":
    main()
