"""Sentences of `why`, recounted from the raw log by other code than that which made them."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcredit
from graphcredit.credit.why.report import WhyReport, why_in
from graphcredit.credit.why.sentences import coded, sentence
from graphcredit.store.layout import open_store
from graphcredit.store.sql.catalog import with_views

LOG = Path("examples/orders.jsonl")
_COUNTS = re.compile(
    r"From the same state, (\d+) rollouts? did so and (.+?) won; (\d+) did something else"
    r"(?:, most often (.+),)? and (.+?) won \(([+-]\d+) ±"
)
_SHARES = {"all": 1.0, "none": 0.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recounted") / "store"
    graphcredit.import_log(LOG, folder)
    graphcredit.credit(folder)
    return folder


@pytest.fixture(scope="module")
def report(store: Path) -> WhyReport:
    return with_views(open_store(store), partial(why_in, most=60))


def _share(words: str) -> float:
    return _SHARES[words] if words in _SHARES else float(words.removesuffix("%")) / 100


def test_decisions_say_what_stands_in_the_columns(store: Path, report: WhyReport):
    steps = graphcredit.sql(
        store,
        "SELECT trajectory_id, task_id, step_index, state, action, trajectories.success "
        "FROM steps JOIN trajectories USING (run_id, iteration, task_id, trajectory_id)",
    ).to_dicts()
    at = {(row["trajectory_id"], row["step_index"]): row for row in steps}
    assert len(report.ranked.decisions) == 60
    for each in report.ranked.decisions:
        said = sentence(each)
        shown = at[each.trajectory_id, each.step_index]
        ended = "won" if shown["success"] else "failed"
        name = f"Step {each.step_index} of {ended} {each.trajectory_id}: {coded(shown['action'])}."
        assert said.startswith(name)
        there = [row for row in steps if _place(row) == _place(shown)]
        won = {row["trajectory_id"]: row["success"] for row in there}
        did = {row["trajectory_id"] for row in there if row["action"] == shown["action"]}
        match = _COUNTS.search(said)
        assert match is not None, said
        took, others = ([won[name] for name in side] for side in (did, won.keys() - did))
        assert (int(match[1]), int(match[3])) == (len(took), len(others))
        assert _share(match[2]) == pytest.approx(np.mean(took), abs=0.005)
        assert _share(match[5]) == pytest.approx(np.mean(others), abs=0.005)
        assert int(match[6]) == pytest.approx(100 * (np.mean(took) - np.mean(others)), abs=0.51)
        if match[4]:
            assert match[4] in {
                coded(row["action"]) for row in there if row["action"] != shown["action"]
            }


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["task_id"], row["state"]


def _calls(row: dict[str, Any]) -> list[str]:
    return [
        f"{call['function']['name']}({call['function']['arguments']})"
        for message in row["messages"]
        for call in message.get("tool_calls") or ()
    ]


def test_findings_say_what_stands_in_the_log(report: WhyReport):
    rows = [json.loads(line) for line in LOG.read_text().splitlines()]
    played = [(_calls(row), row["reward"] == 1.0) for row in rows]
    again = {each for each, _ in enumerate(played) if _most(played[each][0]) >= 3}
    looked = {n for n, (calls, _) in enumerate(played) if any("get_order(" in c for c in calls)}
    unpaid = {n for n in looked if not _after("get_order(", "refund(", played[n][0])}
    told = report.findings.findings
    everyone = set(range(len(rows)))
    for each, did, of in zip(
        told, (again, everyone - looked, unpaid), (everyone, everyone, looked), strict=True
    ):
        won = [played[n][1] for n in did]
        others = [played[n][1] for n in of - did]
        assert (each.num_with, each.num_without) == (len(won), len(others)), each.words
        assert (each.mean_with, each.mean_without) == (np.mean(won), np.mean(others))


def _most(calls: list[str]) -> int:
    return max((calls.count(call) for call in calls), default=0)


def _after(first: str, then: str, calls: list[str]) -> bool:
    last = max(n for n, call in enumerate(calls) if call.startswith(first))
    return any(call.startswith(then) for call in calls[last:])


def test_no_sign_contradicts_its_sentence(report: WhyReport):
    for found in report.findings.findings:
        assert found.effect < 0
        assert found.mean_with < found.mean_without
    for pooled in report.pooled:
        assert (pooled.took - pooled.others) * pooled.effect > 0
    for each in report.ranked.decisions:
        assert (each.took - (each.others or 0)) * each.credit > 0
