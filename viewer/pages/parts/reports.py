"""Reports that commands make: other processes compute them, so that a page stays quick."""

import json
import subprocess
import sys
from typing import Any

import streamlit as st

from graphcredit.store.parquet.snapshot import Stamp


@st.cache_data(max_entries=50, show_spinner="Reading the steps …")
def report_of(
    command: str, root: str, run_id: str, iteration: int | None, files: Stamp
) -> tuple[dict[str, Any] | None, str]:
    """Return the report of a command on a run, or None and the error message.

    Args:
        command: One that knows `--json`.
        root: The store.
        run_id: The run.
        iteration: Only this iteration.
        files: What the report is made of: another one is made when they change.
    """
    # -P: a module in the user's working directory must not shadow ours.
    asked = [sys.executable, "-P", "-m", "graphcredit.cli.main", command, root, "--json"]
    scope = ["--run", run_id, *([] if iteration is None else ["--iteration", str(iteration)])]
    done = subprocess.run([*asked, *scope], capture_output=True, text=True, check=False)
    # Exit code 1 means that some findings are errors.
    if done.returncode in (0, 1) and done.stdout:
        return json.loads(done.stdout), ""
    return None, done.stderr
