"""The work tree of a coding agent: what it read, what it wrote, and how its tests went."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.states.calls import Call, Visit
from graphcredit.collector.states.content import NOTHING_DONE, shortened
from graphcredit.store.files.parse import parse_json

_PATHS = ("file_path", "path", "filename", "file_name", "file", "notebook_path", "target_file")
_WRITTEN = (
    *("content", "contents", "file_text", "new_string", "new_str", "new_text", "new_source"),
    *("replace", "replacement", "edits", "insert_line", "diff", "patch"),
)
_COMMANDS = ("command", "cmd", "code", "script", "keystrokes")
_SHELLS = ("bash", "sh", "shell", "run", "execute_bash", "exec", "terminal", "python")

_READERS = ("cat", "head", "tail", "less", "more", "nl", "open", "view", "bat")
_WRITERS = ("touch", "rm", "mv", "cp", "tee", "patch", "create", "truncate")
_PROGRAMS = frozenset(
    (
        *(*_READERS, *_WRITERS, *_SHELLS, "sed", "awk", "grep", "rg", "find", "ls", "cd", "echo"),
        *("printf", "python3", "git", "make", "npm", "node", "pip", "sort", "diff", "curl", "wget"),
    )
)
"""How a command begins that is no sentence."""

_TESTS = re.compile(
    r"\b(pytest|py\.test|unittest|tox|nosetests|ctest|rspec|jest|vitest|mocha|phpunit"
    r"|(npm|yarn|pnpm|go|cargo|make|mvn|gradlew?|dotnet|swift)( run)? test)\b"
)
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|passing|failing|ok)\b")
_BAD = re.compile(r"\b(FAILED|FAIL|ERROR|Traceback)\b")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_SIGNS = frozenset(";&|<>()\n")
_PATH = re.compile(r"[\w./~@+-]*[A-Za-z_][\w./~@+-]*")


class _Tree:
    """What the calls so far say of the work tree."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: dict[str, str] = {}
        self._tests = ""
        self._open = ""
        """The file that editors without a path write to."""

    def take(self, call: Call) -> None:
        """Take a call that did something."""
        arguments = _arguments(call)
        command = next((arguments[n] for n in _COMMANDS if isinstance(arguments.get(n), str)), None)
        path = next((arguments[n] for n in _PATHS if isinstance(arguments.get(n), str)), None)
        if path is not None:
            self._open = _plain(path)
            is_write = any(arguments.get(name) is not None for name in _WRITTEN)
            is_write |= arguments.get("command") == "undo_edit"
            self._write(path, call.key) if is_write else self._read.add(self._open)
        elif isinstance(command, str):
            self._run(command, call.result)
        elif call.tool == "edit" and self._open:
            self._write(self._open, call.key)
        elif not arguments and call.tool in _SHELLS:
            self._run(call.raw, call.result)
        elif not arguments and (call.tool in _PROGRAMS or _TESTS.match(f"{call.tool} {call.raw}")):
            self._run(f"{call.tool} {call.raw}", call.result)

    def take_failed(self, call: Call) -> None:
        """Take a call that failed: tests have an outcome then, too."""
        if _TESTS.search(f"{call.tool} {call.raw}"):
            self._tests = _outcome(call.result) if _COUNTS.search(call.result) else "failed"

    def __str__(self) -> str:
        lines = [f"read {path}" for path in sorted(self._read)]
        lines += [f"wrote {path} #{digest}" for path, digest in sorted(self._written.items())]
        return "\n".join(lines + ([f"tests: {self._tests}"] if self._tests else []))

    def _write(self, path: str, what: str) -> None:
        """Note what was written to a file, after all that was written to it before."""
        name = _plain(path)
        content = f"{self._written.get(name, '')}\0{what}"
        self._written[name] = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:12]

    def _run(self, command: str, result: str) -> None:
        if _TESTS.search(command):
            self._tests = _outcome(result)
        words: list[str] = []
        is_target = False
        for token in _tokens(_HEREDOC.sub(r"\3", command)):
            if is_target and _is_path(token) and not token.startswith("/dev/"):
                self._write(token, command)
            elif not is_target and not _SIGNS.issuperset(token):
                words.append(token)
            is_target = _SIGNS.issuperset(token) and ">" in token
            if _SIGNS.issuperset(token) and not is_target:
                self._run_part(words, command)
                words = []
        self._run_part(words, command)

    def _run_part(self, words: Sequence[str], command: str) -> None:
        program = words[0] if words else ""
        files = [word for word in words[1:] if _is_path(word)]
        if program == "sed" and files:
            if any(word.startswith("-i") for word in words):
                self._write(files[-1], command)
            else:
                self._read.add(_plain(files[-1]))
        elif program in _WRITERS:
            for path in files:
                self._write(path, command)
                self._open = _plain(path)
        elif program in _READERS:
            self._read.update(map(_plain, files))
            self._open = _plain(files[-1]) if files else self._open


def worktree(visits: Sequence[Visit]) -> list[str]:
    """Return the files that were read, a digest for those that were written, and the last tests."""
    tree = _Tree()
    texts: list[str] = []
    for visit in visits:
        texts.append(shortened(str(tree), 4000) or NOTHING_DONE)
        for call in visit.calls:
            tree.take_failed(call) if call.is_failed else tree.take(call)
    return texts


def _arguments(call: Call) -> Mapping[str, Any]:
    try:
        value = parse_json(call.arguments)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _tokens(command: str) -> list[str]:
    """Return the words and signs of a shell command; none where a quotation has no end."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="".join(_SIGNS))
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:
        return []


def _is_path(word: str) -> bool:
    """Return whether a word of a command may name a file: no flag, no number, no expression."""
    return not word.startswith("-") and _PATH.fullmatch(word) is not None


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")


def _outcome(result: str) -> str:
    """Return how tests went: the numbers of the last summary, else whether something is bad."""
    counts: dict[str, str] = {}
    for number, name in _COUNTS.findall(result):
        counts[name.rstrip("s")] = number
    if counts:
        return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    return "failed" if _BAD.search(result) else "passed"
