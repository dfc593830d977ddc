"""verifiers' own classes write traces that `import` reads and that prime_rl credits.

x: hall, look(east), kitchen, take(mug), worth 1; y: hall, look(west), worth 0. Whether their steps
are compared by return (GiGPO) or by distance to the goal (GraphGPO), x and y differ by one in their
episode and at the hall, so each part is ±1/√2, and the kitchen, seen once, has the episode's part
only.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import graphcredit
from graphcredit.integrations import StepCredit, prime_rl

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF


@pytest.fixture(scope="module")
def rollouts() -> ModuleType:
    """Import verifiers where these tests run only: it takes seven seconds of every process."""
    pytest.importorskip(
        "verifiers", reason="verifiers is not installed: pip install 'graphcredit[integrations]'"
    )
    return import_module("tests.api.verifiers_rollouts")


@pytest.mark.parametrize("estimator", ["gigpo", "graphgpo"])
def test_each_sampled_token_has_the_advantage_of_its_turn(estimator: str, rollouts: ModuleType):
    x, y = rollouts.played()
    prime_rl.score_group(rollouts.episodes(x, y), StepCredit(estimator=estimator))
    assert [node.advantages for node in x.nodes if not node.sampled] == [None] * 3
    found = [node.advantages for trace in (x, y) for node in trace.nodes if node.sampled]
    assert found == [pytest.approx([value] * 2, rel=1e-4) for value in (EAST, TAKE, WEST)]
    (branch,) = x.branches
    # verifiers spreads them over the tokens of the branch, as prime-rl trains on them.
    assert len(branch.advantages) == len(branch.token_ids)
    assert [value for value in branch.advantages if value] == pytest.approx(
        [EAST, EAST, TAKE, TAKE], rel=1e-4
    )


def test_a_turn_of_another_branch_is_credited_once(rollouts: ModuleType):
    x, y = rollouts.played()
    rollouts.branch_off(x)
    assert len(x.branches) == 2
    prime_rl.score_group(rollouts.episodes(x, y), StepCredit(estimator="grpo"))
    found = [node.advantages for node in x.nodes if node.sampled]
    assert found == [pytest.approx([HALF] * length, rel=1e-4) for length in (2, 2, 1)]


def test_what_verifiers_writes_is_imported(tmp_path: Path, rollouts: ModuleType):
    rollouts.write(tmp_path, rollouts.played(), group=rollouts.GROUP)
    report = graphcredit.import_log(tmp_path / "traces.jsonl", tmp_path / "s")
    assert dict(report.num_files) == {"verifiers": 1}
    assert (report.num_trajectories, report.num_steps, report.num_groups) == (2, 3, 1)
    assert report.num_bad_rows == 0
    graphcredit.credit(tmp_path / "s", estimators="gigpo")
    rows = graphcredit.scan(tmp_path / "s").sort("trajectory_id", "step_index").collect()
    assert rows["action"].to_list() == [
        'go({"at": "east"})',
        'take({"at": "mug"})',
        'go({"at": "west"})',
    ]
    assert rows["gigpo_advantage"].to_list() == pytest.approx([EAST, TAKE, WEST], rel=1e-4)


def test_import_and_score_group_see_the_same_steps(tmp_path: Path, rollouts: ModuleType):
    traces = rollouts.played()
    with graphcredit.StepRecorder(
        tmp_path / "s", run_id="r", iteration=0, worker_id="w"
    ) as recorder:
        prime_rl.score_group(rollouts.episodes(*traces), StepCredit(recorder=recorder))
    rollouts.write(tmp_path, traces)
    graphcredit.import_log(tmp_path / "traces.jsonl", tmp_path / "imported")
    recorded, imported = (
        graphcredit.scan(tmp_path / name, "steps")
        .sort("trajectory_id", "step_index")
        .select("trajectory_id", "state", "action", "reward", "success")
        .collect()
        for name in ("s", "imported")
    )
    assert recorded.equals(imported)
