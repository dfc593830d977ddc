"""What a person does in front of the viewer, and what stands on the screen."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
from playwright.sync_api import Locator, Page, expect

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query

_HEADER, _ROW = 36, 35
"""Heights in a table, in pixels; tables are drawn, so a click needs a place."""

_WORDS = ", ".join(f"[data-testid={name}]" for name in ("stMarkdownContainer", "stCode", "stText"))
"""Where words of a page stand; those in charts come later than the rest."""

_CYTOSCAPE = "root => root[Symbol.for('graphcredit.graph')].cy"


def ask(store: Store, sql: str, *parameters: object) -> pa.Table:
    """Return what the store itself says of run r0."""
    return run_trusted_query(store, sql, list(parameters), run_id="r0").table


def open_page(page: Page, name: str, **selected: object) -> None:
    """Type the address of a page."""
    path = "" if name == "runs" else name
    page.goto(f"/{path}?{urlencode(selected)}")
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    _settle(page)


def main(page: Page) -> Locator:
    """Return everything but the menu."""
    return page.get_by_test_id("stMain")


def choose(page: Page, title: str, option: str) -> None:
    """Choose an option of a select box."""
    page.get_by_role("combobox", name=title, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def column(page: Page, title: str, table: int = 0) -> Locator:
    """Return the cells of a table's column, which a screen reader finds behind the drawing."""
    frame = page.get_by_test_id("stDataFrame").nth(table)
    heading = frame.locator("th").filter(has_text=re.compile(f"^{re.escape(title)}$"))
    index = heading.get_attribute("aria-colindex")
    return frame.locator(f"td[aria-colindex='{index}']")


def cells(page: Page, title: str, table: int = 0) -> list[str]:
    """Return the values of a table's column."""
    return column(page, title, table).all_text_contents()


def click_row(page: Page, row: int, table: int = 0) -> None:
    """Select a row of a table."""
    frame = page.get_by_test_id("stDataFrame").nth(table)
    expect(frame.get_by_test_id(f"glide-cell-1-{row}")).to_be_attached()
    place = {"x": 16, "y": _HEADER + _ROW * row + _ROW // 2}
    frame.locator(".dvn-scroller").click(position=place)


def in_graph(page: Page, script: str, argument: Any = None) -> Any:
    """Return what a script says of the drawn graph, `(cy, argument) => …`."""
    graph = page.locator(".graph[data-ready]")
    return graph.evaluate(f"(root, given) => ({script})(({_CYTOSCAPE})(root), given)", argument)


def acted(page: Page) -> Locator:
    """Return the action of the step that is shown in the conversation."""
    return page.locator(".chat [aria-current=step] .text").last


def click_in_graph(page: Page, key: str) -> None:
    """Click a state, a chain or the middle of a transition."""
    of = "renderedMidpoint" if key.startswith("e") else "renderedPosition"
    place = in_graph(page, f"(cy, key) => cy.getElementById(key).{of}()", key)
    canvas = page.locator(".graph .canvas")
    # Cytoscape learns of scrolling a frame later.
    canvas.evaluate("""canvas => new Promise(go => {
        canvas.scrollIntoView({block: "nearest"});
        requestAnimationFrame(() => setTimeout(go));
    })""")
    canvas.click(position=place)


def marked(page: Page, name: str) -> set[str]:
    """Return what is `chosen` in the graph, or on the `path` that is laid over it."""
    return set(in_graph(page, "(cy, name) => cy.$(`.${name}`).map(e => e.id())", name))


def is_drawn(page: Page) -> bool:
    """Return whether there is ink on the graph's canvas."""
    script = """canvases => canvases.some(canvas => canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value > 0))"""
    return page.locator(".graph .canvas canvas").evaluate_all(script)


def download(page: Page, button: str, to: Path) -> Path:
    """Press a button that gives a file; return where it was put."""
    with page.expect_download() as found:
        page.get_by_role("button", name=button, exact=True).click()
    path = to / found.value.suggested_filename
    found.value.save_as(path)
    return path


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until what a CSS selector describes has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"the focus must come to {selector}, and did not in 80 steps")


def expect_at(page: Page, name: str, **selected: object) -> None:
    """Wait until the address is that of a page with these selections, among others."""
    parts = (re.escape(urlencode({key: value})) for key, value in selected.items())
    ahead = "".join(f"(?=.*[?&]{part}(&|$))" for part in parts)
    expect(page).to_have_url(re.compile(rf"{ahead}.*/{name}\?"))


def expect_same_after_reload(page: Page) -> None:
    """Reload, and wait until the page shows the words and choices that it showed before."""
    _settle(page)
    words, boxes = main(page).locator(_WORDS), page.get_by_role("combobox")
    address, texts = page.url, words.all_text_contents()
    choices = [box.input_value() for box in boxes.all()]
    page.reload()
    expect(words).to_have_text(texts)
    for box, choice in zip(boxes.all(), choices, strict=True):
        expect(box).to_have_value(choice)
    assert page.url == address


def _settle(page: Page) -> None:
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
