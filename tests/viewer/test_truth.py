"""What is true of credit, by hand: the worked example in a world that knows the way.

True distances: A 2, B 3, C 1, D 4. So a at A leads away and c nearer; q is refused and changes
nothing; e at C leads away, and d wins.
"""

from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.facts import SHOWN, own_steps, with_shown
from graphcredit.viewer.graph.shading import OwnStep, Shading, TrueDistances, true_distances
from graphcredit.viewer.graph.task_graph import Edge, TaskGraph, read_task_graph
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.truth import progress_of, seen_change, true_change, verdict
from tests.viewer.browser import open_page
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example

HERE: dict[str, Any] = {"run_id": "r0", "iteration": 0}
DISTANCE = {"A": 2.0, "B": 3.0, "C": 1.0, "D": 4.0, "won": 0.0}


def known(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps with the true distances."""
    return [
        row
        | {
            "oracle_distance": DISTANCE[row["state"]],
            "next_oracle_distance": DISTANCE[row["next_state"]],
        }
        for row in rows
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    rows = [
        *worked_example(),
        *trajectory("xv", "A c C e D"),
        *trajectory("xw", "A a B b A c C e D"),
    ]
    return credited(tmp_path_factory.mktemp("truth") / "s", known(rows), names=("graphgpo", "grpo"))


def _graph(store: Store) -> TaskGraph:
    return read_task_graph(store, **HERE, task_id="t0", column="graphgpo_advantage")


def _truth(store: Store) -> TrueDistances:
    truth = true_distances(task_steps(store, **HERE, task_id="t0"))
    assert truth is not None
    return truth


@pytest.mark.parametrize(
    ("credit", "progress", "said"),
    [
        *((1.0, 1.0, "agrees"), (-1.0, -2.0, "agrees"), (1.0, -1.0, "conflicts")),
        *((-1.0, 1.0, "conflicts"), (0.0, 1.0, None), (1.0, 0.0, None)),
        *((None, 1.0, None), (1.0, None, None)),
    ],
)
def test_a_verdict_compares_two_signs(credit: float | None, progress: float | None, said: str):
    assert verdict(credit, progress) == said


def test_distances_are_told_apart():
    step = {"oracle_distance": 4.0, "next_oracle_distance": None}
    step |= {"goal_distance": 7.0, "next_goal_distance": None}
    assert progress_of(step) is None
    assert progress_of(step | {"next_oracle_distance": 5.5}) == -1.5
    assert progress_of(step | {"next_oracle_distance": float("inf")}) is None
    assert (seen_change(step), true_change(step)) == ("7 → no way", "4 → unknown")
    assert true_change(dict.fromkeys(step)) is None


def test_states_and_transitions_have_what_is_true_of_them(store: Store):
    truth, graph = _truth(store), _graph(store)
    of_text = {node.state: truth.words(node.state_id) for node in graph.nodes}
    assert of_text == {name: f"true {value:g}" for name, value in DISTANCE.items()}
    names = {node.state_id: node.state for node in graph.nodes}
    progress = {(names[a], names[b]): value for (a, b), value in truth.progress.items()}
    assert progress == {
        ("A", "B"): -1,
        ("B", "A"): 1,
        ("A", "C"): 1,
        ("A", "A"): 0,
        ("C", "D"): -3,
        ("C", "won"): 1,
    }


def test_a_state_whose_text_hides_something_has_several_true_distances(store: Store):
    steps = task_steps(store, **HERE, task_id="t0")
    truth = TrueDistances(of_state={0: (2.0, 5.0)}, progress={})
    assert truth.words(0) == "true 2 to 5"
    assert truth.words(1) == ""
    unknown = steps.set_column(
        steps.column_names.index("oracle_distance"), "oracle_distance", [[None] * len(steps)]
    ).drop_columns(["next_oracle_distance"])
    unknown = unknown.append_column("next_oracle_distance", [[None] * len(steps)])
    assert true_distances(unknown.cast(steps.select(unknown.column_names).schema)) is None


def test_transitions_are_marked_and_conflicts_are_not_told_by_colour_alone(store: Store):
    graph = _graph(store)
    shading = Shading(advantage="graphgpo step", truth=_truth(store))
    drawing = draw_part(graph, graph, shading)
    drawn = {edge["data"]["id"]: edge["data"] for edge in drawing.edges}
    for edge in graph.edges:
        data = drawn[f"e{edge.source}-{edge.target}"]
        said = shading.verdict(edge)
        assert ("conflict" in data) == (said == "conflicts")
        assert data["label"].startswith({"agrees": "✓ ", "conflicts": "✗ ", None: ""}[said])
    assert {shading.verdict(edge) for edge in graph.edges} >= {"agrees", None}
    assert any("true progress" in note for note in drawing.legend["marks"])


def test_a_trajectory_is_drawn_in_its_own_credit_and_numbered(store: Store):
    graph = _graph(store)
    steps = with_shown(task_steps(store, **HERE, task_id="t0"), "grpo_advantage", None)
    own = own_steps(steps, "xw")
    (credit,) = {step.value for several in own.values() for step in several}
    assert {ends: [(s.index, s.action) for s in several] for ends, several in own.items()} == {
        (0, 1): [(0, "a")],
        (1, 0): [(1, "b")],
        (0, 2): [(2, "c")],
        (2, 3): [(3, "e")],
    }
    shading = Shading(advantage="grpo", own=own)
    by_ends = {edge.ends: edge for edge in graph.edges}
    # x went this way, too, so the mean of the edge is another one.
    assert shading.drawn_value(by_ends[0, 2]) == credit != shading.value(by_ends[0, 2])
    assert shading.drawn_value(by_ends[2, 4]) == shading.value(by_ends[2, 4])
    drawing = draw_part(graph, graph, shading)
    labels = {edge["data"]["id"]: edge["data"]["label"] for edge in drawing.edges}
    assert (labels["e0-1"], labels["e2-3"], labels["e2-4"]) == ("0: a", "3: e", "d")


def test_a_transition_taken_twice_shows_both_numbers_and_the_mean():
    several = [OwnStep(index=3, action="go", value=-0.5), OwnStep(index=7, action="run", value=0.1)]
    shading = Shading(advantage="a", own={(0, 1): several})
    edge = Edge(
        source=0, target=1, actions=("go",), visits=9, cost=1.0, advantage=3.0, is_pruned=False
    )
    assert shading.drawn_value(edge) == pytest.approx(-0.2)
    assert shading.value(edge) == 3.0


def test_what_is_shown_of_a_step_is_its_difference_in_a_comparison(store: Store):
    steps = task_steps(store, **HERE, task_id="t0")
    own, other = (steps[f"{name}_advantage"].to_pylist() for name in ("graphgpo", "grpo"))
    shown = with_shown(steps, "graphgpo_advantage", "grpo_advantage")[SHOWN].to_pylist()
    assert shown == pytest.approx([a - b for a, b in zip(own, other, strict=True)])


def test_the_graph_page_counts_agreement(store: Store, monkeypatch: pytest.MonkeyPatch):
    app = open_page(monkeypatch, store, "graph", estimator="graphgpo")
    assert not app.exception
    graph, truth = _graph(store), _truth(store)
    said = [verdict for edge in graph.edges if (verdict := truth.verdict(edge))]
    words = (
        f"has the sign of the true progress on {said.count('agrees')} of {len(said)} transitions"
    )
    assert words in app.caption[0].value
