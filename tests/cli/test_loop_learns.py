"""A tiny policy learns: collect, credit and train, one after the other, raise its success."""

from pathlib import Path

from tests.cli.loop_worlds import corridor_loop, run, save_talker


def test_a_policy_learns_to_walk_east(tmp_path: Path):
    """The first policy walks at random, which rarely wins a corridor of three rooms."""
    save_talker(tmp_path / "start")
    config = corridor_loop(
        tmp_path,
        "out",
        iterations=3,
        collect={"games": "3", "group_size": 8},
        train={"learning_rate": 0.03, "kl_coefficient": 0.0},
    )
    first, _, last, _ = run(config)
    assert first["success_rate"] < 0.5
    assert last["success_rate"] > 0.9
