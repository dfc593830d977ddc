"""Messages about missing or broken data, with the command that makes or repairs it."""

import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import streamlit as st

from graphcredit.store.errors import GraphcreditError
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import credit_doubts
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.doubts import doubts_of_steps
from graphcredit.viewer.widgets.text import show_code


def no_steps(store: Store) -> None:
    """Say that the store has no shard: it is empty, or its first steps are in spools."""
    if store.spools():
        st.info(
            "The first steps of this store are being recorded: reload this page when a shard is "
            "full, or the recorder is closed. If the recorder was killed, recover its steps:"
        )
        _command(store, "check", "--recover")
        return
    st.info("This store has no steps yet. Play games, or import a log; then reload this page.")
    _command(store, "collect", "--env textworld --policy oracle:0.3 --tasks 16")


def no_credit(store: Store, run_id: str, iteration: int) -> None:
    """Say that an iteration has no credit."""
    st.info(
        "This iteration has no credit yet, so there are no graphs and no advantages. "
        "Assign it, then reload this page."
    )
    _command(store, "credit", f"--run {shlex.quote(run_id)} --iteration {iteration}")


def newer_steps(
    store: Store, run_id: str, iteration: int, *, estimators: Sequence[str], what: str
) -> None:
    """Say that steps were recorded after credit was assigned.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        estimators: The estimators that assigned credit.
        what: Subject of the sentence, for example "This trajectory"; never text from a log.
    """
    st.warning(
        f"{what} came after the credit, which is relative to the whole group. "
        "Assign it again, then reload this page."
    )
    names = " ".join(f"--estimator {shlex.quote(name)}" for name in estimators)
    _command(store, "credit", f"{names} --run {shlex.quote(run_id)} --iteration {iteration}")


def doubtful_credit(run_id: str, iteration: int) -> None:
    """Show which estimators' credit of an iteration is stale or mixed, if any."""
    for line in ask(credit_doubts, run_id=run_id, iteration=None, number=iteration):
        doubtful(line)


def doubtful_group(steps: pa.Table) -> None:
    """Warn of a group whose credit says little."""
    if said := doubts_of_steps(steps):
        st.warning(" ".join(doubt.sentence for doubt in said))


def doubtful(line: str) -> None:
    """Warn about credit; shown as code, since the line may have names from a foreign writer."""
    st.warning("Do not rely on all of this credit:")
    show_code(line)


@contextmanager
def guarded(what: str) -> Generator[None]:
    """Show a GraphcreditError in place of the element that it broke; the page continues.

    Args:
        what: Name of the element, for example "The table of tasks"; never text from a log.
    """
    try:
        yield
    except GraphcreditError as error:
        st.error(f"{what} cannot be shown:")
        show_code(str(error))


def _command(store: Store, name: str, options: str) -> None:
    show_code(f"graphcredit {name} {shlex.quote(str(store.root))} {options}")
