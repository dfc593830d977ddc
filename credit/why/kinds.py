"""The kinds of an action, in words: its tool, and its tool with a kind of argument."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from graphcredit.credit.why.sentences import coded

_CALL = re.compile(r"([A-Za-z_][\w.:/-]*)\((.*)\)", re.DOTALL)
_FENCED = re.compile(r"```(?:\w*bash\w*|sh|shell)[ \t]*\n(.*?)```", re.DOTALL)
_TAG = re.compile(r"</?\w+>")
_PATH = re.compile(r"(?:[\w.@~*+-]*/)*(?:[\w.@~*+-]+/?)")
_EXTENSION = re.compile(r"(?<=.)\.[A-Za-z]\w{0,5}$")
_COMMAND_KEYS = frozenset({"command", "commands", "cmd", "bash", "script", "keystrokes"})
_BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|]")
_NOT_A_COMMAND = re.compile(r"\w+=\S*|sudo|time|timeout|\d+s?")
_WORD = re.compile(r"[a-z_][\w.-]*")
_OF_SHELL = re.compile(r"--?[a-z]|\.{0,2}/\w|&&$|\|\|?$|>>?$|<<")
"""How a word begins that only a command of a shell has."""
_SQL = re.compile(
    r"\s*(select|insert|update|delete|create|drop|alter|with)\b.*\b(from|into|set|table|as)\b",
    re.IGNORECASE | re.DOTALL,
)

_MOST_COMMANDS, _MOST_LEAVES = 6, 20
_SHORT = 60
"""Characters of a value, or of a whole action, that is a kind by itself."""
_MOST_WORDS = 6
"""Words of an action; a longer one is a message."""


@dataclass(frozen=True, slots=True)
class ActionKind:
    """What actions have in common."""

    verb: str
    """Its verb, in the past: `called`."""
    noun: str
    """What was called, as Markdown."""
    detail: int
    """0: the tool; 1: its command, or its message; 2: an argument; 3: all of it."""

    @property
    def words(self) -> str:
        """The verb and its noun."""
        return f"{self.verb} {self.noun}"

    @property
    def name(self) -> str:
        """The noun without an article, to follow `the last`."""
        return f"answer {self.noun}" if self.verb == "answered" else self.noun.removeprefix("a ")


def kinds_of(action: str) -> list[ActionKind]:
    """Return the kinds of an action, the most general ones first.

    A call is `tool(arguments)`, a line each; a block of a shell is a command, and so are words as
    only a shell has them; a few words are a command of a game; all else is a message.
    """
    kinds: dict[ActionKind, None] = {}
    calls = _calls_in(action)
    for tool, arguments in calls:
        kinds |= dict.fromkeys(_of_call(tool, arguments))
    if not calls:
        kinds |= dict.fromkeys(_of_words(_TAG.sub("", action).strip()))
    if len(action) <= _SHORT and kinds:
        kinds[ActionKind(next(iter(kinds)).verb, coded(action), 3)] = None
    return list(kinds)


def _calls_in(action: str) -> list[tuple[str, str]]:
    """Return the tools and arguments that an action names; nothing where it is words."""
    lines = [_CALL.fullmatch(line) for line in action.split("\n")]
    matches = [line for line in lines if line is not None and _parsed(line[2]) is not None]
    if not matches or len(matches) < len(lines):
        whole = _CALL.fullmatch(action.strip())
        matches = [] if whole is None else [whole]
    if matches:
        return [(match[1], match[2]) for match in matches]
    return [("", block) for block in _FENCED.findall(action)]


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _of_words(text: str) -> Iterator[ActionKind]:
    words = text.split()
    if not words:
        yield ActionKind("answered", "with nothing", 0)
    elif _WORD.fullmatch(words[0]) and any(map(_OF_SHELL.match, words[1:_MOST_LEAVES])):
        yield from _of_call("", text)
    elif len(words) <= _MOST_WORDS and not text.endswith((".", "?", "!", ":")):
        yield ActionKind("did", coded(f"{words[0]} …" if len(words) > 1 else words[0]), 0)
    else:
        yield ActionKind("wrote", "a message without a call", 0)
        yield ActionKind("wrote", f"a message that begins with {coded(' '.join(words[:2]))}", 1)


def _of_call(tool: str, arguments: str) -> Iterator[ActionKind]:
    if not tool:
        yield ActionKind("ran", "a command", 0)
        yield from _of_commands("ran", "", arguments)
        return
    name = coded(tool)
    yield ActionKind("called", name, 0)
    values = _parsed(arguments)
    if values is None:
        yield from _of_value(name, "", arguments.strip().strip("\"'"))
        return
    for number, (key, value) in enumerate(_leaves("", values)):
        if number == _MOST_LEAVES:
            break
        if isinstance(value, str) and (key in _COMMAND_KEYS or tool.lower() in _COMMAND_KEYS):
            yield from _of_commands("called", f"{name} with ", value)
        else:
            yield from _of_value(name, key, value)


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of arguments, each with the field that it stands in."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(str(name), part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(key, part)
    elif value is not None:
        yield key, value


def _of_value(name: str, key: str, value: Any) -> Iterator[ActionKind]:
    text = value if isinstance(value, str) else json.dumps(value)
    of_key = f"{coded(key)} = " if key else ""
    if len(text) <= _SHORT:
        yield ActionKind("called", f"{name} with {of_key}{coded(text)}", 2)
    if not isinstance(value, str):
        return
    if text.startswith(("http://", "https://")):
        host = urlsplit(text).netloc if "[" not in text else ""
        yield ActionKind("called", f"{name} at {coded(host)}", 2)
    elif _SQL.match(text):
        yield ActionKind("called", f"{name} with {coded(text.split()[0].upper() + ' …')}", 1)
    elif _PATH.fullmatch(text):
        yield from (ActionKind("called", f"{name} on {coded(shape)}", 2) for shape in _shapes(text))
    elif len(words := text.split(maxsplit=1)) > 1:
        yield ActionKind("called", f"{name} with {of_key}{coded(words[0] + ' …')}", 2)


def _shapes(path: str) -> Iterator[str]:
    """Yield the kinds of a path: its folder, and the first and the last word of its name."""
    *folders, name = path.rstrip("/").split("/")
    extension = match[0] if (match := _EXTENSION.search(name)) else ""
    if not extension and not folders:
        return
    if folders and folders[-1]:
        yield f"{folders[-1]}/*{extension}"
    if extension:
        yield f"*{extension}"
    words = re.split(r"[_-]", name.removesuffix(extension))
    if len(words) > 1 and all(words):
        yield f"{words[0]}_*{extension}"
        yield f"*_{words[-1]}{extension}"


def _commands_in(text: str) -> Iterator[str]:
    """Yield the commands of a shell, up to the first one that goes on with a text of its own."""
    for line in text.split("\n"):
        yield from _BETWEEN_COMMANDS.split(line)
        if "<<" in line or line.count("'") % 2 or line.count('"') % 2:
            return


def _of_commands(verb: str, before: str, text: str) -> Iterator[ActionKind]:
    """Yield the kinds of the commands of a shell: the first word, the first two, each path."""
    for part in islice(_commands_in(text), _MOST_COMMANDS):
        words = part.split()
        while words and _NOT_A_COMMAND.fullmatch(words[0]):
            words = words[1:]
        if not words or words[0] == "cd" or not re.fullmatch(r"[\w./+-]{1,60}", words[0]):
            continue
        command = words[0].rpartition("/")[2]
        yield ActionKind(verb, f"{before}{coded(f'{command} …')}", 1)
        if len(words) > 1 and re.fullmatch(r"-{0,2}[\w-]{1,20}", words[1]):
            yield ActionKind(verb, f"{before}{coded(f'{command} {words[1]} …')}", 2)
        for word in words[1:_MOST_LEAVES]:
            if _PATH.fullmatch(word):
                for shape in _shapes(word):
                    yield ActionKind(verb, f"{before}{coded(f'{command} … {shape}')}", 2)
