"""Times `--merge embedding --embedder ngram` on 100,000 distinct states of 300 characters.

    python -m benchmarks.ngram [--steps 1000000]

A group has 40 states of random letters. No two are similar, so every comparison is made.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.machine import describe
from benchmarks.synthetic import write_log
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.complete import COLUMNS
from graphcredit.store import open_store, read_steps


def main() -> None:
    """Print a row for the exact merge and a row for ngram."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder) / "store", arguments.steps)
        steps = read_steps(open_store(Path(folder) / "store"), columns=COLUMNS)
        table = pa.concat_tables(steps)
    ngram = MergeSettings(merge="embedding", embedder="ngram", guard=False)
    print(f"{'merge':>8} {'texts':>8} {'states':>8} {'seconds':>8}")
    for name, settings in (("exact", MergeSettings()), ("ngram", ngram)):
        start = time.perf_counter()
        merged = assemble(table, merger=open_merger(settings).learn([table])).merged
        seconds = time.perf_counter() - start
        print(f"{name:>8} {merged.num_texts:>8,} {merged.num_states:>8,} {seconds:>8.1f}")


if __name__ == "__main__":
    main()
