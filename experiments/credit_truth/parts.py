"""Files of rows that are made once, in several processes, and kept for the next run."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import polars as pl
import pyarrow.parquet as pq

from graphcredit.store.files.tables import write_table

Job = TypeVar("Job")

_MADE_BY = b"credit_truth.made_by"


def rows_at(path: Path, mark: str, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of a file; make and write them if it is missing or has another mark.

    Args:
        path: Path of the Parquet file.
        mark: All that determines the rows but the code.
        make: Returns the rows.
    """
    if path.exists() and (pq.read_schema(path).metadata or {}).get(_MADE_BY) == mark.encode():
        return pl.read_parquet(path)
    rows = make()
    write_table(rows.to_arrow().replace_schema_metadata({_MADE_BY: mark}), path)
    return rows


def in_processes(
    do: Callable[[Path, Job], pl.DataFrame], folder: Path, jobs: Sequence[Job], num_workers: int
) -> pl.DataFrame:
    """Return the rows of all jobs, in their order, whichever process finishes first."""
    with ProcessPoolExecutor(num_workers, mp_context=get_context("spawn")) as pool:
        found = [pool.submit(do, folder, job) for job in jobs]
        for done, _ in enumerate(as_completed(found), 1):
            if done % 10 == 0 or done == len(jobs):
                print(f"{folder.name}: {done} of {len(jobs)}", flush=True)
        return pl.concat([future.result() for future in found])
