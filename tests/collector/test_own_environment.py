"""An environment that a user's script registers is played by worker processes too."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.collector.options import CollectOptions
from tests.collector.corridor import Corridor

class Own(Corridor):
    pass

def open_own(spec, games_dir, with_oracle):
    return Own(num_rooms=int(spec))

def list_own(games, *, num_tasks, seed, games_dir=None):
    return []

ENVIRONMENTS["own"] = EnvironmentKind(list_tasks=list_own, open=open_own)

def main():
    options = CollectOptions(policy="random", group_size=3, max_steps=8, workers=1)
    report = collect(sys.argv[1], [Task(environment="own", spec=n) for n in "23"], options)
    print(report.num_trajectories, report.failures)

"""


def test_workers_know_an_environment_that_the_users_script_registers(tmp_path: Path):
    (tmp_path / "own_script.py").write_text(SCRIPT + 'if __name__ == "__main__":\n    main()\n')
    assert _run(tmp_path).stdout == "6 ()\n"


def test_a_script_without_a_guard_is_told_to_have_one(tmp_path: Path):
    (tmp_path / "own_script.py").write_text(SCRIPT + "main()\n")
    ended = _run(tmp_path, is_module=True)
    assert ended.returncode == 1
    assert 'must play under `if __name__ == "__main__":`' in ended.stderr


def _run(folder: Path, *, is_module: bool = False) -> "subprocess.CompletedProcess[str]":
    started_as = ["-m", "own_script"] if is_module else [str(folder / "own_script.py")]
    return subprocess.run(
        [sys.executable, *started_as, str(folder / "store")],
        env={"PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
