"""Tests of experiments run with these, and at night; `make test` has those marked `smoke`."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark all others as nightly: a hook of a folder is called for its own tests."""
    if item.get_closest_marker("smoke") is None:
        item.add_marker("nightly")
