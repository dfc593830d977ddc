"""The ways in which the experiment spoils lists of admissible actions."""

from pathlib import Path

import pytest

from experiments.analogy import lists
from tests.worlds import step_table, trajectory, write_store

EXACT = {"A": ["a", "b"], "B": ["b", "c"]}


def rows():
    """Return a win from A by B, and a failure, with the distance to the end of the win."""
    steps = [
        *trajectory("r:0", "A a B b won", success=True),
        *trajectory("r:1", "A b A a B c A"),
    ]
    distance = {"A": 2.0, "B": 1.0, "won": 0.0}
    return [
        step
        | {
            "admissible_actions": EXACT[step["state"]],
            "oracle_distance": distance[step["state"]],
            "next_oracle_distance": distance[step["next_state"]],
        }
        for step in steps
    ]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("exact", [EXACT[state] for state in "ABAAB"]),
        ("none", [None] * 5),
        ("one menu", [["a", "b", "c"]] * 5),
    ],
)
def test_the_lists_are_replaced(title: str, expected: list[list[str] | None]):
    table = lists.relist(step_table(rows()), lists.LISTS[title])
    assert table["admissible_actions"].to_pylist() == expected


def test_a_list_for_each_number_of_steps_is_the_same_in_both_rollouts():
    table = lists.relist(step_table(rows()), lists.LISTS["one for each number of steps"])
    shown = table["admissible_actions"].to_pylist()
    assert shown[:2] == shown[2:4]


def test_without_their_last_step_successes_are_failures():
    table = lists.cut_short(step_table(rows()))
    assert table["step_index"].to_pylist() == [0, 0, 1, 2]
    assert table["success"].to_pylist() == [False, None, None, False]
    assert table["truncated"].to_pylist() == [True, False, False, True]


def test_every_way_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    store = write_store(tmp_path / "log", rows())
    monkeypatch.setattr(lists, "LISTS", {"one menu": lists.LISTS["one menu"]})
    monkeypatch.setattr("sys.argv", ["lists", str(store.root)])
    lists.main()
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert cells[:2] == ["one menu", "0%"]
    assert cells[2] == cells[4]
