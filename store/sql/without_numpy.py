"""Import pyarrow without NumPy and pandas, for a process that only passes on rows."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
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
    """Keep pyarrow from importing them, which it does if they are there: a query is faster."""
    sys.meta_path.insert(0, _NoNumbers)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoNumbers)
