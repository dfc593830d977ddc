"""Results of the runs, iteration by iteration, from their folders or from a kept table.

The table is `<setting>.parquet`, with one row for each iteration of each finished run. It is much
smaller than the folders, so it can be shared. A run in the table need not be made again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from experiments.textworld.cells import Cell, warm_start
from experiments.textworld.curves import area
from experiments.textworld.settings import SETTINGS, is_played_beside
from graphcredit.credit.estimators.table import estimator_named
from graphcredit.store import open_store
from graphcredit.store.sql.catalog import connect

KEPT = Path(__file__).parent / "kept"
"""Tables of the runs that the documentation shows."""

_KEY = ("setting", "arm", "learning_rate", "kl_coefficient", "warm", "seed")

_RETIRED = {"analogy": 2}
"""Version of the formula of estimators that only kept tables know."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """All finished runs of one setting, made here or kept."""

    out: Path
    """Directory in which each run has a folder."""
    kept: Path | None = None
    """Directory of tables of earlier runs."""
    _kept: dict[str, pl.DataFrame] = field(default_factory=dict, init=False)

    def of(self, cell: Cell) -> pl.DataFrame | None:
        """Return a row for each iteration of a run, or None if it is not done.

        Iterations beyond the budget are left out. `env_steps` and `seconds` count up to the start
        of the iteration, so they belong to the policy of its success rate. Seconds are those of
        one busy core. If success is measured in separate plays, it is null where there were none.
        """
        run = self.made(cell)
        return self.kept_of(cell) if run is None else run

    def made(self, cell: Cell) -> pl.DataFrame | None:
        """Return the rows as `of` does, if the run was made here."""
        rows = _rows(self.out, cell)
        if not any(_ends(row, cell) for row in rows):
            return None
        run = pl.DataFrame(rows, infer_schema_length=None)
        return run.filter(pl.col("env_steps") < cell.budget)

    def kept_of(self, cell: Cell) -> pl.DataFrame | None:
        """Return the rows as `of` does, if the kept run spent today's budget."""
        kept = self._table(cell.setting)
        if kept is None:
            return None
        rows = kept.filter(*[pl.col(name) == getattr(cell, name) for name in _KEY])
        if not any(_ends(row, cell) for row in rows.iter_rows(named=True)):
            return None
        return rows.filter(pl.col("env_steps") < cell.budget)

    def done(self, cells: Iterable[Cell]) -> pl.DataFrame:
        """Return the rows of the finished runs of a list."""
        runs = [run for cell in cells if (run := self.of(cell)) is not None]
        return pl.concat(runs, how="diagonal_relaxed") if runs else pl.DataFrame()

    def table(self, setting: str, cells: Iterable[Cell]) -> pl.DataFrame:
        """Return the rows of all runs of a setting: made here, or else kept."""
        kept = self._table(setting)
        made = [run for cell in cells if (run := self.made(cell)) is not None]
        tables = [*made] if kept is None else [*made, *_without(kept, made)]
        return pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()

    def strangers(self, setting: str) -> list[int]:
        """Return the warm policies whose weights differ between the kept runs and the runs in OUT.

        Arithmetic differs between kinds of machines, and so do the weights that they learn.
        Compared runs must begin from the same weights.
        """
        kept = self._table(setting)
        if kept is None:
            return []
        began = kept.select("warm", "warm_model").unique().sort("warm").rows()
        return [
            number
            for number, weights in began
            if weights_path(self.out, setting, number).exists()
            and weights != _fingerprint(self.out, setting, number)
        ]

    def _table(self, setting: str) -> pl.DataFrame | None:
        path = self.kept and self.kept / f"{setting}.parquet"
        if not path or not path.exists():
            return None
        if setting not in self._kept:
            table = pl.read_parquet(path)
            if "formula" not in table.columns:  # at first, every formula had its first version
                table = table.with_columns(pl.lit(1).alias("formula"))
            self._kept[setting] = table
        return self._kept[setting]


def _ends(row: Mapping[str, Any], cell: Cell) -> bool:
    return cell.is_done(row["iteration"], row["env_steps"] + row["num_env_steps"])


def _without(kept: pl.DataFrame, made: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return the kept runs that were not made again."""
    if not made:
        return [kept]
    again = pl.concat([run.select(_KEY) for run in made]).unique()
    return [kept.join(again, on=_KEY, how="anti")]


def _rows(out: Path, cell: Cell) -> list[dict[str, Any]]:
    path = out / cell.name / "loop.jsonl"
    if not path.exists():
        return []
    rows: list[dict[str, Any]] = []
    steps, seconds = 0, 0.0
    made_with = {
        "formula": _version(cell.estimator),
        "warm_model": _fingerprint(out, cell.setting, cell.warm),
    }
    signal = signals(out / cell.name / "store", cell.estimator)
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        rows.append(
            {
                **asdict(cell),
                **{name: value for name, value in line.items() if not isinstance(value, dict)},
                **signal.get(line["iteration"], {}),
                **made_with,
                "success_rate": success_of(line, cell),
                "env_steps": steps,
                "seconds": seconds,
                "num_env_steps": line["env_steps"] - steps,
            }
        )
        steps = line["env_steps"]
        seconds += line.get("cpu_seconds", 0.0)
    return rows


_SIGNALS = """
    SELECT iteration,
           avg(state_group_size) AS state_group_size,
           avg((state_group_size = 1)::DOUBLE) AS alone_share,
           avg(is_degenerate_group::DOUBLE) AS degenerate_share,
           avg(({advantage} = 0)::DOUBLE) AS zero_share
    FROM credit GROUP BY iteration
"""


def signals(store: Path, estimator: str) -> dict[int, dict[str, float | None]]:
    """Return what each iteration of a run offered to training; empty without a store.

    They are the mean number of steps in a step's state group, and the shares of steps that are
    alone in theirs, that are in groups whose returns are all equal, and whose advantage is 0.
    """
    if not (store / "store.json").exists():
        return {}
    query = _SIGNALS.format(advantage=f"{estimator}_advantage")
    with closing(connect(open_store(store))) as connection:
        rows = pl.DataFrame(connection.sql(query).to_arrow_table()).rows(named=True)
    return {int(row.pop("iteration")): row for row in rows}


def success_of(line: Mapping[str, Any], cell: Cell) -> float | None:
    """Return the success rate of an iteration's policy, or None if it was not measured.

    Args:
        line: A line of `loop.jsonl`.
        cell: Its run.
    """
    is_beside = is_played_beside(cell.arm)
    return line.get("sampled_training_success_rate" if is_beside else "success_rate")


def older_formulas(runs: Runs, cells: Iterable[Cell]) -> list[str]:
    """Return the arms with a run whose advantages come from an older version of the formula."""
    return sorted(
        {
            cell.arm
            for cell in cells
            if (run := runs.of(cell)) is not None
            and set(run["formula"]) != {_version(cell.estimator)}
        }
    )


def _version(estimator: str) -> int:
    """Return the version of a formula; the last one of those that the program has no more."""
    return _RETIRED.get(estimator) or estimator_named(estimator).version


def mean_success(run: pl.DataFrame, cell: Cell) -> float:
    """Return the mean height of a run's learning curve over its budget.

    In one pass, no game was learnt from before it is played: it is the mean over the iterations.

    Args:
        run: A row for each iteration.
        cell: The run.
    """
    played = run.drop_nulls("success_rate")
    if SETTINGS[cell.setting].one_pass:
        return float(played["success_rate"].to_numpy().mean())
    window = SETTINGS[cell.setting].window
    return area(played["env_steps"], played["success_rate"], cell.budget, window)


def weights_path(out: Path, setting: str, number: int) -> Path:
    """Return the path of the weights of a warm policy."""
    return warm_start(out, setting, number) / "model" / "model.safetensors"


def _fingerprint(out: Path, setting: str, number: int) -> str:
    """Return the fingerprint of the weights of a warm policy."""
    return hashlib.sha256(weights_path(out, setting, number).read_bytes()).hexdigest()[:16]
