"""The work tree of a coding agent, by hand: tools with paths, shells, editors with an open file."""

import pytest

from graphcredit.collector.states.calls import Move, visits_of
from graphcredit.collector.states.table import tool_rule


def _state(*actions: str, results: dict[int, str] | None = None) -> list[str]:
    """Return what the tree is after some actions, without digests, line by line."""
    moves = [Move(action=a, results=((results or {}).get(n, "ok"),)) for n, a in enumerate(actions)]
    text = tool_rule("worktree")(visits_of([*moves, Move(action=actions[-1])]))[-1]
    return [line.partition(" #")[0] for line in text.splitlines()]


def _digests(*actions: str) -> str:
    moves = [Move(action=action, results=("ok",)) for action in (*actions, actions[-1])]
    return tool_rule("worktree")(visits_of(moves))[-1]


WRITE_A = 'Write({"file_path": "a.py", "content": "x = 1"})'
WRITE_B = 'Write({"file_path": "b.py", "content": "y = 1"})'
EDIT_A = 'Edit({"file_path": "a.py", "old_string": "1", "new_string": "2"})'
READ = 'Read({"file_path": "./a.py", "limit": 9})'
SED = """Bash({"command": "sed -i 's/a;b/-> c/' m.py && rm o.py"})"""
TESTS = 'Bash({"command": "cd src && pytest -q tests 2>&1 | tail -3"})'


@pytest.mark.parametrize(
    ("actions", "lines"),
    [
        ((READ,), ["read a.py"]),
        ((READ, WRITE_B, EDIT_A), ["read a.py", "wrote a.py", "wrote b.py"]),
        (('Bash({"command": "ls -la; cat src/m.py | head -20"})',), ["read src/m.py"]),
        (('Bash({"command": "sed -n 1,20p m.py"})',), ["read m.py"]),
        ((SED,), ["wrote m.py", "wrote o.py"]),
        (('edit({"command": "undo_edit", "path": "m.py"})',), ["wrote m.py"]),
        (('bash({"command": "cat > n.py <<\'EOF\'\\nrm all.py\\nEOF"})',), ["wrote n.py"]),
        (('bash({"command": "echo hi >> log.txt 2>/dev/null"})',), ["wrote log.txt"]),
        (("I look.\n\n```bash\ncat m.py\n```",), ["read m.py"]),
        (("I expect speed -> better when a > b in notes.txt",), ["(nothing yet)"]),
        (("<tool>\n<name>look</name>\n</tool>",), ["(nothing yet)"]),
        (("open m.py 12", "edit 1:2\nx = 1\nend_of_edit"), ["read m.py", "wrote m.py"]),
        (("python run.py", "ls -F", "find_file m.py src"), ["(nothing yet)"]),
    ],
)
def test_what_was_read_and_written(actions: tuple[str, ...], lines: list[str]):
    assert _state(*actions) == lines


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("=== 1 failed, 12 passed in 0.31s ===", "1 failed, 12 passed"),
        ("FAIL x_test.go", "failed"),
        ("Error: no tests found", "failed"),
        ("PASS\nok  pkg 0.3s", "passed"),
    ],
)
def test_the_last_outcome_of_tests_without_their_time(result: str, outcome: str):
    assert _state(TESTS, READ, TESTS, results={2: result}) == ["read a.py", f"tests: {outcome}"]


def test_a_failed_edit_changes_nothing():
    said = {1: "[Your proposed edit has introduced new syntax error(s)."}
    assert _state(READ, EDIT_A, results=said) == ["read a.py"]


def test_the_order_of_edits_matters_within_a_file_only():
    assert _digests(WRITE_A, WRITE_B, EDIT_A) == _digests(WRITE_A, EDIT_A, WRITE_B)
    assert _digests(WRITE_A, EDIT_A) != _digests(EDIT_A, WRITE_A) != _digests(EDIT_A)
