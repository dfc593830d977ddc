"""The pool of worker processes: each piece is done once, whoever dies."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from graphcredit.store.errors import EngineError, OptionError
from graphcredit.store.workers.pool import LATER, WorkerPool
from tests.store import worker_tasks
from tests.workers import worker_pids

Work = Callable[[Iterator[int]], Iterator[tuple[int, Any]]]


def _pool(work: Work, num_workers: int = 2, **options: Any) -> WorkerPool[int, Any]:
    return WorkerPool(work=work, num_workers=num_workers, **options)


def _wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_answers_come_in_order_whoever_works(num_workers: int):
    pool = _pool(worker_tasks.doubled, num_workers, pieces_at_once=2)
    assert list(pool.in_order(range(30))) == list(range(0, 60, 2))
    assert list(pool.in_order([])) == []
    assert worker_pids() == []


def test_a_worker_has_as_many_pieces_as_it_takes_at_once_and_shares_them_evenly():
    source = iter(range(4))
    pool = _pool(worker_tasks.two_at_once, pieces_at_once=2)
    answers = list(pool.answers(lambda latest: next(source, None)))
    assert sorted(piece for piece, _ in answers) == [0, 1, 2, 3]
    by_worker = dict(answers)
    assert by_worker[0] == by_worker[2] != by_worker[1] == by_worker[3]


def test_no_more_pieces_are_taken_than_workers_have_at_once():
    taken: list[int] = []

    def pieces() -> Iterator[int]:
        for piece in range(20):
            taken.append(piece)
            yield piece

    pool = _pool(worker_tasks.doubled, pieces_at_once=2)
    for number, _ in enumerate(pool.in_order(pieces()), start=1):
        assert len(taken) < number + 4
        time.sleep(0.01)
    assert len(taken) == 20


@pytest.mark.parametrize("deaths", [1, 3])
def test_what_a_killed_worker_had_is_done_by_another(
    tmp_path: Path, deaths: int, caplog: pytest.LogCaptureFixture
):
    pool = _pool(partial(worker_tasks.deadly, tmp_path, deaths), pieces_at_once=2)
    assert list(pool.in_order(range(8))) == list(range(0, 16, 2))
    assert len(list(tmp_path.iterdir())) == deaths
    assert len(caplog.messages) == deaths
    assert re.match(r"a worker process died with exit code -9; \d pieces? of", caplog.messages[0])


def test_a_piece_that_kills_four_workers_ends_the_work(tmp_path: Path):
    pool = _pool(partial(worker_tasks.deadly, tmp_path, 100))
    with pytest.raises(EngineError, match=r"one of the 4 workers .* exit code -9.* It had 3"):
        list(pool.in_order(range(8)))
    assert len(list(tmp_path.iterdir())) == 4
    assert worker_pids() == []


def test_half_an_answer_is_none(tmp_path: Path):
    pool = _pool(partial(worker_tasks.half_sent, tmp_path), pieces_at_once=2)
    assert list(pool.in_order(range(5))) == [b"whole"] * 5


def test_who_lost_pieces_may_say_what_to_do_instead(tmp_path: Path):
    lost: list[list[int]] = []

    def retry(pieces: list[int]) -> list[int | None]:
        lost.append(pieces)
        return [piece + 100 if piece == 3 else None for piece in pieces]

    source = iter([1, 3])
    work = partial(worker_tasks.deadly, tmp_path, 1)
    pool = _pool(work, num_workers=1, retry=retry)
    answers = list(pool.answers(lambda latest: next(source, None)))
    assert answers == [(1, 2), (103, 206)]
    assert lost == [[3]]


def test_an_error_is_raised_as_itself_and_nothing_is_done_again(tmp_path: Path):
    with pytest.raises(OptionError, match=r"^two$") as ours:
        list(_pool(partial(worker_tasks.failing, "ours")).in_order(range(5)))
    assert not hasattr(ours.value, "__notes__")
    with pytest.raises(KeyError) as other:
        list(_pool(partial(worker_tasks.failing, "other")).in_order(range(5)))
    assert "worker_tasks.py" in other.value.__notes__[0]
    assert worker_pids() == []


@pytest.mark.parametrize("lets_finish", [True, False])
def test_workers_whose_answers_nobody_wants_are_ended_or_finish_first(
    tmp_path: Path, lets_finish: bool
):
    pool = _pool(partial(worker_tasks.slow, tmp_path), lets_finish=lets_finish)
    with closing(pool.in_order(range(50))) as answers:
        next(answers)
    assert worker_pids() == []
    names = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert names.count("begun") < 50
    assert not lets_finish or names.count("begun") == names.count("done")
    assert names.count("closed") == (2 if lets_finish else 0)


def test_a_system_that_starts_no_process_works_here(caplog: pytest.LogCaptureFixture):
    with patch("subprocess.Popen", side_effect=OSError("too many")):
        assert list(_pool(worker_tasks.doubled).in_order(range(3))) == [0, 2, 4]
    assert "too many" in caplog.text


def test_a_system_that_starts_no_other_process_is_an_error(tmp_path: Path):
    start = subprocess.Popen
    works = [start]

    def popen(*arguments: Any, **options: Any) -> Any:
        if not works:
            raise OSError("too many")
        return works.pop()(*arguments, **options)

    pool = _pool(partial(worker_tasks.deadly, tmp_path, 1), num_workers=1)
    with (
        patch("subprocess.Popen", popen),
        pytest.raises(EngineError, match="starts no other process"),
    ):
        list(pool.in_order(range(5)))


def test_who_has_no_piece_yet_is_asked_again():
    asked: list[int] = []

    def next_piece(latest: int | None) -> Any:
        asked.append(len(asked))
        if len(asked) > 12:
            return None
        return LATER if len(asked) % 2 else asked[-1]

    answers = dict(_pool(worker_tasks.doubled).answers(next_piece))
    assert answers == {number: 2 * number for number in range(1, 12, 2)}


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_workers_end_with_their_parent(tmp_path: Path, is_interrupted: bool):
    code = (
        "from functools import partial; from pathlib import Path\n"
        "from graphcredit.store.workers.pool import WorkerPool\n"
        "from tests.store.worker_tasks import endless\n"
        f"work = partial(endless, Path({str(tmp_path)!r}))\n"
        "list(WorkerPool(work=work, num_workers=2).in_order(range(2)))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as parent:
        _wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        if is_interrupted:
            for pid in (*workers, parent.pid):  # as a terminal does, to all of them
                os.kill(pid, 2)
        else:
            parent.kill()
        assert parent.stderr is not None
        assert parent.stderr.read().count(b"Traceback") == is_interrupted
    _wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
