"""Complete an address that names a trajectory and not where it is."""

import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.trajectory import places_of
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import code_label


def complete_address(store: Store) -> None:
    """Put run, iteration and task of the address's trajectory into the address.

    A trajectory's id is unique in an iteration; of several, the last iteration of the last run
    counts. What the address does say restricts the search.
    """
    chosen = selection.current()
    name = chosen.trajectory
    if name is None or None not in (chosen.run, chosen.iteration, chosen.task):
        return
    runs = (
        store.runs() if chosen.run is None else [run for run in store.runs() if run == chosen.run]
    )
    found = [
        {"run": run, **place}
        for run in reversed(runs)
        for place in ask(
            places_of, run_id=run, iteration=None, trajectory_id=name, number=chosen.iteration
        ).to_pylist()
    ]
    if not found:
        st.warning(f"The store has no trajectory {code_label(name)} there.")
        return
    if len(found) > 1:
        st.caption(f"{len(found)} trajectories have this id: the last one is shown.")
    selection.select(**found[0], trajectory=name, step=chosen.step)
