"""Times `graphcredit import` beside Polars, which reads the same lines and nothing else.

    python -m benchmarks.importing --megabytes 100 --repeats 3

A log has rollouts of 20 turns: a tool call and its result. `short` results have 200 characters,
`long` ones 3,000. Their words are drawn by Zipf's law, so they compress about as text does. Both
sides are processes of their own, start-up included, and run in turns; the least time counts. The
import has all default options. Peak memory is that of the largest process.

`cpu` are the seconds of all cores that the import takes; other programs on the machine change them
less than the time. Of these, `parse` and `write` are what cannot be left out: to parse each line
with orjson, and to write the shards of the store once more as they are.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import describe

TURNS, GROUP_SIZE = 20, 8
LENGTHS = {"short": 200, "long": 3000}

_POLARS = "import polars, sys; print(polars.scan_ndjson(sys.argv[1]).collect().height)"
_IMPORT = "from graphcredit.cli.main import main; main()"

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100])
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=list(FORMATS))
    options = parser.parse_args()
    print(f"{describe()}, best of {options.repeats}")
    print(
        f"{'format':<14}{'results':<9}{'MB':>6}{'s':>8}{'MB/s':>8}{'again':>8}{'polars':>8}"
        f"{'ratio':>7}{'peak MiB':>10}{'cpu':>7}{'parse':>7}{'write':>7}"
    )
    for name in options.formats:
        for results, length in LENGTHS.items():
            for megabytes in options.megabytes:
                with tempfile.TemporaryDirectory() as folder:
                    _time(Path(folder), name, results, length, megabytes, options.repeats)


def _time(folder: Path, name: str, results: str, length: int, megabytes: int, repeats: int) -> None:
    suffix, write = FORMATS[name]
    log = folder / f"log{suffix}"
    write(log, rows(length, megabytes * 1_000_000))
    size = log.stat().st_size / 1e6
    imports: list[_Spent] = []
    again: list[float] = []
    floors: list[float] = []
    needed: list[str] = []
    for number in range(repeats):
        store = folder / f"store-{number}"
        imports.append(_run(_IMPORT, "import", log, store))
        again.append(_run(_IMPORT, "import", log, store).seconds)
        if suffix == ".jsonl":
            floors.append(_run(_POLARS, log).seconds)
            needed.append(_run(_NEEDED, log, store).said)
    seconds, peak = min(spent.seconds for spent in imports), max(spent.peak for spent in imports)
    floor = f"{size / min(floors):>8.0f}{seconds / min(floors):>7.1f}" if floors else f"{'':>15}"
    print(
        f"{name:<14}{results:<9}{size:>6.0f}{seconds:>8.2f}{size / seconds:>8.0f}"
        f"{size / min(again):>8.0f}{floor}{peak:>10}{min(spent.cpu for spent in imports):>7.1f}"
        f"{min(needed, default='')}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spent:
    """What a program took."""

    seconds: float
    cpu: float
    """Seconds of all cores."""
    peak: int
    """MiB of its largest process."""
    said: str


def _run(program: str, *arguments: object) -> _Spent:
    """Run a program in Python."""
    measured = f"{_PEAK}\n{program}"
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", measured, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    *_, cpu, peak = ended.stderr.split()
    return _Spent(seconds=seconds, cpu=float(cpu), peak=int(peak), said=ended.stdout.rstrip("\n"))


_NEEDED = """
import time
from pathlib import Path
import orjson
import pyarrow.parquet as pq
from graphcredit.store.files.tables import write_table
log, store = map(Path, sys.argv[1:])
start = time.process_time()
with log.open("rb") as file:
    for line in file:
        orjson.loads(line)
parse, write = time.process_time() - start, 0.0
for shard in store.glob("steps/*/*/*.parquet"):
    table = pq.read_table(shard, partitioning=None)
    start = time.process_time()
    write_table(table, log.with_name("again.parquet"))
    write += time.process_time() - start
print(f"{parse:>7.1f}{write:>7.1f}")
"""

_PEAK = """
import atexit, resource, sys
def _peak():
    used = [resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    sys.stderr.write(f"\\n{cpu} {max(each.ru_maxrss for each in used) >> 10}\\n")
atexit.register(_peak)
"""


def rows(length: int, num_bytes: int) -> Iterator[Row]:
    """Yield rollouts of so many bytes in all, with tool results of so many characters."""
    letters = random.Random(0)
    alphabet = "etaoinshrdlcumwfgypbvk"
    words = ["".join(letters.choices(alphabet, k=letters.randint(2, 9))) for _ in range(5000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))

    def text(num_characters: int) -> str:
        return " ".join(letters.choices(words, cum_weights=weights, k=num_characters // 6))

    number = 0
    while num_bytes > 0:
        messages: list[Row] = [
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
        num_bytes -= len(json.dumps(row))
        number += 1
        yield row


def _write_lines(path: Path, rows: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def _write_json(path: Path, rows: Iterator[Row]) -> None:
    path.write_text(json.dumps(list(rows)), encoding="utf-8")


def _write_compressed(path: Path, rows: Iterator[Row]) -> None:
    with pa.CompressedOutputStream(path, "zstd") as file:
        for row in rows:
            file.write(f"{json.dumps(row)}\n".encode())


def _write_parquet(path: Path, rows: Iterator[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=1000, compression="zstd")


def _write_gym(path: Path, rows: Iterator[Row]) -> None:
    """Write rollouts as NeMo Gym does."""
    _write_lines(path, (_gym(number, row) for number, row in enumerate(rows)))


def _gym(number: int, row: Row) -> Row:
    output: list[Row] = []
    for message in row["messages"][2:]:
        output += [
            {"type": "function_call", "call_id": call["id"], **call["function"]}
            for call in message.get("tool_calls", ())
        ]
        if message["role"] == "tool":
            answered = {"call_id": message["tool_call_id"], "output": message["content"]}
            output.append({"type": "function_call_output", **answered})
    return {
        "responses_create_params": {"input": row["messages"][:2]},
        "response": {"model": "m", "output": output},
        "reward": row["reward"],
        "_ng_task_index": number // GROUP_SIZE,
        "_ng_rollout_index": number % GROUP_SIZE,
    }


FORMATS: dict[str, tuple[str, Callable[[Path, Iterator[Row]], None]]] = {
    "messages": (".jsonl", _write_lines),
    "nemo-gym": (".jsonl", _write_gym),
    "a .json list": (".json", _write_json),
    "jsonl.zst": (".jsonl.zst", _write_compressed),
    "parquet": (".parquet", _write_parquet),
}


if __name__ == "__main__":
    main()
