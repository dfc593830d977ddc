"""Reads step columns and writes float32 columns: the least time of any credit stage.

    python -m benchmarks.floor STORE TARGET COLUMN,COLUMN,… NUM_FLOATS

It prints its seconds, without the start-up of Python.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def main() -> None:
    """Run with the arguments of the command line."""
    store, target, columns, num_floats = sys.argv[1:]
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for path in sorted(Path(store).glob("steps/*/*/*.parquet")):
        table = pq.ParquetFile(path).read(columns=columns.split(","))
        floats = rng.random((int(num_floats), table.num_rows), np.float32)
        out = pa.table({str(number): column for number, column in enumerate(floats)})
        pq.write_table(
            out,
            Path(target) / f"{path.parent.name}-{path.name}",
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
        )
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
