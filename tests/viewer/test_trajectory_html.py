"""A trajectory as one file: all that matters is in it, and nothing in it reaches out or runs."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.steps.html_export import trajectory_page
from tests.viewer.stores import credited
from tests.viewer.test_transcript import imported
from tests.worlds import step_table, trajectory, worked_example, write_store

ONE: dict[str, Any] = {"run_id": "r0", "iteration": 0}


class _Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _example(root: Path) -> pa.Table:
    store = credited(root, worked_example(), names=("grpo", "graphgpo"))
    return steps(store, **ONE, trajectory_id="x")


def test_every_step_is_there_with_its_numbers(tmp_path: Path):
    table = _example(tmp_path / "s")
    page = _Reader(trajectory_page(table, title="r0, iteration 0", estimator="graphgpo"))
    texts = [text.strip() for text in page.texts]
    assert "r0, iteration 0, t0, x" in texts
    summary = "The rollout succeeded after 4 steps with return 10. "
    assert any(text.startswith(summary) for text in texts)
    actions = [text for text in texts if text.startswith("Step ")]
    assert actions == ["Step 0: a", "Step 1: b", "Step 2: c", "Step 3: d"]
    for name in ("grpo_advantage", "graphgpo_advantage"):
        for value in table[name].to_pylist():
            assert f"{value:+.3f}" in texts
    for value in table["graphgpo_step_advantage"].to_pylist():
        assert f"step {value:+.3f}" in texts
    links = [value for name, value in page.attributes if name == "href"]
    assert links == ["#step-0", "#step-1", "#step-2", "#step-3"]


def test_a_brief_page_has_the_numbers_of_other_estimators_in_a_line(tmp_path: Path):
    table = _example(tmp_path / "s")
    page = trajectory_page(table, title="r0", estimator="graphgpo", is_brief=True)
    texts = _Reader(page).texts
    for index, row in enumerate(table.to_pylist()):
        total, step = row["graphgpo_advantage"], row["graphgpo_step_advantage"]
        section = page.split("<section ")[index + 1]
        assert f"<td>{total:+.3f}</td>" in section
        assert f"<td>step {step:+.3f}</td>" in section
        # Its only part is all of it, and is not said twice.
        assert f"<p>grpo {row['grpo_advantage']:+.3f}</p>" in section
    rewarded = [text for text in texts if text.startswith("Reward")]
    assert rewarded == ["Reward 10, cost 1."]


def test_an_imported_log_is_told_by_its_messages():
    page = trajectory_page(step_table(imported()), title="r0")
    texts = [text.strip() for text in _Reader(page).texts if text.strip()]
    at = texts.index("System")
    assert texts[at : at + 9] == [
        *("System", "# Rules\nBe *brief*.", "User", "Find a flight.", "Thought", "I look."),
        *("Calls search", 'to: "SEA"', "Step 1: A1 it is."),
    ]
    assert texts[-2:] == ["User", "Thanks."]


def test_names_in_a_log_are_text_in_headings():
    seen = [{"role": "tool", "name": "<img src=x>", "content": "a"}]
    extra = json.dumps({"seen": seen, "message": {"role": "assistant"}})
    steps = step_table(trajectory("x", ["A", "<i>" * 200, "B"], extra=extra))
    page = trajectory_page(steps, title="r0")
    assert "<h3>Result of &lt;img src=x&gt;</h3>" in page
    assert "img" not in _Reader(page).tags
    # The heading has not all of the action.
    assert "&lt;i&gt;" * 200 in page


def test_without_credit_the_page_says_so(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    page = trajectory_page(steps(store, **ONE, trajectory_id="x"), title="r0")
    assert "No credit was assigned to it." in page
