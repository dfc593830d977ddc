"""Texts of a log that are hard to parse: whoever reads them goes on, and takes them as text."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle
from graphcredit.viewer.chat.transcript import conversation
from tests.cli.in_process import run
from tests.examples import nightly
from tests.worlds import trajectory, write_store

DEEP = 2_000
HOSTILE = {
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep lists": '["a",' * DEEP + "1" + "]" * DEEP,
    "as deep as Python parses": '{"a":' * 900 + "1" + "}" * 900,
    "never closed": '{"a":[1,' * DEEP,
    "a long integer": '{"a":' + "7" * 5_000 + "}",
    "long numbers of lines": f"{'7' * 5_000} one\n{'8' * 5_000} two\n",
    "half a character": r'{"a": "\ud800", "\udfff": 1}',
    "no number": '{"a": NaN, "b": [Infinity, -Infinity, 1e999]}',
    "deep markup": "<a>" * DEEP + "x" + "</a>" * DEEP,
    "in a string in a string": '{"a": "{\\"a\\": \\"[1,2,{\\\\\\"b\\\\\\": 1}]\\"}"}',
}
RULES = r"""
[[ignore]]
text = '"a": *[0-9.]*'

[[keep]]
text = '"b": *\{.*\}'
"""


@pytest.mark.parametrize(
    ("merge", "rules"),
    [("segments", RULES), nightly("exact", RULES), nightly("segments", ""), nightly("exact", "")],
)
def test_a_text_that_cannot_be_parsed_is_text(tmp_path: Path, merge: str, rules: str):
    store = _hostile_store(tmp_path / "store")
    store.state_rules_path.write_text(rules)
    assert {v.rule.name for v in check_store(store).violations} == {"extra_object"}
    settings = CreditSettings(estimators=configure(["graphgpo"]), merge=MergeSettings(merge=merge))
    assign_credit(store, settings)
    (shard,) = store.shards()
    assert None not in pq.read_table(shard.credit_path)["graphgpo_advantage"].to_pylist()
    assert audit(store).findings
    for name in HOSTILE:
        told = conversation(store, run_id="r0", iteration=0, trajectory_id=f"{name} 0")
        assert len(told) > 2
    write_bundle(store, tmp_path / "bundle", BundleChoice())
    assert run("states", store.root, "--set", "effects").exit_code == 0


def _hostile_store(root: Path) -> Store:
    """Return a store with a group of each text: its states, actions and messages."""
    rows: list[dict[str, Any]] = []
    for name, text in HOSTILE.items():
        states = [f"{text} {number}" for number in (1, 2, 3)]
        extra = json.dumps({"message": {}, "seen": [text, {"role": "tool", "content": text}]})
        for number, is_success in enumerate((True, False, True)):
            path = [states[0], f"look({text})", states[1], "go", f"{states[2]} {number}"]
            rows += trajectory(
                f"{name} {number}", path, success=is_success, extra=extra, task_id=name
            )
            rows[-1]["extra"] = text
    return write_store(root, rows)
