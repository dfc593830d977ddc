"""AdamW with bfloat16 moments: rounded without bias, near float32, the same when resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from graphcredit.trainer.engine import small_moments
from graphcredit.trainer.engine.distributed import Process, destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.small_moments import SmallMomentsAdamW, round_at_random
from graphcredit.trainer.output.checkpoint import save_checkpoint
from tests.trainer import rank_worker
from tests.trainer.models import save_tiny_model

OPTIONS = {"lr": 1e-2, "betas": (0.9, 0.999), "weight_decay": 0.1, "foreach": False}


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    destroy_process_group()


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _rounded(values: Tensor) -> Tensor:
    into = torch.empty(values.shape, dtype=torch.bfloat16)
    round_at_random(values, into, _generator())
    return into


def test_what_is_rounded_is_one_of_the_two_neighbours_and_exact_on_average():
    """After 1 comes 1 + 1/128 in bfloat16: a quarter of the way, one in four goes up."""
    step = 2.0**-7
    found = _rounded(torch.full((40_000,), 1 + step / 4)).float()
    assert {*found.tolist()} == {1.0, 1 + step}
    assert (found > 1).float().mean().item() == pytest.approx(0.25, abs=0.01)
    found = _rounded(torch.full((40_000,), -3e-9)).float()
    assert found.double().mean().item() == pytest.approx(-3e-9, rel=1e-4)
    exact = torch.tensor([0.0, 1.0, -2.5, 2.0**-126, 384.0])
    assert torch.equal(_rounded(exact).float(), exact)


def _trained(kind: type, gradients: list[Tensor]) -> tuple[nn.Parameter, torch.optim.Optimizer]:
    weights = nn.Parameter(torch.linspace(-1, 1, gradients[0].numel()).view_as(gradients[0]))
    optimizer = kind([weights], **OPTIONS)
    for gradient in gradients:
        weights.grad = gradient.clone()
        optimizer.step()
    return weights, optimizer


def test_a_second_moment_follows_where_rounding_to_the_nearest_would_stand_still():
    """Gradients of 2, then of 1: 0.999 * 4 + 0.001 is nearest to 4 itself, update after update."""
    gradients = [torch.full((5000,), 2.0)] * 3000 + [torch.full((5000,), 1.0)] * 500
    nearest = torch.zeros((), dtype=torch.bfloat16)
    for gradient in gradients:
        nearest = (nearest.float() * 0.999 + 0.001 * gradient[0] ** 2).bfloat16()
    (_, exact), (_, small) = (
        _trained(kind, gradients) for kind in (torch.optim.AdamW, SmallMomentsAdamW)
    )
    (expected,), (found,) = (o.state.values() for o in (exact, small))
    assert found["exp_avg_sq"].dtype == found["exp_avg"].dtype == torch.bfloat16
    mean = found["exp_avg_sq"].float().mean().item()
    assert mean == pytest.approx(expected["exp_avg_sq"].mean().item(), rel=0.005)
    assert nearest.item() != pytest.approx(mean, rel=0.1)


def test_weights_are_near_those_of_adamw_in_float32(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(small_moments, "_PIECE", 100)
    gradients = [torch.randn(30, 20, generator=_generator()) * (n + 1) for n in range(50)]
    (exact, _), (found, optimizer) = (
        _trained(kind, gradients) for kind in (torch.optim.AdamW, SmallMomentsAdamW)
    )
    start = torch.linspace(-1, 1, 600).view(30, 20)
    assert (found - exact).norm() < 0.01 * (exact - start).norm()
    assert not torch.equal(found, exact)
    (state,) = optimizer.state.values()
    assert state["step"].item() == 50


def test_moments_of_an_earlier_training_are_taken_over_in_either_type(tmp_path: Path):
    name = save_tiny_model(tmp_path / "model")
    config = rank_worker.config(name, 0)
    alone = Process(torch.device("cpu"))
    for kind, other in (("float32", "bfloat16"), ("bfloat16", "float32")):
        before, after = (open_engine(name, config.changed(moments=each)) for each in (kind, other))
        rank_worker.train(before, 0)
        save_checkpoint(before, tmp_path / kind, before.state(), rank_worker.progress(1), keep=1)
        after.load_optimizer(rank_worker.newest(alone, tmp_path / kind))
        for key, value in before.state().optimizer.items():
            found = after.state().optimizer[key]
            assert found.dtype == (
                torch.float32 if key.endswith(".step") else getattr(torch, other)
            )
            assert torch.equal(found, value.to(found.dtype))
