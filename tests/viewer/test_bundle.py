"""A run as a folder of pages: all links lead somewhere, and no log can put markup into it."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from graphcredit.store import Store
from graphcredit.store.errors import InputError, OptionError, ReplacedError
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.bundle import write
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.write import MARKER, write_bundle
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import worked_example, write_store

OURS = {"graph.js", "cytoscape.min.js"}


class Reader(HTMLParser):
    """Collects tags with their attributes, ids and texts of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [href for _, of in self.tags if (href := of.get("href") or of.get("src"))]

    def ids(self) -> set[str | None]:
        return {of.get("id") for _, of in self.tags}


def bundled(store: Store, target: Path, **choice: object) -> dict[str, Reader]:
    """Write a bundle; return its pages by their path in it."""
    write_bundle(store, target, BundleChoice(**choice))
    pages = sorted(target.rglob("*.html"))
    return {page.relative_to(target).as_posix(): Reader(page) for page in pages}


def test_every_task_and_trajectory_is_linked_and_says_its_credit(shared: Shared, tmp_path: Path):
    store = shared(two_tasks, "graphgpo", "grpo")
    pages = bundled(store, tmp_path / "b")
    assert len(pages) == 1 + 2 + 5
    index = pages["index.html"]
    assert "Iteration 0: 2 tasks, 1 of 5 complete rollouts succeeded" in index.text
    sql = "SELECT task_id, trajectory_id, step_index, graphgpo_advantage AS a FROM enriched"
    for row in run_trusted_query(store, sql).table.to_pylist():
        (page,) = [
            page
            for page in pages.values()
            if f"iteration 0, {row['task_id']}, {row['trajectory_id']}" in page.text
        ]
        assert f"step-{row['step_index']}" in page.ids()
        assert f"{row['a']:+.3f}" in page.text


def test_all_links_are_relative_and_lead_somewhere(tmp_path: Path):
    store = credited(tmp_path / "s", two_tasks())
    credited(tmp_path / "s", worked_example(), iteration=1)
    pages = bundled(store, tmp_path / "b")
    reached = {"index.html"}
    for name, page in pages.items():
        (policy,) = [of["content"] or "" for _, of in page.tags if of.get("http-equiv")]
        assert policy.startswith("default-src 'none'")
        assert "script-src 'unsafe-inline'" not in policy
        for link in page.links():
            address = urlsplit(link)
            assert (address.scheme, address.netloc) == ("", "")
            assert not address.path.startswith("/")
            place = (tmp_path / "b" / name).parent / unquote(address.path)
            found = place.resolve() if address.path else tmp_path / "b" / name
            assert found.is_file(), link
            target = found.relative_to((tmp_path / "b").resolve()).as_posix()
            reached.add(target)
            if address.fragment:
                assert address.fragment in pages[target].ids(), link
    assert pages.keys() <= reached


def test_without_credit_there_are_still_the_trajectories(tmp_path: Path):
    pages = bundled(write_store(tmp_path / "s", worked_example()), tmp_path / "b")
    assert len(pages) == 1 + 1 + 3
    assert "No credit was assigned to it." in pages["index.html"].text
    task = pages["iteration-000000/task-00000.html"]
    assert "there is no graph" in task.text
    assert "succeeded" in task.text


@pytest.mark.parametrize(
    ("choice", "tasks"),
    [
        ({"show": "never solved"}, ["t1"]),
        ({"show": "mixed outcomes"}, ["t0"]),
        ({"find": "T0"}, ["t0"]),
        ({"tasks": ("t1", "t0")}, ["t0", "t1"]),
        ({"run_id": "r0", "iteration": 0, "tasks": ("t1",)}, ["t1"]),
    ],
)
def test_tasks_are_chosen(
    shared: Shared, tmp_path: Path, choice: dict[str, object], tasks: list[str]
):
    pages = bundled(shared(two_tasks), tmp_path / "b", **choice)
    found = [name for name in pages if name.count("-") == 2]
    assert [pages[name].text.split("<")[0].strip()[:2] for name in found] == tasks
    assert "A part of it: " in pages["index.html"].text
    if "show" in choice:
        assert f"tasks of the kind '{choice['show']}'" in pages["index.html"].text


@pytest.mark.parametrize(
    ("choice", "error", "words"),
    [
        ({"run_id": "r9"}, InputError, "found r0, not 'r9'"),
        ({"iteration": 7}, InputError, "found 0, not 7"),
        ({"find": "nothing"}, InputError, "has none with names that contain 'nothing'"),
        ({"show": "odd"}, OptionError, "never solved"),
        ({"estimator": "grpo"}, InputError, "-e grpo"),
    ],
)
def test_what_is_not_there_is_refused_and_leaves_nothing(
    shared: Shared, tmp_path: Path, choice: dict[str, object], error: type[Exception], words: str
):
    store = shared(two_tasks)
    with pytest.raises(error, match=words):
        bundled(store, tmp_path / "b", **choice)
    assert not list(tmp_path.iterdir())


def test_only_a_bundle_is_replaced(shared: Shared, tmp_path: Path):
    store = shared(two_tasks)
    target = tmp_path / "b"
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="has other files"):
        write_bundle(store, target, BundleChoice())
    assert (target / "thesis.txt").read_text() == "mine"
    (target / "thesis.txt").unlink()
    write_bundle(store, target, BundleChoice())
    report = write_bundle(store, target, BundleChoice(tasks=("t1",)))
    assert (report.num_tasks, report.num_trajectories) == (1, 2)
    files = [path for path in target.rglob("*") if path.is_file()]
    assert report.num_bytes == sum(path.stat().st_size for path in files)
    assert len(files) == 5 + 1 + 2
    for inside in (store.root, store.root / "site"):
        with pytest.raises(InputError, match="outside the store"):
            write_bundle(store, inside, BundleChoice())
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(InputError, match="a file or a link"):
        write_bundle(store, tmp_path / "link", BundleChoice())


def test_an_interrupted_bundle_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = credited(tmp_path / "s", two_tasks())
    target = tmp_path / "b"
    write_bundle(store, target, BundleChoice())
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}

    def interrupt(what: str, done: float = 0, total: int = 0, note: str = "", /) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_bundle(store, target, BundleChoice(), interrupt)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"s", "b"}

    def grow(*_: object) -> str:
        write_store(store.root, two_tasks(), worked_example("late"))
        return "page"

    monkeypatch.setattr(write, "index_page", grow)
    with pytest.raises(ReplacedError, match="nothing was written"):
        write_bundle(store, target, BundleChoice())
    assert (target / MARKER).read_bytes() == before[target / MARKER]
    assert {path.name for path in tmp_path.iterdir()} == {"s", "b"}
