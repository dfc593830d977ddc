"""Two rollouts side by side, on walks written by hand."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store import Store
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.steps.side_by_side import aligned, fork_of, nearest_winner, steps_of
from tests.viewer.browser import boxes, markdown_of, open_page
from tests.viewer.stores import HOSTILE, Shared, credited, hostile, two_tasks
from tests.worlds import trajectory

HERE: dict[str, Any] = {"run_id": "r0", "iteration": 0, "task_id": "t0"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    def won(name: str, walk: str) -> list[dict[str, Any]]:
        rewards = [0.0] * (len(walk.split()) // 2 - 1) + [1.0]
        return trajectory(name, walk, rewards=rewards, success=True)

    rows = [
        *trajectory("lost", "A a B b C x X y Y"),
        *won("slow", "A a B b C c D d B b C c E e won"),
        *won("quick", "A z Z z C c E e won"),
        *trajectory("apart", "P p Q"),
    ]
    root: Path = tmp_path_factory.mktemp("sides") / "s"
    return credited(root, rows, names=("reach",))


def _walk(store: Store, left: str, right: str, meeting: tuple[int, int] | None = None) -> list[str]:
    """Return the rows as `1=0`, `2≠1` at a parting, `3.` and `.2` where one stands alone."""
    steps = task_steps(store, **HERE)
    rows: list[str] = []
    for pair in aligned(steps_of(steps, left), steps_of(steps, right), meeting):
        one, other = ("" if s is None else s["step_index"] for s in (pair.left, pair.right))
        sign = "≠" if pair.is_parting else "=" if pair.is_shared else "."
        rows.append(f"{one}{sign}{other}")
    return rows


def test_steps_from_one_state_stand_side_by_side(store: Store):
    # A and C are shared; quick goes by Z to C, where lost leaves.
    assert _walk(store, "lost", "quick") == ["0≠0", "1.1", "2≠2", "3.3"]
    assert _walk(store, "lost", "slow") == ["0=0", "1=1", "2≠2", "3.3", ".4", ".5", ".6"]
    assert _walk(store, "lost", "lost") == ["0=0", "1=1", "2=2", "3=3"]
    assert _walk(store, "lost", "apart") == ["0.0", "1.", "2.", "3."]


def test_the_fork_is_the_last_state_of_both(store: Store):
    steps = task_steps(store, **HERE)
    lost, quick, apart = (steps_of(steps, name) for name in ("lost", "quick", "apart"))
    assert fork_of(aligned(lost, quick)) == 2
    assert fork_of(aligned(lost, lost)) is None
    assert fork_of(aligned(lost, apart)) is None


@given(
    walks=st.tuples(
        *(st.lists(st.integers(0, 4), min_size=1, max_size=12).map(tuple) for _ in range(2))
    )
)
def test_every_step_has_one_place_in_its_order(walks: tuple[tuple[int, ...], ...]):
    left, right = (
        [{"state_id": state, "next_state_id": -1, "step_index": n} for n, state in enumerate(walk)]
        for walk in walks
    )
    pairs = aligned(left, right)
    assert [pair.left for pair in pairs if pair.left is not None] == left
    assert [pair.right for pair in pairs if pair.right is not None] == right
    for pair in pairs:
        if pair.is_shared:
            assert pair.left is not None
            assert pair.right is not None
            assert pair.left["state_id"] == pair.right["state_id"]


def test_the_nearest_winner_is_the_one_with_the_fewest_steps_from_there(store: Store):
    steps = task_steps(store, **HERE)

    def winner(name: str, step: int) -> tuple[str, int, int] | None:
        near = nearest_winner(steps, name, step)
        return None if near is None else (near.trajectory_id, near.step_index, near.from_step)

    # From A, quick has 4 steps to go and slow 7; from B only slow goes on, the second time sooner.
    assert winner("lost", 0) == ("quick", 0, 0)
    assert winner("lost", 1) == ("slow", 4, 1)
    assert winner("lost", 2) == ("quick", 2, 2)
    # Nobody won from X: from C before it, somebody did.
    assert winner("lost", 3) == ("quick", 2, 2)
    assert winner("apart", 0) is None
    # A winner is compared with others.
    assert winner("quick", 0) == ("slow", 0, 0)


def test_the_page_shows_the_fork_and_what_each_did_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    app = open_page(
        monkeypatch, store, "compare", compare="Two rollouts", task="t0", trajectory="lost"
    )
    assert not app.exception
    assert app.query_params["other"] == "quick"
    assert boxes(app) == ["x", "X", "c", "E"]
    rows = app.dataframe[0].value.to_dict("list")
    assert list(rows["together"]) == ["≠ A", "", "fork: C", ""]
    assert list(rows["left_action"]) == ["a", "b", "x", "y"]
    app = open_page(
        monkeypatch, store, "compare", compare="Two rollouts", trajectory="lost", other="gone"
    )
    assert app.query_params["other"] == "quick"


@pytest.mark.parametrize("page", ["trajectory", "graph"])
def test_a_winner_is_offered_where_another_rollout_won(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, page: str
):
    store = shared(two_tasks, "reach")
    offer = "eside the nearest rollout that won"
    app = open_page(monkeypatch, store, page, task="t0", trajectory="y")
    assert offer in markdown_of(app)
    app = open_page(monkeypatch, store, page, task="t1", trajectory="p")
    assert not app.exception
    assert offer not in markdown_of(app)


def test_the_fork_is_where_the_winner_was_sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """B and C fit together, but the winner was sought from D, where the two went apart."""
    rows = [
        *trajectory("lost", "A a B b C c D x X"),
        *trajectory("win", "D d B b C c G", rewards=[0.0, 0.0, 1.0], success=True),
    ]
    store = credited(tmp_path / "s", rows, names=("reach",))
    assert _walk(store, "lost", "win") == ["0.0", "1=1", "2≠2", "3."]
    assert _walk(store, "lost", "win", meeting=(3, 0)) == ["0.", "1.", "2.", "3≠0", ".1", ".2"]
    place: dict[str, Any] = {"compare": "Two rollouts", "trajectory": "lost", "step": 3}
    app = open_page(monkeypatch, store, "compare", **place)
    assert boxes(app) == ["x", "X", "d", "B"]
    assert list(app.dataframe[0].value["together"]) == ["", "", "", "fork: D", "", ""]


def test_hostile_text_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = credited(tmp_path / "s", hostile(), names=("reach",))
    app = open_page(monkeypatch, store, "compare", compare="Two rollouts", task=HOSTILE)
    assert not app.exception
    assert "![x](https" not in markdown_of(app)
    app = open_page(monkeypatch, store, "tasks", task=HOSTILE)
    app.session_state["open_recurring"] = True
    app.run()
    assert not app.exception
    assert "![x](https" not in markdown_of(app)
