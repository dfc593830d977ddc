"""Notes and tags, as two people write them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from graphcredit.store import Store
from graphcredit.store.parquet.notes import read_notes
from tests.viewer.flows.screen import acted, open_page

pytestmark = pytest.mark.browser

_HERE = {"run": "r0", "iteration": 0, "task": "t0", "trajectory": "x", "estimator": "graphgpo"}


@pytest.fixture
def notes(store: Store) -> Iterator[Path]:
    """Return the file of notes, which is not there yet; remove it at the end."""
    path = store.notes_path("r0", 0)
    yield path
    path.unlink(missing_ok=True)


def _write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Note on step 1").fill(text)
    page.get_by_role("button", name="Save").first.click()


def test_a_note_is_kept_shown_and_not_overwritten_by_who_has_not_seen_it(
    page: Page, store: Store, notes: Path
):
    open_page(page, "trajectory", **_HERE, step=1)
    other = page.context.new_page()
    open_page(other, "trajectory", **_HERE, step=1)
    for tab in (page, other):
        tab.get_by_text("Notes and tags").click()
    # A letter in a box is a letter, not a way to another step.
    box = page.get_by_role("textbox", name="Note on step 1")
    box.click()
    page.keyboard.type("jk *odd*")
    tags = page.get_by_role("combobox", name="Tags").first
    tags.click()
    page.keyboard.type("to do")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save").first.click()
    note = page.locator(".chat [aria-current=step] .note")
    expect(note).to_have_text("Note: [to do] jk *odd*")
    expect(acted(page)).to_have_text("b")
    (row,) = read_notes(store, "r0", 0).to_pylist()
    assert (row["note"], row["tags"], row["step_index"]) == ("jk *odd*", ["to do"], 1)

    _write(other, "mine")
    expect(other.get_by_text("Somebody changed this note meanwhile")).to_be_visible()
    expect(other.locator("pre").get_by_text("mine", exact=True)).to_be_visible()
    expect(other.get_by_role("textbox", name="Note on step 1")).to_have_value("jk *odd*")
    _write(other, "both")
    expect(other.locator(".chat [aria-current=step] .note")).to_have_text("Note: [to do] both")
    other.close()
    page.reload()
    expect(note).to_have_text("Note: [to do] both")
    (row,) = read_notes(store, "r0", 0).to_pylist()
    assert row["note"] == "both"
