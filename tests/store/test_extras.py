"""The command that installs an extra fits how the package was installed."""

import json
from importlib import metadata
from types import SimpleNamespace

import pytest

from graphcredit.store.extras import how_to_install


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, "pip install 'graphcredit[view]'"),
        (
            {"url": "file:///home/me/graphcredit", "dir_info": {"editable": True}},
            "pip install -e '/home/me/graphcredit[view]'",
        ),
        (
            {"url": "file:///tmp/graphcredit-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'graphcredit[view] @ file:///tmp/graphcredit-0.1.0-py3-none-any.whl'",
        ),
    ],
)
def test_the_command_fits(
    source: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
):
    told = SimpleNamespace(read_text=lambda _: json.dumps(source) if source else None)
    monkeypatch.setattr(metadata, "distribution", lambda _: told)
    assert how_to_install("view") == command
