"""What tests of several folders share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def games_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where generated games are kept during a test run, by all its processes together."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "games"
