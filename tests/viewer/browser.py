"""The viewer under Streamlit's AppTest: the whole app, opened at one page."""

# pyright: reportPrivateUsage=false

import json
import os
import re
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block
from streamlit.util import calc_hash

from graphcredit.store import Store
from graphcredit.viewer import sitemap
from graphcredit.viewer.config import STORE_VARIABLE, script

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def open_page(store: Store, name: str, **params: object) -> AppTest:
    """Return the app after its first run at `/<name>?<params>`, which raised nothing."""
    os.environ[STORE_VARIABLE] = str(store.root)
    return go(AppTest.from_file(script(), default_timeout=120), name, **params)


def go(app: AppTest, name: str, **params: object) -> AppTest:
    """Open a page in the same session: with no parameters it is a click in the menu."""
    # AppTest can only name pages that are files; ours are functions.
    app._page_hash = calc_hash(name)
    app.query_params.clear()
    for key, value in params.items():
        app.query_params[key] = str(value)
    app.run()
    assert not app.exception
    return app


def opened(app: AppTest, key: str) -> AppTest:
    """Return the app after something that opens by a click was opened."""
    app.session_state[f"open_{key}"] = True
    return app.run()


def page_of(app: AppTest) -> str:
    """Return the name of the page that the last run ended on."""
    names = {calc_hash(name): name for name in sitemap.PAGES}
    return names[app._finished_page_script_hash]


def boxes(part: AppTest | Block) -> list[str]:
    """Return the texts in boxes on a page, or on a part of it."""
    found = (element.proto for element in part.get("bidi_component"))
    return [json.loads(p.json)["text"] for p in found if p.component_name == "graphcredit_box"]


def component(app: AppTest, name: str) -> dict[str, Any]:
    """Return what one of our own components was given."""
    (found,) = (
        element.proto
        for element in app.get("bidi_component")
        if element.proto.component_name == f"graphcredit_{name}"
    )
    return json.loads(found.json)


def click_row(app: AppTest, key: str, row: int) -> AppTest:
    """Select a row of the table of that key."""
    app.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return app.run()


def markdown_of(app: AppTest) -> str:
    """Return everything on the page that Streamlit reads as Markdown, without inline code."""
    shown = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    texts = [element.value for kind in shown for element in kind]
    titles = [element.value for kind in (app.header, app.subheader) for element in kind]
    widgets = (app.button, app.selectbox, app.multiselect, app.text_input, app.expander)
    labels = [element.label for kind in widgets for element in kind]
    links = [link.proto.label for link in app.get("page_link")]
    return _CODE.sub("", "\n".join(map(str, (*texts, *titles, *labels, *links))))
