"""How much credit says of single steps, against a slow reference and by hand."""

import json

import numpy as np
import pytest

from graphcredit.credit.evidence.signal import signals
from graphcredit.store import Store
from graphcredit.store.sql.catalog import connect
from tests.cli.in_process import run
from tests.viewer.stores import credited, two_tasks
from tests.worlds import worked_example, write_store

NAMES = ("discounted", "gigpo", "grpo", "reach")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("signal") / "s"
    for iteration in (0, 1):
        credited(root, two_tasks(), names=NAMES, iteration=iteration)
    return write_store(root, worked_example(), run_id="without")


def test_each_figure_is_as_a_slow_reference_says(store: Store):
    with connect(store) as connection:
        columns = ", ".join(f"{name}_advantage" for name in NAMES)
        rows = connection.execute(
            f"SELECT run_id, iteration, trajectory_id, {columns} FROM credit"
        ).fetchall()
    keys = [row[:3] for row in rows]
    advantage = {name: np.array([row[3 + n] for row in rows]) for n, name in enumerate(NAMES)}
    means = {
        name: np.array([values[[k == key for k in keys]].mean() for key in keys])
        for name, values in advantage.items()
    }
    parts = {name: advantage[name] - means[name] for name in NAMES}
    for signal in signals(store):
        name = signal.estimator
        step, mean = np.abs(parts[name]).sum(), np.abs(means[name]).sum()
        assert signal.num_steps == len(rows)
        assert signal.told_share == pytest.approx((np.abs(parts[name]) > 1e-9).mean())
        assert signal.step_share == pytest.approx(step / (step + mean), abs=1e-9)
        for other, value in signal.agreement.items():
            if "grpo" in (name, other):
                assert value is None
            else:
                assert value == pytest.approx(np.corrcoef(parts[name], parts[other])[0, 1])


def test_one_number_a_trajectory_says_nothing_of_steps(store: Store):
    (grpo,) = (each for each in signals(store, run_id="r0") if each.estimator == "grpo")
    assert (grpo.told_share, grpo.step_share) == (0, 0)


def test_the_command_shows_it_where_there_is_credit(store: Store):
    shown = run("evidence", store.root, "--run", "r0").out
    assert "step part of |A|" in shown
    told = json.loads(run("evidence", store.root, "--run", "r0", "--json").out)["signal"]
    assert [each["estimator"] for each in told] == list(NAMES)
    assert signals(store, run_id="without") == []
