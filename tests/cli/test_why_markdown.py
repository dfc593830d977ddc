"""Nothing of a log is live in the Markdown of `why`."""

import json
import re
from pathlib import Path

import pytest

from graphcredit.store.markdown import as_code, as_prose
from tests.cli.in_process import run

LIVE = "<img src=x onerror=alert(1)> [a](http://evil) @everyone www.evil.com ![b](//evil) `c` **d**"


@pytest.mark.parametrize("text", [LIVE, "``` a", "# a", "- a", "a_b_", "a|b", "a\n\n# b", "&lt;"])
def test_what_is_no_plain_sentence_is_one_span_of_code(text: str):
    for code in (as_code(text), as_prose(text)):
        ticks = re.match("`+", code)
        assert ticks is not None
        inner = code.removeprefix(ticks[0]).removesuffix(ticks[0])
        assert ticks[0] not in re.findall("`+", inner)
        assert inner.strip() == " ".join(text.split())


def test_a_plain_sentence_stays_as_it_is():
    said = "31 of 45 rollouts (69%) have no verdict: 0.5 is less than 1."
    assert as_prose(said) == said


def test_reasons_of_bad_rows_and_names_are_code(tmp_path: Path):
    rows = [json.loads(line) for line in Path("examples/orders.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "task_id": f"{LIVE} {row['task_id']}"}) for row in rows]
    key = json.dumps(LIVE)
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*lines, f"{{{key}: 1, {key}: 2}}"]))
    shown = run("why", log, "--markdown")
    assert shown.exit_code == 0, shown.err
    assert "1 bad row, such as" in shown.out
    live = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", shown.out)
    live = re.sub(r"\(http://127\.0\.0\.1:8501/[^)\s]*\)", "", live)
    assert not re.findall(".*(?:<img|evil|@everyone).*", live)
