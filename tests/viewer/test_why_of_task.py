"""The sentence of a step is the same on the page, in files and in a bundle."""

from html import escape
from pathlib import Path
from typing import Any

import graphcredit
from graphcredit.credit.why.decisions import decision_of, decisions_of_task
from graphcredit.credit.why.sentences import sentence
from graphcredit.store.progress import silent
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle
from graphcredit.viewer.steps.why_of_task import why_of_task
from tests.credit.why.test_decisions import store_of
from tests.viewer.browser import open_page


def test_every_step_has_its_sentence_everywhere(tmp_path: Path):
    store = store_of(tmp_path / "store")
    (run,) = store.runs()
    here: Any = {"run_id": run, "iteration": 0, "task_id": "t"}
    all_steps = decisions_of_task(store, **here)
    assert len(all_steps) == 3 * 2 + 3 + 3 * 2 + 3
    for each in all_steps:
        step: Any = {"trajectory_id": each.trajectory_id, "step_index": each.step_index}
        assert decision_of(store, **here, **step) == each
    (name,) = {each.trajectory_id for each in all_steps if each.action == "sleep"}
    why = why_of_task(store, **here)[name]
    own = {each.step_index: sentence(each) for each in all_steps if each.trajectory_id == name}
    assert why.sentences == own
    assert why.formula.startswith("reach is outcome less baseline")

    page = graphcredit.show(store, trajectory_id=name).html
    report = write_bundle(store, tmp_path / "bundle", BundleChoice(), silent)
    files = [path.read_text() for path in report.index.parent.rglob("task-*-*.html")]
    for words in own.values():
        assert f"<p>{escape(words)}</p><details><summary>Numbers</summary>" in page
        assert any(escape(words) in file for file in files)

    app = open_page(store, "trajectory", trajectory=name, estimator="reach", step=2)
    assert own[2] in [text.value for text in app.text]
    (formula,) = (box for box in app.expander if box.label == "How reach computes it")
    assert formula.text[0].value.startswith("reach gives")
    assert why_of_task(store, **here | {"task_id": "no"}) == {}
