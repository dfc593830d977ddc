"""The options that all experiments have."""

import argparse
import os
from pathlib import Path


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with `--out` and `--workers`, which shows the docstring of a module."""
    options = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, required=True, help="what is finished there is kept")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return options
