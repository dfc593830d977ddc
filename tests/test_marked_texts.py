"""Every text of a log is marked, and every command, export and page: no mark comes out raw."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from graphcredit import show
from graphcredit.store.layout import Store, open_store
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle
from tests.cli.in_process import run

HEBREW = "שלום"
ACTS = "\x1b[31m\x9b5m\x07\u202e\u2066\u200b\u2028\U000e0041\r\nFORGED"
LIVE = "<img src=x onerror=alert(1)></script>[a](//www.evil.com)![p](//evil.com)@everyone ```~~~"
MARK = f" {HEBREW}{ACTS}{LIVE}"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e\u2066\ud800-\udfff\U000e0041]")
ISOLATED = re.compile("\u2068[^\u2068\u2069]*\u2069")
CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


def _rollout(number: int) -> dict[str, Any]:
    """Return a rollout whose every text is marked; those that refuse at first fail."""
    task, is_won = number % 2, number // 2 % 2 == 0
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {
            "name": ("look" if is_won else "drop") + MARK,
            "arguments": json.dumps({f"at{MARK}": f"/etc/x{MARK}"}),
        },
    }
    return {
        "task_id": f"task{task}{MARK}",
        "trajectory_id": f"roll{number}{MARK}",
        "run_id": f"run{MARK}",
        "model": f"model{MARK}",
        "reward": int(is_won),
        "metadata": {f"key{MARK}": f"value{MARK}"},
        "messages": [
            {"role": "system", "content": f"rules{MARK}"},
            {"role": "user", "name": f"user{MARK}", "content": f"begin {task}{MARK}"},
            {"role": "assistant", "content": f"think{MARK}", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"seen {is_won}{MARK}"},
            {"role": "assistant", "content": f"done {number // 4}{MARK}"},
        ],
    }


BAD: list[Any] = [
    {"task_id": f"bad{MARK}", "messages": [{"role": f"role{MARK}", "content": MARK}]},
    {"task_id": f"none{MARK}", "messages": [{"role": "user", "content": MARK}]},
    {f"reward{MARK}": MARK, "messages": MARK},
    {"task_id": f"late{MARK}", "iteration": MARK, "messages": _rollout(0)["messages"]},
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs") / f"folder{ACTS}{HEBREW}"
    folder.mkdir()
    lines = [json.dumps(each) for each in [*map(_rollout, range(16)), *BAD]]
    twice = json.dumps(f"key{MARK}")
    (folder / f"log{ACTS}.jsonl").write_text("\n".join([*lines, f"{{{twice}: 1, {twice}: 2}}"]))
    (folder / f"other{ACTS}<img>.txt").write_text(MARK)
    return folder


@pytest.fixture(scope="module")
def store(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("stores") / f"store{ACTS}{HEBREW}"
    assert "17 rollouts" in run("import", log, root).out
    assert run("credit", root, "-e", "reach", "-e", "graphgpo").exit_code == 0
    return open_store(root)


COMMANDS = {
    "import": "import LOG NEW --run r",
    "import --try": "import LOG --try 5",
    "import --json": "import LOG --try 5 --json",
    "import without": "import LOG NEW --success nothing",
    "why of a log": "why LOG",
    "why": "why STORE --most 3",
    "why --json": "why STORE --json",
    "why --trajectory": "why STORE --trajectory TRAJECTORY",
    "why of nothing": "why STORE --trajectory NOTHING",
    "audit": "audit STORE",
    "audit --json": "audit STORE --json",
    "evidence": "evidence STORE",
    "check": "check STORE",
    "states": "states STORE --task TASK",
    "states of nothing": "states STORE --task NOTHING",
    "sql": "sql STORE|FROM steps",
    "sql --json": "sql STORE|FROM steps|--format|json",
    "sql error": "sql STORE|SELECT error(action) FROM steps",
    "credit": "credit STORE -e reach",
    "export": "export STORE OUT.csv",
    "export tokens": "export STORE OUT.parquet --to tokens --estimator reach",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_obeys_no_text(log: Path, store: Store, tmp_path: Path, name: str):
    said = _run(COMMANDS[name], log, store, tmp_path)
    shown = said.out + said.err
    assert not HIDDEN.findall(shown)
    assert not re.findall("^FORGED.*", shown, re.MULTILINE)
    if name.endswith("--json"):
        assert json.loads(said.out)
    else:
        assert HEBREW not in ISOLATED.sub("", shown)


def _run(command: str, log: Path, store: Store, tmp_path: Path) -> Any:
    words = command.split("|") if "|" in command else command.split()
    first, *rest = words[0].split() + words[1:]
    named = {
        "LOG": log,
        "STORE": store.root,
        "NEW": tmp_path / "new",
        "OUT.csv": tmp_path / "out.csv",
        "OUT.parquet": tmp_path / "out.parquet",
        "TASK": f"task0{MARK}",
        "TRAJECTORY": f"roll0{MARK}",
        "NOTHING": f"nothing{MARK}",
    }
    return run(first, *(named.get(word, word) for word in rest))


@pytest.mark.parametrize("of", ["LOG", "STORE"])
def test_markdown_has_each_text_as_code(log: Path, store: Store, tmp_path: Path, of: str):
    said = _run(f"why {of} --markdown --most 3", log, store, tmp_path)
    assert said.out.count("## ") == 3
    links = re.sub(r"\(http://127\.0\.0\.1:8501/[^)\s]*\)", "", CODE.sub("", said.out))
    assert not re.findall(".*(?:<img|evil|@every|FORGED|~~~).*", links)
    assert not HIDDEN.findall(said.out)
    assert HEBREW not in ISOLATED.sub("", said.out)


class _Page(HTMLParser):
    """Reads a page: its tags, its attributes, and the texts in a line of their own or not."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.texts = list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen += [tag, *(name for name, _ in attrs)]
        self.texts += [value or "" for name, value in attrs if name == "title"]

    def handle_data(self, data: str) -> None:
        if self.lasttag in ("pre", "b"):  # paragraphs of their own, with nothing of ours beside
            self.texts.append(data.replace(HEBREW, ""))
        elif self.lasttag != "script":
            self.texts.append(data)
        elif "FORGED" in data:  # what the script of a graph shows
            said = json.dumps(json.loads(data), ensure_ascii=False)
            self.texts.append(said.replace(HEBREW, ""))


def _pages(store: Store, folder: Path) -> Iterator[str]:
    run_id = store.runs()[-1]
    assert run_id != "imported"
    task, rollout = f"task0{MARK}", f"roll0{MARK}"
    yield show(store, trajectory_id=rollout, run_id=run_id).html
    yield show(store, task_id=task, run_id=run_id).html
    yield show(store, task_id=task, run_id=run_id)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    write_bundle(store, folder / "bundle", BundleChoice())
    pages = list((folder / "bundle").rglob("*.html"))
    assert len(pages) > 10
    assert not [page for page in pages if HEBREW in page.name]
    yield from (page.read_text(encoding="utf-8") for page in pages)


def test_pages_have_no_element_of_a_log(store: Store, tmp_path: Path):
    for page in _pages(store, tmp_path):
        parsed = _Page()
        parsed.feed(page)
        assert not {"img", "object", "base", "form"} & set(parsed.seen)
        assert not [name for name in parsed.seen if name.startswith("on")]
        # In a notebook, a page is an attribute of a frame.
        assert "default-src 'none'" in page or page.count("<") == 2
        shown = "".join(parsed.texts)
        assert not HIDDEN.findall(shown)
        assert HEBREW not in ISOLATED.sub("", shown)


def test_pictures_are_xml_of_ours(store: Store, tmp_path: Path):
    assert run("why", store.root, "--picture", tmp_path / "why.svg").exit_code == 0
    picture = ET.parse(tmp_path / "why.svg")
    assert {each.tag.rpartition("}")[2] for each in picture.iter()} == {
        "svg",
        "title",
        "rect",
        "text",
        "path",
    }
    shown = "\n".join(each.text or "" for each in picture.iter())
    assert not HIDDEN.findall(shown)
    assert HEBREW in shown
    assert HEBREW not in ISOLATED.sub("", shown)
