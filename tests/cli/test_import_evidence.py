"""What `import --try` says of states: which tell how rollouts end, of a sample of the log."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcredit
from graphcredit.collector.importers import preview
from tests.cli.in_process import run
from tests.collector.importers.logs import write_lines

ORDERS = Path("examples/orders.jsonl")


def _walks(num_groups: int) -> list[dict[str, Any]]:
    """Return groups of 8 walks whose second room decides."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for number in range(num_groups * 8):
        room = "bright" if rng.random() < 0.5 else "dark"
        won = rng.random() < (0.9 if room == "bright" else 0.1)
        said = ["the hall", "go on", f"a {room} room", "go out"]
        roles = ["user", "assistant"] * 2
        messages = [{"role": r, "content": text} for r, text in zip(roles, said, strict=True)]
        rows.append({"task_id": f"t{number // 8}", "reward": float(won), "messages": messages})
    return rows


def test_try_says_which_states_tell_and_of_what_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = write_lines(tmp_path / "log.jsonl", *_walks(16))
    shown = run("import", log, "--try", 2).out
    assert "in the 16 groups with different outcomes, --state last tells most" in shown
    assert "that is beyond chance" in shown
    monkeypatch.setattr(preview, "SAMPLED", 40)
    assert "in the first 5 groups with" in run("import", log, "--try", 2).out
    told = json.loads(run("import", log, "--try", 2, "--json").out)["evidence"]
    assert (told["num_groups"], told["is_whole"]) == (5, False)


_AGAINST = re.compile(
    r"(\S+ ?\S+) is used, with evidence (.*); (.*), what the agent saw, has (.*±.{5})"
)


def test_states_that_were_chosen_are_compared_with_the_default_everywhere(tmp_path: Path):
    chosen, default = tmp_path / "chosen", tmp_path / "default"
    tried = run("import", ORDERS, "--try", 160, "--state", "facts").out
    why_log = run("why", ORDERS, "--state", "facts", "--keep", chosen).out
    told = [tried, why_log, run("evidence", chosen).out]
    assert [_AGAINST.findall(text) for text in told] == [
        *[[("--state facts", "0.30 ± 0.14", "--state last", "0.41 ± 0.14")]] * 2,
        [("as logged", "0.30 ± 0.14", "--set last", "0.41 ± 0.14")],
    ]
    assert "what the agent saw, has 0.41 ± 0.14" in graphcredit.why(chosen).distrust[-1]
    assert run("import", ORDERS, default).exit_code == 0
    nothing = [run("import", ORDERS, "--try", 160).out, run("evidence", default).out]
    assert [_AGAINST.findall(text) for text in nothing] == [[], []]
    assert "--set last" not in nothing[1]


def test_of_few_groups_nothing_is_said(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", *_walks(3))
    assert "different outcomes" not in run("import", log, "--try", 2).out
    assert json.loads(run("import", log, "--try", 2, "--json").out)["evidence"] is None
