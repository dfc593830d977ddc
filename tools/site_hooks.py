"""Hooks of mkdocs: pages that are made from the code, and links that leave docs/.

make docs
"""

import re
import sys
import tomllib
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.estimator_pages import estimator_pages  # noqa: E402
from tools.reference_pages import reference_pages  # noqa: E402

_WORKER = "assets/file_worker.js"
_LINK = re.compile(r"(!?)(\[[^\]]*\]\()((?:\.\./)+[^)#\s]+)")


@cache
def _pages() -> dict[str, str]:
    return {
        f"reference/{path}": text for path, text in (reference_pages() | estimator_pages()).items()
    }


def on_config(config: Any) -> Any:
    """Add the generated pages to the last section of the navigation."""
    *_, (section,) = (list(entry.values()) for entry in config["nav"] if isinstance(entry, dict))
    pages = sorted(_pages())
    for folder, title in (("commands", "All options"), ("estimators", "Estimators")):
        inside = [page for page in pages if page.startswith(f"reference/{folder}/")]
        inside.sort(key=lambda page: not page.endswith("index.md"))
        section.append({title: [inside[0], *({Path(page).stem: page} for page in inside[1:])]})
    # In place of the script of another host that the offline plugin names.
    config["extra"]["polyfills"] = [_WORKER]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and the files that lie outside docs/."""
    worker = str(ROOT / "tools" / "file_worker.js")
    files.append(File.generated(config, _WORKER, abs_src_path=worker))
    for path, content in _pages().items():
        files.append(File.generated(config, path, content=content))
    for page in (ROOT / "docs").rglob("*.md"):
        for picture in _pictures_outside(page):
            place = f"pictures/{picture.name}"
            if files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links that leave docs/ lead to the repository, and pictures to their copies."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    folder = (ROOT / "docs" / page.file.src_uri).parent
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)

    def moved(link: re.Match[str]) -> str:
        target = (folder / link[3]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        if link[1]:
            return f"{link[1]}{link[2]}{up}pictures/{target.name}"
        return f"{link[2]}{urls['Source']}/blob/main/{target.relative_to(ROOT)}"

    return _LINK.sub(moved, markdown)


def _pictures_outside(page: Path) -> list[Path]:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    targets = [(page.parent / target).resolve() for is_picture, _, target in links if is_picture]
    return [target for target in targets if not target.is_relative_to(ROOT / "docs")]
