"""What every page does alike: with an empty store, without credit, with markup, and explained."""

from pathlib import Path

import pytest

from graphcredit.store import create_store
from graphcredit.viewer.sitemap import PAGES
from tests.viewer.browser import boxes, component, markdown_of, open_page
from tests.viewer.stores import HOSTILE, Shared, hostile
from tests.worlds import worked_example, write_store


@pytest.mark.parametrize("page", ["runs", "tasks", "graph", "trajectory", "search"])
def test_an_empty_store_says_how_to_fill_it(tmp_path: Path, page: str):
    app = open_page(create_store(tmp_path / "s"), page)
    assert "no steps yet" in app.info[0].value
    assert app.code[0].value.startswith("graphcredit collect ")
    assert not app.dataframe


@pytest.mark.parametrize("page", ["tasks", "graph", "trajectory"])
def test_without_credit_the_command_is_named(tmp_path: Path, page: str):
    app = open_page(write_store(tmp_path / "s", worked_example()), page)
    assert "no credit yet" in markdown_of(app)
    assert app.code[0].value.startswith("graphcredit credit ")


@pytest.mark.parametrize(
    ("page", "selected"),
    [
        ("runs", {}),
        ("tasks", {}),
        ("graph", {}),
        ("graph", {"at": "n0"}),
        ("graph", {"at": "e0-2"}),
        ("trajectory", {"trajectory": "y" + HOSTILE}),
    ],
)
def test_text_of_a_log_is_never_markdown(shared: Shared, page: str, selected: dict[str, str]):
    app = open_page(shared(hostile, "graphgpo", "gigpo"), page, **selected)
    for markup in ("<script>", "![x](", "\x1b"):
        assert markup not in markdown_of(app)
    texts = boxes(app) + [text.value for text in app.text] + [code.value for code in app.code]
    for table in app.dataframe:
        texts += [cell for row in table.value.to_numpy().tolist() for cell in row]
    if page == "trajectory":
        parts = [part for m in component(app, "chat")["messages"] for part in m["parts"]]
        texts += [part["text"] for part in parts]
    shown = [text for text in texts if isinstance(text, str)]
    assert not any("\x1b" in text for text in shown)
    assert page in ("runs", "graph") or any("␛[2J" in text for text in shown)


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("name", "title"), PAGES.items())
def test_every_page_is_explained_and_pictured(name: str, title: str):
    text = (DOCS / "viewer.md").read_text(encoding="utf-8")
    assert f"\n## {title}\n" in text
    for ground in ("light", "dark"):
        picture = f"viewer-{name.replace('_', '-')}-{ground}.png"
        assert f'="{picture}"' in text
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")
