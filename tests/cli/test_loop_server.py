"""A loop whose policies a resident vLLM server samples for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from graphcredit.collector.policies.engines import http, vllm_server
from graphcredit.collector.policies.language import policy as language
from graphcredit.loop.run import run_loop
from graphcredit.store.errors import EngineError, OptionError
from tests.cli.loop_worlds import corridor_loop, register_corridors, run, save_talker
from tests.collector.fake_vllm import FakeVllm, serving


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeVllm]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(http, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(vllm_server.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(language, "_engines", {})
    register_corridors()
    save_talker(tmp_path / "start")
    with serving(FakeVllm(model=str(tmp_path / "start"))) as found:
        yield found


def _models(root: Path, *numbers: int) -> list[str]:
    return [str(root / "out" / "policies" / f"policy-{number:06d}" / "model") for number in numbers]


def test_each_policy_is_loaded_once_by_the_server_that_stays(tmp_path: Path, fake: FakeVllm):
    config = corridor_loop(tmp_path, "out", collect={"engine": "vllm-server", "server": fake.url})
    assert [line["iteration"] for line in run(config)] == [0, 1, 2]
    assert fake.loaded() == _models(tmp_path, 0, 1, 2)


def test_a_loop_whose_server_keeps_old_weights_ends_and_goes_on_with_another(
    tmp_path: Path, fake: FakeVllm
):
    collect = {"engine": "vllm-server", "server": fake.url}
    lines = run_loop(corridor_loop(tmp_path, "out", collect=collect))
    assert next(lines)["iteration"] == 0
    fake.keeps_weights = True
    with pytest.raises(EngineError, match=r"policy-000001/model, and samples exactly as before"):
        next(lines)
    with serving(FakeVllm(model=str(tmp_path / "start"))) as other:
        assert (
            len(run(corridor_loop(tmp_path, "out", collect=collect | {"server": other.url}))) == 3
        )
    assert other.loaded() == _models(tmp_path, 1, 2)


def test_a_server_that_does_not_run_is_missed_before_anything_is_written(
    tmp_path: Path, fake: FakeVllm
):
    fake.num_dropped = 3
    config = corridor_loop(tmp_path, "out", collect={"engine": "vllm-server", "server": fake.url})
    with pytest.raises(EngineError, match="must be running at"):
        run(config)
    with pytest.raises(OptionError, match=r"must be the URL of a vLLM server"):
        run(corridor_loop(tmp_path, "out", collect={"engine": "vllm-server", "server": "here"}))
    assert not (tmp_path / "out").exists()
