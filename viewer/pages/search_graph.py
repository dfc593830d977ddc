"""The Search graph page: the entities of a task, and the steps that retrieved or cited them."""

from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from graphcredit.store.parquet.er_graph import read_er_graph
from graphcredit.viewer.search import charts
from graphcredit.viewer.search.entities import Mention, TaskEntities, mentions, task_entities
from graphcredit.viewer.steps.choose import choose_steps
from graphcredit.viewer.steps.facts import value_of
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.charts import show_chart
from graphcredit.viewer.widgets.tables import choose_row, signed_number
from graphcredit.viewer.widgets.text import show_table


def show() -> None:
    """Show the page."""
    st.header("Search graph")
    folder = viewed_store().root / "er_graph"
    if not folder.is_dir():
        missing.no_er_graph()
        return
    with st.container(horizontal=True):
        steps = choose_steps()
    if steps is None:
        return
    files = tuple((file.name, file.stat().st_mtime_ns) for file in sorted(folder.glob("*.parquet")))
    known = _known(str(folder), files, steps["task_id"][0].as_py())
    if not known.entities:
        st.info("The entity-relation graph has no entities of this task.")
        return
    found = mentions(known, steps)
    _summary(known, found)
    _steps(steps, found)
    _around_the_answer(known, found)


@st.cache_data(max_entries=50, show_spinner=False)
def _known(folder: str, files: tuple[tuple[str, int], ...], task_id: str) -> TaskEntities:
    return task_entities(read_er_graph(viewed_store()), task_id)


def _summary(known: TaskEntities, found: Sequence[Mention]) -> None:
    answers = {entity.entity_id for entity in known.entities if entity.is_answer}
    steps = [m.step for m in found if m.entity.entity_id in answers and not m.is_citation]
    if not found:
        st.caption("This trajectory came across no entity of its task.")
    elif not answers:
        st.caption("No entity of this task is marked as its answer.")
    elif steps:
        st.caption(f"This trajectory first came across an answer at step {min(steps)}.")
    else:
        st.caption("This trajectory never came across an answer.")


def _steps(steps: pa.Table, found: Sequence[Mention]) -> None:
    st.subheader("Step by step")
    if found:
        show_chart(charts.approach(found, num_steps=steps.num_rows))

    def named(is_citation: bool) -> list[str]:
        return [
            ", ".join(
                f"{m.entity.name} ({'–' if m.entity.distance is None else m.entity.distance})"
                for m in found
                if m.step == step and m.is_citation == is_citation
            )
            for step in range(steps.num_rows)
        ]

    rows = pa.table(
        {
            "step_index": steps["step_index"],
            "action": steps["action"],
            "newly retrieved": named(False),
            "newly cited": named(True),
            "step reward": _values(steps, "sapo_step_reward"),
            "step advantage": _values(steps, "sapo_step_advantage"),
        }
    )
    number = signed_number(help="By SAPO; empty without its credit.")
    st.caption("The brackets hold the relations to the answer. Click a row to see the step.")
    row = choose_row(
        rows,
        rows.column_names,
        key="search_steps",
        title="Steps",
        config={
            "newly retrieved": st.column_config.TextColumn(width="large"),
            "step reward": number,
            "step advantage": number,
        },
    )
    if row is not None:
        selection.open_page("trajectory", step=row)


def _values(steps: pa.Table, column: str) -> list[float | None]:
    return [value_of(steps, column, row) for row in range(steps.num_rows)]


def _around_the_answer(known: TaskEntities, found: Sequence[Mention]) -> None:
    st.subheader("Around the answer")
    show_chart(charts.entity_map(known, found))
    if len(known.entities) > charts.MAX_ENTITIES:
        st.caption(
            f"{charts.MAX_ENTITIES} of {len(known.entities)} entities are drawn: answers, "
            "found entities, and entities near the answer."
        )
    retrieved = {m.entity.entity_id: m.step for m in found if not m.is_citation}
    cited = {m.entity.entity_id: m.step for m in found if m.is_citation}
    with st.expander(f"All {len(known.entities)} entities, nearest to the answer first"):
        show_table(
            pa.table(
                {
                    "entity": [entity.name for entity in known.entities],
                    "relations to the answer": [entity.distance for entity in known.entities],
                    "answer": [entity.is_answer for entity in known.entities],
                    "retrieved at step": [retrieved.get(e.entity_id) for e in known.entities],
                    "cited at step": [cited.get(e.entity_id) for e in known.entities],
                    "also called": [", ".join(e.names[1:]) for e in known.entities],
                }
            )
        )
