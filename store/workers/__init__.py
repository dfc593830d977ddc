"""Worker processes, which every stage shares: one protocol, one pool, one way to retry."""

import os

from graphcredit.store.errors import OptionError

RUNS_SCRIPT = "GRAPHCREDIT_RUNS_SCRIPT"
"""Environment variable that is set in a worker while it runs the user's script."""


def check_guarded() -> None:
    """Refuse to play in a worker that runs the user's script: it would wait for its own parent.

    Raises:
        OptionError: The script has no `__main__` guard.
    """
    if RUNS_SCRIPT in os.environ:
        raise OptionError(
            "a script that registers an environment of its own and plays in worker processes must "
            'play under `if __name__ == "__main__":`, since each worker runs the script'
        )
