"""Times the viewer's bundle of 1,000 trajectories of 50 steps, and says how large it is.

python -m benchmarks.viewer
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe, run_graphcredit
from benchmarks.synthetic import write_log
from graphcredit.store import Store
from graphcredit.viewer.bundle.choice import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle

ESTIMATORS = ("grpo", "gigpo", "rewardflow", "graphgpo")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        write_log(root, options.steps)
        names = [word for name in ESTIMATORS for word in ("--estimator", name)]
        run_graphcredit("credit", root, "--no-audit", *names)
        started, cpu = time.perf_counter(), time.process_time()
        report = write_bundle(Store(root), root.with_name("bundle"), BundleChoice())
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(describe())
    print(
        f"{report.num_trajectories:,} trajectories, {report.num_bytes / 1e6:.1f} MB, "
        f"{seconds:.1f} s, {cpu:.1f} s of CPU"
    )


if __name__ == "__main__":
    main()
