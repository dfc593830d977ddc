"""Write a bundle: a folder of pages that link to each other, which appears whole or not at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from graphcredit.store.errors import InputError, ReplacedError, system_errors
from graphcredit.store.files.atomic import atomic_directory
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.regular import read_regular
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import stamp
from graphcredit.store.progress import OnProgress, silent
from graphcredit.viewer.bundle.choice import Chapter, chosen_iterations, read_chapter
from graphcredit.viewer.bundle.html import GRAPH_SCRIPT, GRAPH_STYLE, LIBRARY, PARTS_STYLE
from graphcredit.viewer.bundle.index_page import index_page
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.bundle.pages import write_pages
from graphcredit.viewer.graph.assets import asset, page_script, page_style

MARKER = "bundle.json"
"""The file by which a folder is recognised as a bundle."""

_FORMAT = {"format": "graphcredit-bundle", "version": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleReport:
    """What was written."""

    index: Path
    """The page to open first."""
    num_tasks: int
    """Over all iterations."""
    num_trajectories: int
    num_bytes: int


@system_errors()
def write_bundle(
    store: Store, target: Path, choice: BundleChoice, on_progress: OnProgress = silent
) -> BundleReport:
    """Write the pages of a run.

    Raises:
        InputError: `target` is something else; the store does not have what was chosen.
        OptionError: There is no such kind of tasks.
        ReplacedError: Files of the store changed meanwhile; nothing was written.
        SchemaError: A file cannot be read.
    """
    target = target.absolute()
    _refuse_other_content(store, target)
    run_id, iterations = chosen_iterations(store, choice)
    before = [stamp(store, run_id, each) for each in iterations]
    with atomic_directory(target) as folder:
        chapters = _chapters(store, run_id, iterations, choice)
        num_trajectories = _write_all(store, chapters, folder, on_progress)
        index = index_page(run_id, chapters, choice.words())
        files = {
            "index.html": index,
            LIBRARY: asset(LIBRARY),
            GRAPH_SCRIPT: page_script(),
            GRAPH_STYLE: page_style() + PARTS_STYLE,
            MARKER: json.dumps(_FORMAT),
        }
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        if [stamp(store, run_id, each) for each in iterations] != before:
            raise ReplacedError(
                f"the files of run {run_id} must stay the same while they are bundled: some "
                "changed, so nothing was written. Wait until their writer has finished, then try "
                "again"
            )
        num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return BundleReport(
        index=target / "index.html",
        num_tasks=sum(chapter.tasks.num_rows for chapter in chapters),
        num_trajectories=num_trajectories,
        num_bytes=num_bytes,
    )


def _chapters(
    store: Store, run_id: str, iterations: Sequence[int], choice: BundleChoice
) -> list[Chapter]:
    """Return the iterations that have a chosen task."""
    chapters = [read_chapter(store, run_id, each, choice) for each in iterations]
    chapters = [chapter for chapter in chapters if chapter.tasks.num_rows]
    if not chapters:
        raise InputError(
            f"a bundle must have a task: run {run_id} has none with {choice.words() or 'steps'}"
        )
    if choice.estimator and all(chapter.estimator is None for chapter in chapters):
        raise InputError(
            f"run {run_id} must have credit by {choice.estimator} to show it: found none. Run "
            f"`graphcredit credit STORE -e {choice.estimator}` first"
        )
    return chapters


def _write_all(
    store: Store, chapters: Sequence[Chapter], folder: Path, on_progress: OnProgress
) -> int:
    """Write all pages but the index; return the number of trajectories."""
    num_tasks, num_trajectories = sum(chapter.tasks.num_rows for chapter in chapters), 0
    sizes = chain.from_iterable(write_pages(store, chapter, folder) for chapter in chapters)
    for num_done, size in enumerate(sizes, start=1):
        num_trajectories += size
        on_progress("bundle", num_done, num_tasks)
    return num_trajectories


def _refuse_other_content(store: Store, target: Path) -> None:
    """Raise InputError for a place with other content: a bundle replaces only a bundle."""
    if target.resolve().is_relative_to(store.root.resolve()):
        raise InputError(f"a bundle must be outside the store: {target} is inside. Name another")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"a bundle must be a folder: {target} is a file or a link. Name another")
    if target.is_dir() and any(target.iterdir()) and not _is_bundle(target):
        raise InputError(
            "a bundle must be a new or empty folder, or replace an earlier bundle: "
            f"{target} has other files. Name another"
        )


def _is_bundle(folder: Path) -> bool:
    try:
        marker = parse_json(read_regular(folder / MARKER))
    except (OSError, ValueError, InputError):
        return False
    return isinstance(marker, dict) and marker.get("format") == _FORMAT["format"]
