"""Run cells of the experiment for some seconds, and say what is missing.

    python -m experiments.language_model.run lm/taught/model --out lm/cells --seconds 90

A cell stops after the iteration in which the time is over, and the next start goes on with it; so
does one after a kill, or after a card has vanished. A cell that is whole is a row of the results.
"""

import argparse
import importlib.metadata
import platform
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import torch

from experiments.language_model.cells import Cell, Plan
from experiments.language_model.report import missing, tables
from graphcredit.loop.run import run_loop
from graphcredit.store.files.tables import write_table
from graphcredit.trainer.fingerprint import hash_model

RESULTS = Path(__file__).parents[1] / "results" / "language_model.parquet"
_VERSIONS = ("graphcredit", "torch", "transformers", "textworld")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", type=Path, help="the policy to begin with")
    options.add_argument("--out", type=Path, required=True, help="folder of the loops")
    options.add_argument("--seconds", type=float, default=90)
    options.add_argument("--workers", type=int, default=8, help="processes that step games")
    options.add_argument("--results", type=Path, default=RESULTS)
    given = options.parse_args()
    run(Plan(), given.model, given.out, given.results, given.seconds, given.workers)
    print(tables(Plan(), read(given.results)))


def run(
    plan: Plan, model: Path, out: Path, results: Path, seconds: float, workers: int = 0
) -> None:
    """Work on the cells that are missing until the time is over."""
    end = time.perf_counter() + seconds
    start = hash_model(model)[:16]
    for cell in missing(plan, read(results)):
        row = _row(cell, cell.config(model, out, workers), end)
        if row is None:
            return
        made_on = {"model": start, "device": _device(), "versions": _versions()}
        rows = pl.concat(
            [*([read(results)] if results.exists() else []), pl.DataFrame([row | made_on])]
        )
        write_table(rows.to_arrow(), results)
        if time.perf_counter() >= end:
            return


def read(results: Path) -> pl.DataFrame:
    """Return a row for each cell that is whole."""
    return pl.read_parquet(results) if results.exists() else pl.DataFrame()


def _row(cell: Cell, config: Any, end: float) -> dict[str, Any] | None:
    """Run a cell; return what it came to, or None if the time was over before."""
    lines: list[Mapping[str, Any]] = []
    path = config.out / "loop.jsonl"
    num_known = len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
    total = config.iterations * -(-config.collect.tasks // config.update_every)
    with closing(run_loop(config)) as found:
        for line in found:
            lines.append(line)
            if len(lines) <= num_known:
                continue
            print(f"{cell.key}: {dict(line)}", flush=True)
            if len(lines) <= total and time.perf_counter() >= end:
                return None
    unseen = [line["sampled_held_out_success_rate"] for line in (lines[0], lines[-1])]
    names = ("collect", "credit", "train", "evaluate")
    return {
        **cell.key,
        "first": unseen[0],
        "end": unseen[1],
        "during": sum(line["success_rate"] for line in lines[:-1]) / total,
        "env_steps": lines[-1]["env_steps"],
        **{n: sum(line.get(f"{n}_seconds", 0.0) for line in lines) for n in names},
    }


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def _versions() -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS)


if __name__ == "__main__":
    main()
