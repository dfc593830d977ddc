"""The Trajectory page: observation, thought, action and credit of each step."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.credit.why.decisions import decision_of
from graphcredit.credit.why.sentences import sentence
from graphcredit.store.plural import counted
from graphcredit.viewer.browser_fixes import folded
from graphcredit.viewer.chat.component import show_chat
from graphcredit.viewer.chat.transcript import conversation
from graphcredit.viewer.pages.parts.all_steps import show_all_steps
from graphcredit.viewer.pages.parts.others import show_others
from graphcredit.viewer.pages.parts.pictures import show_seen
from graphcredit.viewer.pages.parts.two_rollouts import beside_link
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.queries.estimators import estimators, words_of
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.truth import (
    MARKS,
    progress_of,
    seen_change,
    true_change,
    verdict,
)
from graphcredit.viewer.steps import charts
from graphcredit.viewer.steps import facts as step_facts
from graphcredit.viewer.steps.chat_data import drawn_messages
from graphcredit.viewer.steps.choose import choose_steps
from graphcredit.viewer.steps.html_export import trajectory_page
from graphcredit.viewer.steps.reasons import GroupSteps, reasons
from graphcredit.viewer.steps.side_by_side import winners
from graphcredit.viewer.steps.why_of_task import why_of_task
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.charts import show_chart
from graphcredit.viewer.widgets.note_words import NoteWords, words_of_trajectory
from graphcredit.viewer.widgets.notes import notes_of, show_notes
from graphcredit.viewer.widgets.selection import after, choose_estimator, current, link, select
from graphcredit.viewer.widgets.text import show_box, show_text, visible


def show() -> None:
    """Show the page."""
    st.header("Trajectory")
    with folded("trajectory"), st.container(horizontal=True):
        table = choose_steps()
        if table is None:
            return
        where = _place()
        names = ask(estimators, **where)
        estimator = choose_estimator(names)
    step = _step(table)
    notes = notes_of(**where)
    noted = words_of_trajectory(notes, table["trajectory_id"][0].as_py())
    _headline(table, estimator, noted)
    if estimator is None:
        missing.no_credit(viewed_store(), where["run_id"], where["iteration"])
    elif estimator not in step_facts.estimators(table):
        _no_credit_here(table, names)
        estimator = None
    else:
        _course(table, estimator, step)
    missing.doubtful_credit(**where)
    if estimator is not None:
        steps = ask(task_steps, **where, task_id=current().task)
        missing.doubtful_group(steps)
        if winners(steps, table["trajectory_id"][0].as_py()).num_rows:
            words = "From this step: beside the nearest rollout that won"
            beside_link(words, step=_index(table, step))
    _buttons(table, estimator, step)
    here = None if estimator is None else _here(table, estimator, step)
    if estimator is not None and here is not None:
        _why(table, step, estimator)
    text, credit = st.columns([3, 2], gap="medium")
    with text:
        name = table["trajectory_id"][0].as_py()
        messages = ask(conversation, **where, trajectory_id=name)
        drawn = drawn_messages(
            messages,
            table,
            step=step,
            estimator=estimator,
            notes=noted,
            as_markdown=st.toggle("Markdown", key="as_markdown", help="Links stay text."),
        )
        show_chat(drawn, on_step=lambda row: select(step=row))
        show_seen(**where, trajectory_id=name, step_index=_index(table, step))
        _state(table, step)
    with credit:
        _numbers(table, estimator, step)
        show_notes(table, step, notes)
    if here is not None:
        show_others(here, table, step)
    show_all_steps(table, step, noted, go_to=_go_to)


def _place() -> dict[str, Any]:
    """Return the run and the iteration that were chosen."""
    chosen = current()
    return {"run_id": chosen.run, "iteration": chosen.iteration}


def _index(table: pa.Table, step: int) -> int:
    return table["step_index"][step].as_py()


def _no_credit_here(table: pa.Table, names: Sequence[str]) -> None:
    """Say why this trajectory has no credit by the chosen estimator."""
    if not step_facts.has_values(table):
        st.info(
            "This trajectory gets no credit: a value is null, or a reward or cost is out of range. "
            "`graphcredit check` names the value."
        )
    elif not step_facts.has_all_steps(table):
        st.info("This trajectory lacks steps or an end. Only complete ones get credit.")
    elif table["state_id"].null_count == table.num_rows:
        missing.newer_steps(viewed_store(), **_place(), estimators=names, what="This trajectory")
    else:
        st.info("This estimator gave this trajectory no credit; choose another one.")


def _step(table: pa.Table) -> int:
    """Return the row of the step of the URL."""
    wanted = current().step or 0
    if wanted >= table.num_rows:
        st.warning(f"The trajectory has {counted(table.num_rows, 'step')}: the last one is shown.")
        wanted = table.num_rows - 1
        select(step=wanted)
    return wanted


def _headline(table: pa.Table, estimator: str | None, noted: NoteWords) -> None:
    rewards = step_facts.total(table)
    length = counted(table.num_rows, "step")
    group = ask(queries.trajectories, **_place(), task_id=current().task)
    ending = step_facts.ending(table, is_graded=step_facts.are_graded(group))
    words = f"The trajectory **{ending}** after {length} with return {rewards}."
    rate = table["group_success_rate"][0].as_py()
    if rate is not None:
        size = table["group_size"][0].as_py()
        words += f" Of its group of {size}, {rate * size:.0f} succeeded."
    # The file is written after the script, where address and cache are out of reach.
    here: Any = {**_place(), "task_id": current().task}
    name = table["trajectory_id"][0].as_py()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        link("graph", "Its state graph")
        st.download_button(
            "As HTML",
            data=lambda: trajectory_page(
                table,
                title=f"{here['run_id']}, iteration {here['iteration']}",
                estimator=estimator,
                notes=noted,
                why=why_of_task(viewed_store(), **here).get(name),
            ),
            file_name="trajectory.html",
            mime="text/html",
            on_click="ignore",
            help="One file that needs no server and no network.",
        )


def _course(table: pa.Table, estimator: str, step: int) -> None:
    chart = charts.course(
        table,
        column=f"{estimator}_advantage",
        selected=step,
        limit=step_facts.largest(table, [estimator]),
    )
    clicked = show_chart(
        chart, key=_key("course", table, step), on_select="rerun", selection_mode="click"
    )
    for point in clicked["selection"]["click"]:
        _go_to(step=int(point["step"]))
    known = [table[name].null_count for name in ("goal_distance", "oracle_distance")]
    if min(known) < table.num_rows:
        show_chart(charts.distances(table, selected=step))


def _go_to(**changes: object) -> None:
    """Show another step at once.

    The key of a clicked widget includes the step, so that the click does not repeat at the next
    step.
    """
    if after(**changes) != current():
        select(**changes)
        st.rerun()


def _key(name: str, table: pa.Table, step: int) -> str:
    return f"{name}_{table['trajectory_id'][step].as_py()}_{step}"


def _buttons(table: pa.Table, estimator: str | None, step: int) -> None:
    last = table.num_rows - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        _go("Previous", max(step - 1, 0), disabled=step == 0, shortcut="K")
        _go("Next", min(step + 1, last), disabled=step == last, shortcut="J")
        st.markdown(f"**Step {step}** of 0 … {last}", width="content")
        for name, index, value in step_facts.extreme_steps(table, estimator) if estimator else ():
            _go(f"{name}: step {index} ({value:+.2f})", index, disabled=step == index)


def _go(title: str, step: int, *, disabled: bool, shortcut: str | None = None) -> None:
    st.button(
        title,
        on_click=lambda: select(step=step),
        disabled=disabled,
        shortcut=shortcut,
        key=f"go_{title.partition(':')[0]}",
    )


def _why(table: pa.Table, step: int, estimator: str) -> None:
    words = ask(words_of, **_place(), estimator=estimator)
    steps = ask(task_steps, **_place(), task_id=current().task)
    lines = reasons(
        table,
        step,
        estimator,
        explanation=words.explanation,
        group=GroupSteps(steps, penalty=words.penalty),
    )
    decision = None
    if "reach_advantage" in table.column_names:
        decision = ask(
            decision_of,
            **_place(),
            task_id=current().task,
            trajectory_id=current().trajectory,
            step_index=table["step_index"][step].as_py(),
        )
    if decision is None:
        show_text("\n".join(lines))
        return
    show_text(sentence(decision))
    with st.expander(f"How {estimator} computes it", key="formula"):
        show_text("\n".join(lines))


def _state(table: pa.Table, step: int) -> None:
    """Show what the estimators take for the state, and what the environment accepted there."""
    row = table.slice(step, 1).to_pylist()[0]
    with st.expander("State and next state"):
        show_box(row["state"], key="state")
        show_box(row["next_state"], key="next_state")
    if row["admissible_actions"]:
        with st.expander(f"{len(row['admissible_actions'])} admissible actions"):
            show_box("\n".join(map(visible, row["admissible_actions"])), key="admissible")


def _numbers(table: pa.Table, estimator: str | None, step: int) -> None:
    row = table.slice(step, 1).to_pylist()[0]
    facts = step_facts.shown_values(row)
    if (seen := seen_change(row)) is not None:
        facts.append(f"seen distance {seen}")
    if (true := true_change(row)) is not None:
        facts.append(f"true distance {true}")
    st.caption(" · ".join(facts))
    if estimator is None:
        return
    if said := verdict(row[f"{estimator}_advantage"], progress_of(row)):
        st.caption(f"{MARKS[said]} The advantage {said} with the true progress.")
    credited = step_facts.estimators(table)
    names = [estimator, *(name for name in credited if name != estimator)]
    bars = step_facts.bars(table, step, names)
    show_chart(charts.credit(bars, limit=step_facts.largest(table, names)))


def _here(table: pa.Table, estimator: str, step: int) -> dict[str, Any] | None:
    """Return the query arguments for the state of a step; None if it has no state."""
    state_id = table["state_id"][step].as_py()
    if state_id is None:
        return None
    return {**_place(), "task_id": current().task, "state_id": state_id, "estimator": estimator}
