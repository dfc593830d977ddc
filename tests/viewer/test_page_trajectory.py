"""The Trajectory page."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.outcomes import are_graded, outcome
from graphcredit.viewer.steps.charts import course, distances
from graphcredit.viewer.steps.html_export import trajectory_page
from tests.viewer.browser import component, markdown_of, open_page
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import step_table, trajectory, worked_example, write_store


def charts(app: AppTest) -> list[list[dict[str, Any]]]:
    """Return what the marks of each chart on a page are drawn from."""
    return [_rows(chart.proto) for chart in app.get("vega_lite_chart")]


def _rows(proto: Any) -> list[dict[str, Any]]:
    if proto.HasField("data"):
        # What all layers have in common goes to the browser as Arrow.
        return _arrow_rows(proto.data)
    layers = json.loads(proto.spec)["layer"]
    records = [layer["data"]["values"] for layer in layers if "values" in layer["data"]]
    return max([*records, *(_arrow_rows(named.data) for named in proto.datasets)], key=len)


def _arrow_rows(data: Any) -> list[dict[str, Any]]:
    return pa.ipc.open_stream(data.data).read_all().to_pylist()


def chat(app: AppTest) -> list[dict[str, Any]]:
    """Return the messages of the conversation."""
    return component(app, "chat")["messages"]


def acted(app: AppTest) -> str:
    """Return the action of the step that is shown."""
    data = component(app, "chat")
    (own,) = (m for m in data["messages"] if m["row"] == data["row"] and "step" in m)
    return own["parts"][-1]["text"]


def said(app: AppTest) -> list[str]:
    """Return every text of the conversation, in order."""
    return [part["text"] for message in chat(app) for part in message["parts"]]


def code(app: AppTest) -> list[str]:
    return [element.value for element in app.code]


def test_a_failure_opens_at_its_most_blamed_step_a_win_at_its_most_credited(shared: Shared):
    store = shared(two_tasks)
    app = open_page(store, "trajectory")
    address = [app.query_params[name] for name in ("task", "trajectory", "step")]
    # y: c was good, e lost; x: its last step, d, got the reward, but c came first to its state.
    assert address == ["t0", "y", "1"]
    assert "**ended, cut off** after 2 steps with return 0." in markdown_of(app)
    assert "Of its group of 3 rollouts, 1 succeeded." in markdown_of(app)
    assert said(app) == ["A", "c", "C", "e", "D"]
    app = open_page(store, "trajectory", trajectory="x")
    sql = "SELECT arg_max(step_index, graphgpo_advantage) FROM credit WHERE trajectory_id = 'x'"
    best = run_trusted_query(store, sql).table[0][0].as_py()
    assert app.query_params["step"] == str(best)
    assert app.button(key="go_Most credit").disabled
    # Two equal failures tell nothing.
    app = open_page(store, "trajectory", task="t1")
    assert app.query_params["step"] == "0"


def test_no_last_message_and_no_step_alone_heads_a_trajectory(tmp_path: Path):
    """What a rollout says at its end is no decision; where nobody else was, nothing compares."""
    look, ask = 'look({"at": "A"})', "ask({})"
    rows = [
        *trajectory(
            "won",
            ["A", look, "B", ask, "C", "All is done.", "end"],
            rewards=[0, 0, 1],
            success=True,
        ),
        *trajectory("lost", ["A", look, "B", "I give up.", "end"]),
        *trajectory("lone", ["A", "jump({})", "X", ask, "C", "All is done.", "end"]),
    ]
    store = credited(tmp_path / "s", rows, names=("grpo",))
    steps = task_steps(store, run_id="r0", iteration=0, task_id="t0").to_pylist()
    told = [(row["trajectory_id"], row["step_index"]) for row in steps if row["is_telling"]]
    assert told == [("lone", 0), ("lost", 0), ("won", 0), ("won", 1)]


def test_buttons_and_bars_lead_to_steps(shared: Shared):
    app = open_page(shared(two_tasks), "trajectory", trajectory="x", step=0)
    buttons = {button.label: button for button in app.button}
    assert [buttons[name].proto.shortcut.lower() for name in ("Previous", "Next")] == ["k", "j"]
    assert buttons["Previous"].disabled
    app.session_state["course_x_0"] = {"selection": {"click": [{"step": 3}]}}
    app.run()
    assert (app.query_params["step"], acted(app)) == ("3", "d")
    assert app.button(key="go_Next").disabled
    app.button(key="go_Previous").click().run()
    assert (app.query_params["step"], acted(app)) == ("2", "c")


def test_the_bars_are_the_numbers_of_the_store(shared: Shared):
    store = shared(two_tasks, "gigpo", "graphgpo")
    app = open_page(store, "trajectory", trajectory="x", estimator="graphgpo", step=2)
    sql = "FROM credit WHERE trajectory_id = 'x' ORDER BY step_index"
    credit = run_trusted_query(store, sql).table.to_pylist()
    course, _, bars = charts(app)
    assert [row["value"] for row in course] == [r["graphgpo_advantage"] for r in credit]
    assert [row["tint"] > 0.1 for row in course] == [False, False, True, False]
    shown = {row["name"]: row["value"] for row in bars}
    assert shown == {
        f"{name}{suffix}": credit[2][f"{name}_{part}"]
        for name in ("graphgpo", "gigpo")
        for suffix, part in (
            ("", "advantage"),
            (" · episode", "episode_advantage"),
            (" · step", "step_advantage"),
        )
    }
    assert next(iter(shown)) == "graphgpo"


def test_the_pictures_of_a_step_are_shown_and_what_is_none_is_named(tmp_path: Path):
    png = bytes.fromhex("89504e470d0a1a0a") + b"the rest"
    seen = [{"bytes": png, "path": None}, {"bytes": None, "path": "images/a.jpg"}]
    seen += [{"bytes": b"<svg onload='alert(1)'>", "path": None}]
    steps = trajectory("x", "A a B b won", success=True)
    steps[1]["images"] = seen
    store = write_store(tmp_path / "s", steps)
    (store.root / "images").mkdir()
    (store.root / "images" / "a.jpg").write_bytes(b"\xff\xd8\xff" + bytes(5 << 20))
    assert "picture" not in markdown_of(open_page(store, "trajectory", step=0))
    app = open_page(store, "trajectory", step=1)
    assert "3 pictures in the prompt" in markdown_of(app)
    (drawn,) = app.get("image")
    assert drawn.proto.imgs[0].url == f"data:image/png;base64,{base64.b64encode(png).decode()}"
    told = [caption.value for caption in app.caption if caption.value.startswith("picture ")]
    assert told == [
        "picture 2, 5,120.0 KiB: too large to be shown",
        "picture 3, 0.0 KiB: no PNG, JPEG, GIF or WebP",
    ]
    (store.root / "images" / "a.jpg").unlink()
    app = open_page(store, "trajectory", step=1)
    assert any("every image of a step must be there" in element.value for element in app.text)


def test_a_step_beyond_the_end_is_the_last_one(shared: Shared):
    app = open_page(shared(two_tasks), "trajectory", trajectory="x", step=99)
    assert "The rollout has 4 steps: the last one is shown." in markdown_of(app)
    assert app.query_params["step"] == "3"


def test_distances_and_tokens_are_drawn_where_they_were_logged(tmp_path: Path):
    logged: dict[str, Any] = {"oracle_distance": 2.0, "next_oracle_distance": 1.0}
    steps = trajectory("x", "A a B b won", success=True, **logged)
    app = open_page(credited(tmp_path / "s", steps), "trajectory")
    _, distances, _ = charts(app)
    told = [(row["kind"], row["step"], row["distance"]) for row in distances]
    seen, true = "seen distance", "true distance"
    assert told == [(seen, 0, 2.0), (seen, 1, 1.0), (true, 0, 2.0), (true, 1, 2.0)]
    assert "seen distance 2 → 1 · true distance 2 → 1" in markdown_of(app)


def test_without_credit_the_page_says_how_to_get_it(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    app = open_page(store, "trajectory")
    assert "This iteration has no credit yet" in markdown_of(app)
    assert any("graphcredit credit" in text for text in code(app))
    assert acted(app) == "c"


def test_an_unfinished_trajectory_has_steps_but_no_credit(tmp_path: Path):
    steps = [*worked_example(), *trajectory("u", "A a B", success=None)]
    app = open_page(credited(tmp_path / "s", steps), "trajectory", trajectory="u")
    assert "**unfinished** after 1 step " in markdown_of(app)
    assert "Only complete ones get credit" in markdown_of(app)
    assert said(app) == ["A", "a", "B"]
    assert charts(app) == []


def test_a_trajectory_with_a_broken_value_says_that_it_gets_no_credit(tmp_path: Path):
    """To assign credit again, as for one that came after the credit, would not help."""
    steps = [*worked_example(), *trajectory("u", "A a B", cost=0.0)]
    app = open_page(credited(tmp_path / "s", steps), "trajectory", trajectory="u")
    assert "gets no credit: a value is null, or a reward or cost is out" in markdown_of(app)
    assert [warning.value for warning in app.warning] == []


def test_a_trajectory_that_came_after_the_credit_says_how_to_get_it(tmp_path: Path):
    credited(tmp_path / "s", two_tasks())
    late = trajectory("late", "A a B b C", success=True)
    store = write_store(tmp_path / "s", two_tasks(), late)
    app = open_page(store, "trajectory", task="t0", trajectory="late")
    assert "This rollout came after the credit" in app.warning[0].value
    command = f"graphcredit credit {store.root} --estimator graphgpo --run r0 --iteration 0"
    assert code(app)[0] == command


def test_a_log_without_a_value_is_shown_with_what_it_has(tmp_path: Path):
    table = step_table(
        row | {"trajectory_id": f"bad-{row['trajectory_id']}"} for row in worked_example()
    )
    for name in ("reward", "cost", "state", "action", "admissible_actions"):
        values = table[name].to_pylist()
        values[1] = ["go", None] if name == "admissible_actions" else None
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    store = write_store(tmp_path / "s", worked_example())
    pq.write_table(table, store.steps_dir("r0", 0) / "foreign.parquet")
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])))
    app = open_page(store, "trajectory", trajectory="bad-x", step=1)
    assert "with return 10." in markdown_of(app)
    assert "a value is null" in app.info[0].value
    assert acted(app) == "⟨null⟩"
    assert said(app)[2] == "⟨null⟩"
    assert any("reward null · cost null" in caption.value for caption in app.caption)
    table = queries.steps(store, run_id="r0", iteration=0, trajectory_id="bad-x")
    assert "<p>Reward null, cost null.</p>" in trajectory_page(table, title="r0")


def test_the_scores_of_states_are_shown_where_somebody_judged(tmp_path: Path):
    steps = worked_example()
    (judged,) = (row for row in steps if (row["trajectory_id"], row["step_index"]) == ("x", 1))
    judged["score"] = 0.25
    store = write_store(tmp_path / "s", steps)
    app = open_page(store, "trajectory", trajectory="x", step=1)
    assert any("reward 0 · cost 1 · score 0.25" in caption.value for caption in app.caption)
    app = open_page(store, "trajectory", trajectory="x", step=0)
    assert not any("score" in caption.value for caption in app.caption)
    table = queries.steps(store, run_id="r0", iteration=0, trajectory_id="x")
    assert "<p>Reward 0, cost 1, score 0.25.</p>" in trajectory_page(table, title="r0")


@pytest.mark.parametrize(
    ("returns", "wins", "word"),
    [
        ((0.0, 0.4, 0.8), (False, False, True), "ended"),
        ((0.4, 0.8, 0.8), (False, False, False), "ended"),
        ((0.0, 0.0, 1.0), (False, False, True), "failed"),
        ((0.0, 0.0, 0.0), (False, False, False), "failed"),
        ((0.0, 1.0, 0.5), (False, True, None), "ended"),
    ],
)
def test_a_score_is_no_failure(
    returns: tuple[float, ...], wins: tuple[bool | None, ...], word: str
):
    group = pa.table({"return": returns, "success": wins})
    assert outcome(False, is_graded=are_graded(group)) == word


def test_the_page_calls_no_score_a_failure(tmp_path: Path):
    rows = [row for i in range(3) for row in trajectory(f"p{i}", "A a B", rewards=[i / 10])]
    app = open_page(credited(tmp_path / "s", rows), "trajectory", trajectory="p1")
    assert "**ended, cut off** after 1 step with return 0.1." in markdown_of(app)
    (titles,) = (box.options for box in app.selectbox if box.label == "Trajectory")
    assert titles[1] == "ended, return 0.1, 1 step: p1"


def test_charts_of_a_trajectory_share_one_axis_and_gaps_are_gaps():
    rows = trajectory("x", "A a B b C c D d E")
    table = step_table([row for row in rows if row["step_index"] != 2])
    for name, values in (("goal_distance", [2.0, None, 1.0]), ("oracle_distance", [None] * 3)):
        column = pa.array(values, pa.float32())
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, column)
    table = table.append_column("reach_advantage", pa.array([0.5, -0.5, 0.1]))
    both = [
        course(table, column="reach_advantage", selected=1, limit=1.0),
        distances(table, selected=1),
    ]
    axes = [
        layer["encoding"]["x"]
        for chart in both
        for layer in chart["layer"]
        if layer["encoding"].get("x")
    ]
    assert [axis["scale"]["domain"] for axis in axes if "scale" in axis] == [[0, 1, 2, 3]] * 4
    drawn = both[1]["data"]["values"]
    assert [(row["step"], row["distance"]) for row in drawn] == [
        (0, 2.0),
        (1, None),
        (2, None),
        (3, 1.0),
    ]
    assert {row["kind"] for row in drawn} == {"seen distance"}
