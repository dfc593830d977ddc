"""`graphcredit why`, on a log and on stores, and its words in Markdown."""

import json
import re
from pathlib import Path
from tempfile import gettempdir

import pytest

import graphcredit
from graphcredit.store.layout import create_store
from graphcredit.store.log_text import as_code, as_prose
from tests.cli.in_process import Ended, run

LOG = Path("examples/orders.jsonl")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of five tasks: README.md shows all twenty."""
    log = tmp_path_factory.mktemp("small") / "orders.jsonl"
    log.write_text("\n".join(LOG.read_text(encoding="utf-8").splitlines()[:40]), encoding="utf-8")
    return log


@pytest.fixture(scope="module")
def kept(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Return a store of the log, and what was said when it was made."""
    store = tmp_path_factory.mktemp("why") / "store"
    return store, run("why", small, "--keep", store, "--markdown", "--most", 3)


def test_from_a_log_to_what_lost_and_the_decisions_that_mattered(kept: tuple[Path, Ended]):
    shown = run("why", kept[0], "--most", 3)
    assert shown.exit_code == 0
    assert shown.out.startswith("What failures do that wins do not\n\n1. Did: 8 of 9 failed")
    assert "some rollouts called `read_policy` and others did not: those that did" in shown.out
    assert (
        "None of 75 single decisions is beyond chance; `--most N` shows more; nearest come, "
        "first those of a choice above:\n1. "
    ) in shown.out
    assert "the states (--state last) tell how rollouts end" in kept[1].out
    again = run("why", kept[0], "--json", "--most", 3)
    told = json.loads(again.out)
    assert len(told["decisions"]) == 3
    assert all(
        each["sentence"] in shown.out
        for part in ("findings", "pooled", "decisions")
        for each in told[part]
    )
    assert told["distrust"]
    in_python = graphcredit.why(kept[0], most=3)
    assert in_python.sentences == [each["sentence"] for each in told["decisions"]]
    assert told["findings"][0]["sentence"] in str(in_python)
    evidence = graphcredit.evidence(kept[0]).knowledge["as logged"].evidence()
    assert f"evidence {evidence.value:.2f} ± {2 * evidence.error:.2f}" in shown.out


def test_of_one_rollout(kept: tuple[Path, Ended]):
    store = kept[0]
    all_shown = json.loads(run("why", store, "--json", "--most", 1000).out)
    failed = next(each for each in all_shown["decisions"] if not each["won"])
    name = failed["trajectory_id"]
    shown = run("why", store, "--trajectory", name)
    *_, told = shown.out.partition("What mattered most")
    mattered, _, distrust = told.partition("What to distrust")
    assert f" of failed {name}: `{failed['action']}`" in mattered
    assert all(f" of failed {name}: `" in line for line in mattered.splitlines() if "Step" in line)
    assert "What failures do" not in shown.out
    assert "tell" in distrust
    as_json = json.loads(run("why", store, "--trajectory", name, "--json").out)
    assert "findings" not in as_json
    assert {each["trajectory_id"] for each in as_json["decisions"]} == {name}
    unknown = run("why", store, "--trajectory", "nobody")
    assert unknown.exit_code == 2
    assert "has no rollout 'nobody'" in unknown.err


def test_markdown_names_no_file_of_this_machine(kept: tuple[Path, Ended], small: Path):
    for shown in (kept[1], run("why", small, "--markdown", "--most", 1)):
        assert shown.exit_code == 0
        assert "--state RULE" not in shown.out
        assert shown.out.startswith("## What failures do that wins do not")
        assert "`graphcredit view STORE`" in shown.out
        assert "; [in the viewer](http://127.0.0.1:8501/trajectory?" in shown.out
        assert str(kept[0].parent) not in shown.out
        assert f"{gettempdir()}/graphcredit-" not in shown.out


def test_markdown_has_the_state_as_code_and_a_link(tmp_path: Path):
    asked, answered = ({"role": role, "content": "![x](y) ` z"} for role in ("user", "assistant"))
    lines = [
        {"messages": [asked, answered | {"content": text}], "task_id": "a)b", "reward": score}
        for text, score in (("a", 1.0), ("a", 1.0), ("b", 0.0), ("b", 0.0))
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    shown = run("why", tmp_path / "log.jsonl", "--markdown").out
    told = next(line for line in shown.splitlines() if line.startswith("   state: "))
    state, _, address = told.removeprefix("   state: ").partition("; ")
    assert state.startswith("`` ")
    assert state.endswith("![x](y) ` z ``")
    assert address.startswith(
        "[in the viewer](http://127.0.0.1:8501/trajectory?run=imported&iteration=0&"
    )
    assert "task=a%29b&" in address
    assert "\n1. Step 0 of failed `a)b-" in shown


def test_a_log_that_cannot_be_read_is_reported_as_by_import(tmp_path: Path):
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n')
    shown = run("why", tmp_path / "log.jsonl")
    assert shown.exit_code != 0
    assert "0 rollouts imported" in shown.out or "log.jsonl" in shown.err


def test_quiet_hides_no_reason(tmp_path: Path):
    (tmp_path / "log.jsonl").write_text('{"messages": [')
    shown = run("why", tmp_path / "log.jsonl", "--quiet")
    assert shown.exit_code != 0
    assert "line 1: it must be JSON" in shown.err


def test_an_empty_store_is_said_to_be_empty(tmp_path: Path):
    shown = run("why", create_store(tmp_path / "s").root)
    assert shown.exit_code == 2
    assert "must have step shards: found none" in shown.err


def test_a_group_without_differences_has_nothing_to_compare(tmp_path: Path):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    line = json.dumps({"messages": messages, "task_id": "t", "reward": 1.0})
    (tmp_path / "log.jsonl").write_text(f"{line}\n{line.replace('1.0', '0.0')}\n")
    shown = run("why", tmp_path / "log.jsonl")
    few = "1 rollout that failed: too few to say what they share; sample more, 4 at least."
    assert shown.out.startswith(few)


def test_a_log_without_verdicts_is_told_which_options_give_them(tmp_path: Path):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": messages, "turns": 7}))
    shown = run("why", tmp_path / "log.jsonl")
    assert shown.exit_code == 2
    assert "log.jsonl must say how its rollouts ended: 1 rollout without" in shown.err
    assert "--success names a field" in shown.err


def test_other_credit_of_a_store_is_left_alone(small: Path, tmp_path: Path):
    assert run("import", small, tmp_path / "store").exit_code == 0
    run("credit", tmp_path / "store", "-e", "grpo", "--merge", "segments")
    refused = run("why", tmp_path / "store")
    assert refused.exit_code == 2
    assert "is of other estimators" in refused.err
    run("credit", tmp_path / "store", "-e", "reach", "--merge", "segments")
    credit = [(path, path.read_bytes()) for path in (tmp_path / "store/credit").rglob("*.parquet")]
    assert run("why", tmp_path / "store").exit_code == 0
    assert [(path, path.read_bytes()) for path, _ in credit] == credit != []


def test_scores_are_no_failures_and_are_compared_as_they_are(tmp_path: Path):
    asked, answered = ({"role": role, "content": "q"} for role in ("user", "assistant"))
    lines = [
        {"messages": [asked, answered | {"content": text}], "task_id": "t", "reward": score}
        for text, score in (("a", 0.9), ("a", 0.8), ("b", 0.2), ("b", 0.1))
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    shown = run("why", tmp_path / "log.jsonl").out
    decisions, distrust = shown.split("What to distrust")
    assert "4 rollouts of 1 task, compared by their returns" in decisions
    assert "(earned 0.8): `a`. From the same state, 2 rollouts did so and earned 0.85" in decisions
    assert "failed" not in decisions
    assert ">=" not in shown
    assert "nothing to compare" not in distrust


def test_states_that_do_not_tell_have_a_remedy(tmp_path: Path):
    asked, answered = ({"role": role, "content": "q"} for role in ("user", "assistant"))
    lines = [
        {"messages": [asked, answered | {"content": "a"}], "task_id": f"t{i // 4}", "reward": i % 2}
        for i in range(16)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    shown = run("why", tmp_path / "log.jsonl").out
    assert "the states (--state last) do not tell, beyond chance, how rollouts end" in shown
    assert "`graphcredit why LOG --state RULE` takes it" in shown


def test_what_of_the_log_has_no_credit_is_said(small: Path, tmp_path: Path):
    lines = small.read_text(encoding="utf-8").splitlines()
    unjudged = json.loads(lines[0]) | {"reward": None, "success": None}
    text = "\n".join([*lines[1:], json.dumps(unjudged), "{"])
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    shown = run("why", tmp_path / "log.jsonl").out
    (bad,) = (line for line in shown.splitlines() if line.startswith("- 1 bad row, such as"))
    assert ": it must be JSON" in bad
    assert "- 1 rollout without a verdict" in shown


LIVE = "<img src=x onerror=alert(1)> [a](http://evil) @everyone www.evil.com ![b](//evil) `c` **d**"


@pytest.mark.parametrize("text", [LIVE, "``` a", "# a", "- a", "a_b_", "a|b", "a\n\n# b", "&lt;"])
def test_what_is_no_plain_sentence_is_one_span_of_code(text: str):
    for code in (as_code(text), as_prose(text)):
        ticks = re.match("`+", code)
        assert ticks is not None
        inner = code.removeprefix(ticks[0]).removesuffix(ticks[0])
        assert ticks[0] not in re.findall("`+", inner)
        assert inner.strip() == " ".join(text.split())


def test_no_text_at_all_ends_no_code_of_another():
    assert as_code("") == as_code("\n") == "` `"


def test_a_plain_sentence_stays_as_it_is():
    said = "31 of 45 rollouts (69%) have no verdict: 0.5 is less than 1."
    assert as_prose(said) == said
