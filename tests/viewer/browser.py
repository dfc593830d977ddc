"""The viewer under Streamlit's AppTest: the whole app, opened at one page."""

# pyright: reportPrivateUsage=false

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from graphcredit.store import Store
from graphcredit.viewer import sitemap
from graphcredit.viewer.config import STORE_VARIABLE, script


def open_page(
    monkeypatch: pytest.MonkeyPatch, store: Store, name: str, **params: object
) -> AppTest:
    """Return the app after its first run at `/<name>?<params>`."""
    monkeypatch.setenv(STORE_VARIABLE, str(store.root))
    app = AppTest.from_file(script(), default_timeout=30)
    # AppTest can only name pages that are files; ours are functions.
    app._page_hash = calc_hash(sitemap.PAGES[name].name)
    for key, value in params.items():
        app.query_params[key] = str(value)
    return app.run()


def shown_text(app: AppTest) -> str:
    """Return everything that Streamlit would read as Markdown on the page."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.header, app.subheader)
    return "\n".join(str(element.value) for kind in kinds for element in kind)
