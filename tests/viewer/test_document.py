"""The document of the viewer has every page, with a picture for each ground."""

from pathlib import Path

import pytest

from graphcredit.viewer.sitemap import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("name", "title"), PAGES.items())
def test_every_page_is_explained_and_pictured(name: str, title: str):
    text = (DOCS / "viewer.md").read_text(encoding="utf-8")
    assert f"\n## {title}\n" in text
    for ground in ("light", "dark"):
        picture = f"viewer-{name.replace('_', '-')}-{ground}.png"
        assert f'="{picture}"' in text
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")
