"""Tables of the results of the runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from experiments.textworld.cells import Cell, Tuning
from experiments.textworld.curves import area, first_at, paired_test, smoothed
from experiments.textworld.runs import mean_success
from experiments.textworld.settings import SETTINGS, VARIANTS, Setting, is_played_beside

BASELINE = "grpo"
LEVEL = 0.5
"""Level of success; the table shows the environment steps until it is reached."""

LEAST_PAIRS = 5
"""Fewest pairs for which p is shown: with fewer, p cannot be below 0.1."""

Pair = tuple[int, int]
"""Warm start and seed; runs with the same pair are compared with each other."""

_Curves = dict[Pair, tuple[pl.Series, pl.Series]]
"""Environment steps and success rate of each run."""


def arms_table(
    runs: pl.DataFrame,
    setting: Setting,
    best: Mapping[str, Tuning],
    baseline: str = BASELINE,
) -> pl.DataFrame:
    """Return a row for each arm, the best first.

    A gap is the difference to the baseline's run from the same warm start and seed. With n pairs,
    the smallest possible p is 2 / 2^n. The median gap of more seeds on these warm starts lies
    between the lowest and the highest gap with a confidence of 1 - 2 / 2^n: 97 % for six.

    Args:
        runs: Rows of the finished repeats.
        setting: Setting of the runs.
        best: Tuning of each arm.
        baseline: Arm that others are compared with.
    """
    curves = {str(arm): _curves(own) for (arm,), own in runs.group_by("arm", maintain_order=True)}
    areas = {name: _areas(own, setting) for name, own in curves.items()}
    rows = [
        _row(name, own, setting, best[name]) | _against(baseline, areas, name)
        for name, own in curves.items()
    ]
    rows.sort(key=lambda row: -row["mean success"])
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(name: str, curves: _Curves, setting: Setting, tuning: Tuning) -> dict[str, Any]:
    reached = [first_at(x, y, LEVEL, setting.window) for x, y in curves.values()]
    middle = float(np.median(reached))
    return {
        "arm": name,
        "rate / KL": f"{tuning[0]:g} / {tuning[1]:g}",
        "runs": len(curves),
        "mean success": float(np.mean(list(_areas(curves, setting).values()))),
        "at the end": float(np.mean([smoothed(y, setting.window)[-1] for _, y in curves.values()])),
        f"steps to {LEVEL:.0%}": round(middle) if np.isfinite(middle) else None,
        "reached by": int(np.isfinite(reached).sum()),
    }


def _against(baseline: str, areas: Mapping[str, Mapping[Pair, float]], name: str) -> dict[str, Any]:
    own, others = areas[name], areas.get(baseline, {})
    gaps = [own[pair] - others[pair] for pair in own.keys() & others.keys()]
    if name == baseline:
        gaps = []
    return {
        "pairs": len(gaps) or None,
        f"gap to {baseline}": float(np.mean(gaps)) if gaps else None,
        "lowest to highest": f"{min(gaps):+.3f} to {max(gaps):+.3f}" if len(gaps) > 1 else None,
        "p": paired_test(own, others) if len(gaps) >= LEAST_PAIRS else None,
    }


def variants_table(runs: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Return a row for each variant: its mean success, and that of its arm from the same pairs.

    Args:
        runs: Rows of the finished repeats, of arms and variants.
        setting: Setting of the runs.
    """
    areas = {
        str(arm): _areas(_curves(own), setting)
        for (arm,), own in runs.group_by("arm", maintain_order=True)
    }
    rows: list[dict[str, Any]] = []
    for variant in setting.variants:
        arm = VARIANTS[variant][0]
        both = areas.get(variant, {}).keys() & areas.get(arm, {}).keys()
        pairs = sorted(both, key=lambda pair: pair[1])
        if pairs:
            gaps = [areas[variant][pair] - areas[arm][pair] for pair in pairs]
            rows.append(
                {
                    "variant": variant,
                    "runs": len(pairs),
                    "mean success": float(np.mean([areas[variant][pair] for pair in pairs])),
                    "its arm's": float(np.mean([areas[arm][pair] for pair in pairs])),
                    "differences": ", ".join(f"{gap:+.3f}" for gap in gaps),
                }
            )
    return pl.DataFrame(rows)


def held_out_table(runs: pl.DataFrame, setting: Setting, baseline: str = BASELINE) -> pl.DataFrame:
    """Return the success of each arm on held-out games and on training games.

    On training games, it is averaged over the first and over the last iterations, with the window
    of a learning curve. On held-out games, it is that of the first evaluation, the mean of the last
    two, and the mean over the budget. Gaps are of that mean over the budget.

    Args:
        runs: Rows of the finished repeats, with evaluations.
        setting: Setting of the runs.
        baseline: Arm that others are compared with.
    """
    held_out = "sampled_held_out_success_rate"
    rows: list[dict[str, Any]] = []
    areas: dict[str, dict[Pair, float]] = {}
    by_run = runs.sort("iteration", maintain_order=True).group_by(
        "arm", "warm", "seed", maintain_order=True
    )
    for (arm, warm, seed), run in by_run:
        training, evaluated = run["success_rate"], run.drop_nulls(held_out)
        seen = evaluated[held_out]
        mean = area(evaluated["env_steps"], seen, setting.budget, 1)
        areas.setdefault(str(arm), {})[int(warm), int(seed)] = mean
        rows.append(
            {
                "arm": arm,
                "training, first": training.head(setting.window).mean(),
                "training, last": training.tail(setting.window).mean(),
                "held out, first": seen.first(),
                "held out, last": seen.tail(2).mean(),
                "held out, mean": mean,
            }
        )
    means = (
        pl.DataFrame(rows)
        .group_by("arm", maintain_order=True)
        .agg(pl.len().alias("runs"), pl.exclude("arm").mean())
    )
    gaps = [{"arm": arm} | _against(baseline, areas, arm) for arm in means["arm"]]
    return means.join(pl.DataFrame(gaps, infer_schema_length=None), on="arm", maintain_order="left")


def sweep_table(runs: Mapping[Cell, pl.DataFrame]) -> pl.DataFrame:
    """Return the mean success of every arm with each KL coefficient, then at each other rate.

    Args:
        runs: Rows of each finished run of the sweep.
    """
    rows = [
        {
            "arm": cell.arm,
            "tuning": f"KL {cell.kl_coefficient:g}"
            if cell.learning_rate == SETTINGS[cell.setting].learning_rates[0]
            else f"rate {cell.learning_rate:g}",
            "mean success": mean_success(run, cell),
        }
        for cell, run in runs.items()
    ]
    return pl.DataFrame(rows).pivot(on="tuning", index="arm", values="mean success")


def health_table(runs: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Return how the policies of each arm behave during training, to explain the order of the arms.

    Averages are over all iterations. Columns with `last` average over the last ones, with the
    window of a learning curve. Variants that train after each game are left out: their iteration is
    one game, and branching rollouts are not a sample of the policy's behaviour.

    Args:
        runs: Rows of the finished repeats, of arms and variants.
        setting: Setting of the runs.
    """
    key = ["arm", "warm", "seed"]
    last = pl.col("iteration") > pl.col("iteration").max().over(key) - setting.window
    return (
        runs.filter(~pl.col("arm").is_in([arm for arm in VARIANTS if is_played_beside(arm)]))
        .group_by("arm", maintain_order=True)
        .agg(
            pl.col("valid_share").mean().alias("valid"),
            pl.col("valid_share").filter(last).mean().alias("valid, last"),
            pl.col("entropy").mean(),
            pl.col("entropy").filter(last).mean().alias("entropy, last"),
            pl.col("kl").filter(last).mean().alias("KL, last"),
            pl.col("grad_norm").mean().alias("gradient norm"),
            pl.col("mean_length").filter(last).mean().alias("length, last"),
            pl.col("degenerate_share").mean().alias("groups that agree"),
            pl.col("zero_share").mean().alias("advantage 0"),
            pl.col("state_group_size").mean().alias("state group"),
            pl.col("alone_share").mean().alias("alone"),
            (pl.col("num_updates").sum() / pl.struct(key).n_unique()).alias("updates"),
            (pl.col("cpu_seconds").sum() / pl.struct(key).n_unique()).alias("seconds"),
        )
        .sort("arm")
    )


def _areas(curves: _Curves, setting: Setting) -> dict[Pair, float]:
    return {pair: area(x, y, setting.budget, setting.window) for pair, (x, y) in curves.items()}


def _curves(runs: pl.DataFrame) -> _Curves:
    return {
        (int(warm), int(seed)): (run["env_steps"], run["success_rate"])
        for (warm, seed), run in runs.drop_nulls("success_rate").group_by(
            "warm", "seed", maintain_order=True
        )
    }
