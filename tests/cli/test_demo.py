"""The demo on one game: each of its commands says something true of the store it leaves."""

from pathlib import Path

import pytest

from graphcredit.store import open_store
from graphcredit.store.sql import catalog
from tests.cli.test_credit import graphcredit


@pytest.mark.play
def test_the_demo_plays_credits_and_judges(
    tmp_path: Path, games_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))
    root = tmp_path / "demo"
    result = graphcredit("demo", "--store", root, "--games", 1)
    assert result.returncode == 0, result.stderr
    shown = result.stdout
    for command in ("collect", "credit", "audit"):
        assert f"$ graphcredit {command} {root}" in shown
    with catalog.connect(open_store(root)) as connection:
        ((num_steps, num_null),) = connection.sql(
            "SELECT count(*), count_if(graphgpo_advantage IS NULL) FROM enriched"
        ).fetchall()
    assert num_null == 0
    assert f"{num_steps:,} steps of 8 rollouts" in shown
    assert "rank correlation with true progress  " in shown

    again = graphcredit("demo", "--store", root, "--games", 1, "--quiet")
    assert again.returncode == 0, again.stderr
    assert "0 rollouts of 1 task played, 8 were there already" in again.stdout
    assert not again.stderr
