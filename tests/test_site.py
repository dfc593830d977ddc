"""The site: strict links, no name of another host, and all that is generated."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphcredit.cli.table import COMMANDS
from graphcredit.credit.estimators.table import ESTIMATORS
from graphcredit.store import connect, open_store
from graphcredit.store.provenance.freshness import FRESHNESS_SCHEMA
from graphcredit.store.sql.views import duckdb_type
from tests.worlds import worked_example, write_store
from tools.derived_columns import DERIVED_COLUMNS

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_site_is_built_with_strict_links_and_loads_nothing_from_another_host(tmp_path: Path):
    pytest.importorskip("material", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(COMMANDS) + len(ESTIMATORS)
    for page in pages:
        loaded = re.findall(
            r"<(?:script|link|img|source|iframe)[^>]+(?:src|srcset|href)=\"([^\"]+)\"",
            page.read_text(encoding="utf-8"),
        )
        assert loaded
        assert [address for address in loaded if "//" in address] == [], page
    made = tmp_path / "site" / "reference"
    texts = {str(p.relative_to(made)): p.read_text("utf-8") for p in made.rglob("*.html")}
    names = {f"commands/{name}.html" for name in COMMANDS}
    assert names | {f"estimators/{row.name}.html" for row in ESTIMATORS} < texts.keys()
    assert "<code>--state TEXT</code>" in texts["commands/import.html"]
    assert 'id="trajectories"' in texts["columns.html"]
    # All steps of a won rollout have (1 - 1/2) / sd of the returns 1, 1, 0, 0, and sd is 0.577.
    assert re.search(r"kitchen: take</td>\s*<td[^>]*>\+0\.87<", texts["estimators/grpo.html"])


def test_computed_views_have_the_columns_that_are_told(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    with connect(open_store(store.root)) as connection:
        described = {
            view: connection.sql(f"DESCRIBE {view}").fetchall()
            for view in ("trajectories", "groups")
        }
    told = {
        view: [(column.name, duckdb_type(column.type)) for column in columns]
        for view, columns in DERIVED_COLUMNS.items()
    }
    assert told.pop("credit_state") == [
        (field.name, duckdb_type(field.type)) for field in FRESHNESS_SCHEMA
    ]
    assert told == {view: [row[:2] for row in rows] for view, rows in described.items()}
