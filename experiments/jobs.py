"""Rows of jobs that are made once, in several processes, and kept for the next run."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl
import pyarrow.parquet as pq

from graphcredit.store.files.tables import write_table

_MADE_BY = b"experiments.made_by"


class Named(Protocol):
    """A job."""

    @property
    def name(self) -> str:
        """Name of its file of rows."""
        ...


Job = TypeVar("Job", bound=Named)


def made(
    folder: Path | None,
    jobs: Sequence[Job],
    make: Callable[[Job], pl.DataFrame],
    made_by: Callable[[Job], str],
    num_workers: int,
) -> pl.DataFrame:
    """Return the rows of all jobs, in their order; make and write those that are missing.

    Args:
        folder: Folder of a Parquet file for each job; None to keep nothing.
        jobs: The jobs.
        make: Returns the rows of a job; a function of a module, for other processes.
        made_by: Returns all that determines the rows of a job but the code. A file that was made
            otherwise is made again.
        num_workers: Processes at a time.
    """
    with ProcessPoolExecutor(num_workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_rows, folder, job, make, made_by) for job in jobs]
        for done, _ in enumerate(as_completed(futures), 1):
            if done % 10 == 0 or done == len(jobs):
                of = f"{folder.name}: " if folder else ""
                print(f"{of}{done} of {len(jobs)}", file=sys.stderr, flush=True)
        return pl.concat([future.result() for future in futures])


def _rows(
    folder: Path | None,
    job: Job,
    make: Callable[[Job], pl.DataFrame],
    made_by: Callable[[Job], str],
) -> pl.DataFrame:
    if folder is None:
        return make(job)
    path, mark = folder / f"{job.name}.parquet", made_by(job)
    if path.exists() and (pq.read_schema(path).metadata or {}).get(_MADE_BY) == mark.encode():
        return pl.read_parquet(path)
    rows = make(job)
    write_table(rows.to_arrow().replace_schema_metadata({_MADE_BY: mark}), path)
    return rows
