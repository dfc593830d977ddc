"""The program of the sandbox's child process: it runs `sandbox_worker` without pandas."""

import sys
from importlib import import_module


class _NoPandas:
    """A finder that finds no pandas. `pyarrow.dataset` imports it, which takes longer than a query.

    A None in `sys.modules` would not do: compiled modules take it for the module.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is of no use to the sandbox", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, _NoPandas)
    import_module("graphcredit.store.sql.sandbox_worker").main()
