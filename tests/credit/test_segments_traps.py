"""What looks like noise and matters is kept: no two true states become one."""

import pytest

from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from tests.credit import trap_worlds
from tests.worlds import step_table


def merged(world: str, seed: int, num_groups: int) -> tuple[list[int], list[str], list[str]]:
    """Return the node of each step, its true state, and its text, each within its task."""
    rows = getattr(trap_worlds, world)(seed, num_groups, 8)
    rows.sort(key=lambda row: (row["task_id"], row["trajectory_id"], row["step_index"]))
    true = [f"{row['task_id']} {row.pop('true_state')}" for row in rows]
    steps = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments")).learn([steps])
    nodes = assemble(steps, merger=merger).batch.state_of_step.tolist()
    return nodes, true, [f"{row['task_id']} {row['state']}" for row in rows]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("num_groups", [4, 16])
@pytest.mark.parametrize("world", ["boiler_sound", "museum_guide", "slow_page", "lock_panel"])
def test_what_matters_is_kept(world: str, num_groups: int, seed: int):
    nodes, true, _ = merged(world, seed, num_groups)
    assert len(set(zip(nodes, true, strict=True))) == len(set(nodes))


@pytest.mark.parametrize("world", ["boiler_sound", "museum_guide"])
def test_what_does_not_matter_beside_it_is_left_out(world: str):
    nodes, true, texts = merged(world, 0, 16)
    assert len(set(nodes)) <= 1.5 * len(set(true)) < len(set(texts))
