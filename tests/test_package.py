"""What is uploaded works where nothing of the clone is: a wheel, made of the sdist, off line."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _run(*command: str | Path, **more: str | Path) -> str:
    cwd = more.pop("cwd", ROOT)
    environment = os.environ | {name: str(value) for name, value in more.items()}
    ended = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_the_package_answers_without_a_clone(tmp_path: Path):
    clone, bare = tmp_path / "clone", tmp_path / "bare"
    for name in _run("git", "ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    _run(sys.executable, "-c", build, cwd=clone)
    (archive,) = (clone / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        sdist.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    off_line = ("--no-index", "--no-deps", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip", "install", *off_line, "--no-compile")
    _run(*pip, "--target", bare, source, cwd=tmp_path)
    code = "import graphcredit.cli as cli; print(cli.__file__, flush=True); cli.start()"
    said = _run(
        *(sys.executable, "-P", "-c", code, "why", "--example", "--most", "1"),
        cwd=tmp_path,
        PYTHONPATH=bare,
    )
    assert said.startswith(f"{bare}/graphcredit/cli/__init__.py\nWhat failures do that wins do not")
    assert (bare / "bin" / "graphcredit").is_file()
    assert all(
        (bare / "graphcredit" / name).is_file()
        for name in ("py.typed", "viewer/graph/assets/cytoscape-LICENSE")
    )
