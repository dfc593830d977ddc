"""Times `graphcredit import` beside parsing the same lines with orjson and writing its Parquet.

    python -m benchmarks.importing --megabytes 100 --repeats 3

A log has rollouts of 20 turns: a tool call and its result. `short` results have 200 characters,
`long` ones 3,000. Their words are drawn by Zipf's law, so they compress about as text does. Each
run is a process; the least of each figure counts. The import has all default options, and its
start-up counts. `cpu` are the seconds of all cores that it takes; `floor` are those of `orjson` for
every line and of the store's own writer for the table that the import made, and nothing else.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.machine import Run, describe, run_graphcredit, run_python

TURNS, GROUP_SIZE = 20, 8
LENGTHS = {"short": 200, "long": 3000}

_FLOOR = """
import sys, time, orjson, pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path
from graphcredit.store.files.tables import write_table
log, store = map(Path, sys.argv[1:])
shards = sorted(store.glob("steps/**/*.parquet"))
tables = [pq.ParquetFile(shard).read() for shard in shards]
start = time.process_time()
with log.open("rb") as lines:
    for line in lines:
        orjson.loads(line)
parsed = time.process_time()
for number, table in enumerate(tables):
    write_table(table, store / f"floor-{number}.parquet")
print(parsed - start, time.process_time() - parsed)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100])
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    print(f"{describe()}, best of {options.repeats}")
    print(
        f"{'results':<9}{'MB':>6}{'s':>8}{'MB/s':>8}{'cpu':>8}{'parse':>8}{'write':>8}"
        f"{'cpu/floor':>11}{'again':>8}{'peak MiB':>10}"
    )
    for results, length in LENGTHS.items():
        for megabytes in options.megabytes:
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / "log.jsonl"
                with log.open("w", encoding="utf-8") as file:
                    file.writelines(rollouts(length, megabytes * 1_000_000))
                print(f"{results:<9}{_timed(log, options.repeats)}", flush=True)


def _timed(log: Path, repeats: int) -> str:
    size = log.stat().st_size / 1e6
    first: list[Run] = []
    again: list[float] = []
    floors: list[list[float]] = []
    for number in range(repeats):
        store = log.with_name(f"store-{number}")
        first.append(run_graphcredit("import", log, store))
        again.append(run_graphcredit("import", log, store).seconds)
        floors.append(
            [float(part) for part in run_python("-c", _FLOOR, log, store).printed.split()]
        )
    seconds, cpu = min(run.seconds for run in first), min(run.cpu for run in first)
    parse, write = map(min, zip(*floors, strict=True))
    return (
        f"{size:>6.0f}{seconds:>8.2f}{size / seconds:>8.0f}{cpu:>8.2f}{parse:>8.2f}{write:>8.2f}"
        f"{cpu / (parse + write):>11.2f}{size / min(again):>8.0f}"
        f"{max(run.mebibytes for run in first):>10.0f}"
    )


def rollouts(length: int, num_bytes: int) -> Iterator[str]:
    """Yield lines of so many bytes in all, with tool results of so many characters."""
    letters = random.Random(0)
    alphabet = "etaoinshrdlcumwfgypbvk"
    words = ["".join(letters.choices(alphabet, k=letters.randint(2, 9))) for _ in range(5000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))

    def text(num_characters: int) -> str:
        return " ".join(letters.choices(words, cum_weights=weights, k=num_characters // 6))

    number = 0
    while num_bytes > 0:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": text(300)},
            {"role": "user", "content": text(length)},
        ]
        for turn in range(TURNS):
            arguments = json.dumps({"query": text(24), "page": turn})
            function = {"name": "search", "arguments": arguments}
            call = {"id": f"call-{turn}", "type": "function", "function": function}
            said = text(60) if turn % 2 else None
            messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text(length)})
        group, trial = divmod(number, GROUP_SIZE)
        row = {"task_id": f"t{group}", "trial": trial, "messages": messages, "reward": trial % 2}
        line = f"{json.dumps(row)}\n"
        num_bytes -= len(line)
        number += 1
        yield line


if __name__ == "__main__":
    main()
