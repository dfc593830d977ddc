"""The program of the sandbox's child process: it runs `sandbox_worker` without pandas and NumPy."""

import sys
from importlib import import_module


class _Missing:
    """A finder that hides packages which pyarrow imports if they are there.

    They take longer than a query, and no query needs them. A None in `sys.modules` would not do:
    compiled modules take it for the module.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name in ("numpy", "pandas"):
            raise ModuleNotFoundError(f"{name} is of no use to the sandbox", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, _Missing)
    import_module("graphcredit.store.sql.sandbox_worker").main()
