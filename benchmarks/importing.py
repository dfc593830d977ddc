"""Times `graphcredit import` beside Polars, which reads the same lines and nothing else.

    python -m benchmarks.importing --megabytes 100 --repeats 3

A log has rollouts of 20 turns: a tool call and its result. `short` results have 200 characters,
`long` ones 3,000. Their words are drawn by Zipf's law, so they compress about as text does. Both
sides are processes of their own, start-up included, and run in turns; the least time counts. The
import has all default options. `cpu` are the seconds of all cores that it takes; other programs on
the machine change them less than the time.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, run_graphcredit, run_python

TURNS, GROUP_SIZE = 20, 8
LENGTHS = {"short": 200, "long": 3000}

_POLARS = "import polars, sys; print(polars.scan_ndjson(sys.argv[1]).collect().height)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100])
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    print(f"{describe()}, best of {options.repeats}")
    print(
        f"{'results':<9}{'MB':>6}{'s':>8}{'MB/s':>8}{'again':>8}{'polars':>8}{'ratio':>7}"
        f"{'peak MiB':>10}{'cpu':>7}"
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
    stores = [log.with_name(f"store-{number}") for number in range(repeats)]
    runs = [
        (run_graphcredit("import", log, store), run_graphcredit("import", log, store), floor)
        for store in stores
        for floor in [run_python("-c", _POLARS, log)]
    ]
    first, again, floor = (min(run.seconds for run in column) for column in zip(*runs, strict=True))
    imports = [run for run, *_ in runs]
    peak, cpu = max(run.mebibytes for run in imports), min(run.cpu for run in imports)
    return (
        f"{size:>6.0f}{first:>8.2f}{size / first:>8.0f}{size / again:>8.0f}{size / floor:>8.0f}"
        f"{first / floor:>7.1f}{peak:>10.0f}{cpu:>7.1f}"
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
