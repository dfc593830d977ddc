"""The program of the sandbox's child process: it runs `sandbox_worker` without NumPy and pandas."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoNumbers:
    """A finder that finds neither NumPy nor pandas.

    A None in `sys.modules` would not do: compiled modules take it for the module.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name in ("numpy", "pandas"):
            raise ModuleNotFoundError(f"{name} is of no use to a query", name=name)
        return None


@contextmanager
def without_numpy() -> Generator[None]:
    """Import pyarrow without NumPy and pandas, for a process that only passes on rows.

    pyarrow imports them if they are there, which takes longer than a query.
    """
    sys.meta_path.insert(0, _NoNumbers)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoNumbers)


if __name__ == "__main__":
    with without_numpy():
        import_module("graphcredit.store.sql.sandbox_worker").main()
