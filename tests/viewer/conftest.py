"""What every test of the viewer leaves as it was."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Restore `__main__`, which Streamlit replaces by its page: a spawned process imports it."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
