"""The demo on one game: each of its parts says something true of the store it leaves."""

import json
import shlex
from pathlib import Path

import pytest

from graphcredit.store import open_store
from graphcredit.store.sql import catalog
from tests.cli.test_credit import graphcredit


@pytest.mark.play
def test_the_demo_plays_credits_and_shows(
    tmp_path: Path, games_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))
    root = tmp_path / "demo"
    result = graphcredit("demo", "--store", root, "--games", 1)
    assert result.returncode == 0, result.stderr
    shown = result.stdout
    for part in ("1. Play", "2. Assign", "3. Judge", "4. Go on"):
        assert part in shown
    with catalog.connect(open_store(root)) as connection:
        ((num_steps, num_null),) = connection.sql(
            "SELECT count(*), count_if(graphgpo_advantage IS NULL) FROM enriched"
        ).fetchall()
    assert num_null == 0
    assert f"{num_steps:,} steps of 8 rollouts" in shown
    assert "rank correlation with true progress  " in shown
    (picture,) = tmp_path.glob("*.svg")
    assert str(picture) in shown

    again = graphcredit("demo", "--store", root, "--games", 1, "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["audit"]["numbers"]["rank correlation with true progress"]
    assert told["picture"] == str(picture)
    assert sum(each["num_steps"] for each in told["credit"]) == num_steps

    advised = [line.strip() for line in shown.partition("4. Go on")[2].splitlines()[2:]]
    assert advised[-1].endswith(f"graphcredit view {root}")
    for line in advised[:-1]:
        ended = graphcredit(*shlex.split(line)[1:])
        assert ended.returncode == 0, (line, ended.stderr)
