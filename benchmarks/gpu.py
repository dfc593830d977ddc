"""Runs what CI cannot: the tests that need a GPU, then the table of `benchmarks.train`.

    python -m benchmarks.gpu                    both, on the GPUs of this machine
    python -m benchmarks.gpu --only train       of the table, only rows whose name has this text

Tests of two GPUs are skipped on a machine with one. The command fails if a test does; the table is
printed in any case.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    parser.add_argument("--only", default="", help="only rows whose name has this text")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(
            f"a CUDA device must be there, but torch {torch.__version__} sees none: install torch "
            "for CUDA (docs/install.md), and look whether nvidia-smi lists the GPU"
        )
    tests = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/trainer"]
    failed = subprocess.run(tests, cwd=ROOT, check=False).returncode
    table = [sys.executable, "-m", "benchmarks.train", "--device", "cuda"]
    table += ["--repeats", str(options.repeats), "--only", options.only]
    subprocess.run(table, cwd=ROOT, check=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
