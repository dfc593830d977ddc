"""Judge the policy during a training, by a command of the user."""

import math
import os
import subprocess
from pathlib import Path

from graphcredit.store.errors import TrainingError

POLICY = "GRAPHCREDIT_POLICY"
"""Variable with the directory of the policy."""


def evaluate(command: str, policy: Path) -> float:
    """Return the number that a command's output ends with.

    Raises:
        TrainingError: The command fails, or its last line is no finite number.
    """
    ended = subprocess.run(
        command,
        shell=True,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, POLICY: str(policy)},
    )
    line = ended.stdout.strip().rpartition("\n")[2]
    try:
        value = float(line)
    except ValueError:
        value = math.nan
    if ended.returncode or not math.isfinite(value):
        raise TrainingError(
            "the command of evaluate_with must exit with 0 and print a number on its last line: it "
            f"exited with {ended.returncode}, and its last line is {line[:80]!r}"
        )
    return value
