"""The Trajectory page: observation, thought, action and credit of each step."""

import streamlit as st

from graphcredit.credit.why.decisions import decision_of
from graphcredit.credit.why.sentences import sentence
from graphcredit.store.log_text import visible
from graphcredit.store.plural import counted
from graphcredit.viewer.chat.component import show_chat
from graphcredit.viewer.chat.transcript import conversation
from graphcredit.viewer.pages.parts.others import show_others
from graphcredit.viewer.pages.parts.pictures import show_seen
from graphcredit.viewer.queries.estimators import explanation
from graphcredit.viewer.steps import charts, facts
from graphcredit.viewer.steps.chat_data import drawn_messages
from graphcredit.viewer.steps.choose import choose_steps
from graphcredit.viewer.steps.html_export import trajectory_page
from graphcredit.viewer.steps.reasons import reasons
from graphcredit.viewer.steps.shown import Shown
from graphcredit.viewer.steps.why_of_task import why_of_task
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.charts import show_chart
from graphcredit.viewer.widgets.selection import after, current, link, select
from graphcredit.viewer.widgets.text import show_box, show_said, show_text


def show() -> None:
    """Show the page: what there is to say of the trajectory, of its step, and all its messages."""
    st.header("Trajectory")
    shown = choose_steps()
    if shown is None:
        return
    _headline(shown)
    if shown.estimator is None:
        _no_credit(shown)
    else:
        _charts(shown)
        missing.doubtful_group(shown.group)
    missing.doubtful_credit(**shown.where)
    _buttons(shown)
    if shown.estimator is not None:
        _why(shown)
    text, credit = st.columns([3, 2], gap="medium")
    with text:
        _conversation(shown)
        _states(shown)
    with credit:
        _numbers(shown)
    if shown.estimator is not None:
        show_others(shown)


def _headline(shown: Shown) -> None:
    """Say how the trajectory and its group ended, and offer ways on."""
    words = f"The rollout **{shown.ending}** after {counted(shown.table.num_rows, 'step')} with "
    words += f"return {facts.total(shown.table)}."
    first = shown.table.slice(0, 1).to_pylist()[0]
    rate, size = first["group_success_rate"], first["group_size"]
    if rate is not None:
        words += f" Of its group of {counted(size, 'rollout')}, {rate * size:.0f} succeeded."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        link("graph", "Its state graph")
        st.download_button(
            "As HTML",
            data=lambda: _as_html(shown),
            file_name="trajectory.html",
            mime="text/html",
            on_click="ignore",
            help="One file that needs no server and no network.",
        )


def _as_html(shown: Shown) -> str:
    """Return the file; it is made after the script, where address and cache are out of reach."""
    why = why_of_task(viewed_store(), **shown.where, task_id=shown.task)
    return trajectory_page(
        shown.table,
        title=f"{shown.where['run_id']}, iteration {shown.where['iteration']}",
        estimator=shown.estimator,
        why=why.get(shown.name),
    )


def _no_credit(shown: Shown) -> None:
    """Say why this trajectory has no credit by the chosen estimator."""
    store = viewed_store()
    if not shown.names:
        missing.no_credit(store, **shown.where)
    elif not facts.has_values(shown.table):
        st.info(
            "This rollout gets no credit: a value is null, or a reward or cost is out of range. "
            "`graphcredit check` names the value."
        )
    elif not facts.has_all_steps(shown.table):
        st.info("This rollout lacks steps or an end. Only complete ones get credit.")
    elif not facts.has_any(shown.table, "state_id"):
        what = "This rollout"
        missing.newer_steps(store, **shown.where, estimators=shown.names, what=what)
    else:
        st.info("This estimator gave this rollout no credit; choose another one.")


def _charts(shown: Shown) -> None:
    """Show the credit of each step, which a click selects, and distances where there are any."""
    assert shown.estimator is not None
    chart = charts.course(
        shown.table,
        column=f"{shown.estimator}_advantage",
        selected=shown.row,
        limit=facts.largest(shown.table, [shown.estimator]),
    )
    # With the step in its key, a click does not repeat at the next step.
    key = f"course_{shown.name}_{shown.row}"
    clicked = show_chart(chart, key=key, on_select="rerun", selection_mode="click")
    for point in clicked["selection"]["click"]:
        _go_to(int(point["step"]))
    if facts.has_any(shown.table, "goal_distance", "oracle_distance"):
        show_chart(charts.distances(shown.table, selected=shown.row))


def _go_to(row: int) -> None:
    """Show another step at once."""
    if after(step=row) != current():
        select(step=row)
        st.rerun()


def _buttons(shown: Shown) -> None:
    last = shown.table.num_rows - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        _button("Previous", max(shown.row - 1, 0), disabled=shown.row == 0, shortcut="K")
        _button("Next", min(shown.row + 1, last), disabled=shown.row == last, shortcut="J")
        st.markdown(f"**Step {shown.row}** of 0 … {last}", width="content")
        for name, row, value in shown.extremes:
            _button(f"{name}: step {row} ({value:+.2f})", row, disabled=row == shown.row)


def _button(title: str, row: int, *, disabled: bool, shortcut: str | None = None) -> None:
    st.button(
        title,
        on_click=lambda: select(step=row),
        disabled=disabled,
        shortcut=shortcut,
        key=f"go_{title.partition(':')[0]}",
    )


def _why(shown: Shown) -> None:
    """Say why the step has its credit: what others did here, and what the estimator compared."""
    assert shown.estimator is not None
    said = ask(explanation, **shown.where, estimator=shown.estimator)
    lines = reasons(shown.table, shown.row, shown.estimator, said)
    decision = None
    if "reach_advantage" in shown.table.column_names:
        decision = ask(
            decision_of,
            **shown.where,
            task_id=shown.task,
            trajectory_id=shown.name,
            step_index=shown.index,
        )
    if decision is None:
        show_text("\n".join(lines))
        return
    show_said(sentence(decision))
    with st.expander(f"How {shown.estimator} computes it", key="formula"):
        show_text("\n".join(lines))


def _conversation(shown: Shown) -> None:
    drawn = drawn_messages(
        ask(conversation, **shown.where, trajectory_id=shown.name),
        shown.table,
        step=shown.row,
        estimator=shown.estimator,
    )
    show_chat(
        drawn | {"wanted": st.query_params.get("find", "")}, on_step=lambda row: select(step=row)
    )
    show_seen(**shown.where, trajectory_id=shown.name, step_index=shown.index)


def _states(shown: Shown) -> None:
    """Show what the estimators take for the state, and what the environment accepted there."""
    with st.expander("State and next state"):
        show_box(shown.step["state"], key="state")
        show_box(shown.step["next_state"], key="next_state")
    if accepted := shown.step["admissible_actions"]:
        with st.expander(f"{len(accepted)} admissible actions"):
            show_box("\n".join(map(visible, accepted)), key="admissible")


def _numbers(shown: Shown) -> None:
    """Show the numbers of the step: as logged, then the credit by each estimator."""
    step = shown.step
    ways = {"seen distance": facts.seen_change(step), "true distance": facts.true_change(step)}
    told = [f"{name} {way}" for name, way in ways.items() if way is not None]
    st.caption(" · ".join([*facts.shown_values(step), *told]))
    if shown.estimator is None:
        return
    credited = facts.estimators(shown.table)
    names = [shown.estimator, *(name for name in credited if name != shown.estimator)]
    bars = facts.bars(shown.table, shown.row, names)
    show_chart(charts.credit(bars, limit=facts.largest(shown.table, names)))
