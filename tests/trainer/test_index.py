"""The index of the steps to train on, filtered, counted and described, and how long they may be."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers.models.auto.configuration_auto import AutoConfig

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.trainer.data import step_index as index_module
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import REASONS, Filters
from graphcredit.trainer.data.step_index import IndexReport, StepIndex, read_index
from graphcredit.trainer.data.step_lengths import length_limit
from tests.trainer.logs import episode, stamp_credit, token_store, turn
from tests.worlds import trajectory, write_store

INFINITE, NAN = float("inf"), float("nan")


def index_of(
    store: Store, column: str = "reach_advantage", **filters: Any
) -> tuple[StepIndex, IndexReport]:
    options: dict[str, Any] = {"max_tokens": 100} | filters
    return read_index([RunIteration(store, "r0", 0)], column=column, filters=Filters(**options))


def _dropped(report: IndexReport) -> dict[str, int]:
    assert tuple(report.dropped) == REASONS
    assert report.num_steps == report.num_kept + sum(report.dropped.values())
    return {reason: count for reason, count in report.dropped.items() if count}


def test_steps_are_indexed_by_task_trajectory_and_number(tmp_path: Path):
    won = episode("won", turn([1, 2, 3], [4, 5], advantage=0.5), turn([1], [7], advantage=-2))
    lost = episode("lost", turn([1, 2], [8, 9, 10], advantage=1.5), task_id="t1", success=False)
    index, report = index_of(token_store(tmp_path / "s", [won, lost], num_shards=2))
    assert len(index) == 3
    assert [path.path.name for path in index.shards] == ["w0-000000.parquet", "w1-000000.parquet"]
    assert index.shard.tolist() == [0, 0, 1]
    assert index.row.tolist() == [0, 1, 0]
    assert index.prompt_length.tolist() == [3, 1, 2]
    assert index.response_length.tolist() == [2, 1, 3]
    assert index.num_scored.tolist() == [2, 1, 3]
    assert index.advantage.tolist() == [0.5, -2.0, 1.5]
    assert index.trajectory.tolist() == [1, 1, 0]  # "lost" comes before "won"
    assert index.group.tolist() == [0, 0, 1]
    assert index.staleness.tolist() == [0, 0, 0]
    assert index.length.tolist() == [5, 2, 5]
    assert (report.num_steps, report.num_kept) == (3, 3)
    assert report.largest_token_id == 10
    assert report.advantage_mean == pytest.approx(0)
    assert report.advantage_std == pytest.approx(np.sqrt((0.25 + 4 + 2.25) / 3))
    assert report.notices == ()
    assert _dropped(report) == {}


def test_order_goes_by_windows_of_shards_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_module, "WINDOW_TOKENS", 6)
    steps = [turn([1, 2], [3]), turn([1, 2], [4])]  # 6 tokens each trajectory
    later, earlier = episode("b", *steps), episode("a", *steps)
    index, _ = index_of(token_store(tmp_path / "s", [later, earlier]))
    assert index.trajectory.tolist() == [1, 1, 0, 0]


def test_each_step_that_is_left_out_is_counted_under_its_first_reason(tmp_path: Path):
    bare = {"prompt_ids": None, "response_ids": None, "response_logprobs": None}
    now = {"policy_version": "run-9"}
    steps = [
        turn([1], [2], **now),
        turn([1], [2], **bare, **now),
        turn([1], [2], advantage=None, **now),
        turn([1], [], **now),
        turn([1], [2, 3], [NAN, -INFINITE], **now),
        turn([1], [2], policy_version="run-4"),
        turn([1] * 9, [2] * 2, **now),
        turn([1], [2], advantage=0, **now),
        turn([1], [], advantage=-1.0, **now),
        turn([1], [], advantage=None, **now),
    ]
    store = token_store(tmp_path / "s", [episode("a", *steps)])
    index, report = index_of(
        store, max_tokens=10, drop_zero_advantage=True, drop_negative_advantage=True
    )
    assert index.row.tolist() == [0]
    assert report.dropped == {
        "no_tokens": 1,
        "filtered": 0,
        "no_credit": 2,
        "empty_response": 1,
        "no_finite_logprob": 1,
        "stale": 1,
        "over_long": 1,
        "zero_advantage": 1,
        "negative_advantage": 1,
    }
    assert report.num_steps == 10


def test_a_step_of_just_the_token_cap_and_of_just_the_greatest_age_is_kept(tmp_path: Path):
    steps = [turn([1] * 8, [2] * 2), turn([1], [2], policy_version="run-5")]
    store = token_store(tmp_path / "s", [episode("a", *steps)])
    index, _ = index_of(store, max_tokens=10, max_staleness=5)
    assert index.staleness.tolist() == [5, 0]


def test_zero_advantages_stay_unless_they_are_to_go(tmp_path: Path):
    steps = [turn([1], [2]), turn([1], [2], advantage=0)]
    _, report = index_of(token_store(tmp_path / "s", [episode("a", *steps)]))
    assert _dropped(report) == {}
    assert report.advantage_zero_share == 0.5


def test_tokens_without_a_finite_logprob_are_masked_and_counted(tmp_path: Path):
    logprobs = [-1.0, NAN, -INFINITE, None, -2.0]
    store = token_store(tmp_path / "s", [episode("a", turn([1], [2] * 5, logprobs))])
    index, report = index_of(store)
    assert (index.response_length[0], index.num_scored[0]) == (5, 2)
    assert report.num_masked_tokens == 3


@pytest.mark.parametrize(
    ("versions", "ages"),
    [
        (("run-12", "run-013"), [1, 0]),
        (("12", "13"), [1, 0]),
        (("final", "run-13"), [-1, 0]),
        ((None, ""), [-1, -1]),
        (("1.5x", "1.5x"), [-1, -1]),
        (("a-1", "b-2"), [-1, -1]),
        (("x", "y"), [-1, -1]),
    ],
)
def test_the_number_at_the_end_of_a_version_tells_its_age(
    tmp_path: Path, versions: tuple[str | None, ...], ages: list[int]
):
    steps = [turn([1], [2], policy_version=version) for version in versions]
    index, report = index_of(token_store(tmp_path / "s", [episode("a", *steps)]))
    assert index.staleness.tolist() == ages
    assert (report.notices == ()) == (ages == [-1, -1])


def test_the_model_is_taken_to_be_the_newest_of_the_log(tmp_path: Path):
    steps = [turn([1], [2], policy_version=f"run-{n}") for n in (53, 52, 49, 48)]
    others = [turn([1], [2], policy_version=version) for version in (None, "final")]
    store = token_store(tmp_path / "s", [episode("a", *steps, *others)], row_group_rows=2)
    index, report = index_of(store)
    assert index.staleness.tolist() == [0, 1, 4, -1, -1]
    assert _dropped(report) == {"stale": 1}
    assert report.staleness == {-1: 2, 0: 1, 1: 1, 4: 1}
    assumed, unknown = report.notices
    assert "'run-53', the newest version in the log: steps are up to 4 versions older" in assumed
    assert unknown.startswith("2 steps have no number")


def test_the_largest_token_id_is_that_of_a_kept_step_and_has_a_place(tmp_path: Path):
    steps = [
        turn([5], [6]),
        turn([900] * 99, [2] * 9),
        turn([1, 2], [7, 8], advantage=None),
        turn([1, 2], [3]),
        turn([3, 60, 1], [61]),
        turn([61], [4]),
    ]
    store = token_store(tmp_path / "s", [episode("a", *steps)], row_group_rows=3)
    _, report = index_of(store)
    assert report.largest_token_id == 61
    assert report.largest_token_id_at == f"{store.shards()[0].path}, row 5"


def test_missing_temperatures_and_permitted_truncation_are_noticed(tmp_path: Path):
    steps = [turn([1], [2], temperature=None), turn([1], [2], top_p=0.9), turn([1], [2], top_k=5)]
    store = token_store(tmp_path / "s", [episode("a", *steps)])
    _, report = index_of(store, is_corrected=False)
    assert [notice.partition(" steps")[0] for notice in report.notices] == ["1", "2"]


def test_a_foreign_shard_may_leave_columns_out_and_have_wider_types(tmp_path: Path):
    store = token_store(tmp_path / "s")
    expected, _ = index_of(store)
    (shard,) = store.shards()
    table = pq.read_table(shard.path, partitioning=None)
    wide = table.drop_columns(["temperature", "top_p", "top_k", "policy_version", "prompt_ids"])
    ids = pa.array(table["prompt_ids"].to_pylist(), pa.large_list(pa.int64()))
    logprobs = pa.array(table["response_logprobs"].to_pylist(), pa.large_list(pa.float64()))
    place = wide.column_names.index("response_logprobs")
    wide = wide.append_column("prompt_ids", ids).set_column(place, "response_logprobs", logprobs)
    pq.write_table(wide.append_column("mine", pa.array([1] * 5)), shard.path)
    stamp_credit(store)
    index, report = index_of(store)
    for name in ("row", "prompt_length", "response_length", "num_scored", "advantage"):
        assert getattr(index, name).tolist() == getattr(expected, name).tolist()
    assert report.notices == ("5 steps have no temperature: it is taken to be 1",)


def test_other_credit_is_another_manifest(tmp_path: Path):
    def manifest(name: str, advantage: float) -> str:
        steps = [turn([1], [2], advantage=advantage)]
        return index_of(token_store(tmp_path / name, [episode("a", *steps)]))[0].manifest

    assert manifest("a", 1.0) == manifest("b", 1.0) != manifest("c", 2.0)


def test_credit_of_the_credit_stage_is_read(tmp_path: Path):
    tokens = {"prompt_ids": [1], "response_ids": [2, 3], "response_logprobs": [-1.0, -1.0]}
    won = trajectory("won", "A a B", rewards=[1], success=True, **tokens)
    lost = trajectory("lost", "A b C", **tokens)
    dead = trajectory("dead", "A b C c A", success=None, **tokens)
    store = write_store(tmp_path / "s", won, [*lost, *dead])
    assign_credit(store, CreditSettings(estimators=configure(["rloo"])))
    index, report = index_of(store, "rloo_advantage")
    # Each of two trajectories is compared with the other: 0 - 1 and 1 - 0.
    assert index.advantage.tolist() == [-1, 1]
    assert _dropped(report) == {"no_credit": 2}


_LONGROPE: dict[str, Any] = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 32,
    "long_factor": [4.0] * 32,
    "original_max_position_embeddings": 48,
}


def _scaled(rope_type: str, **values: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": rope_type, **values}}


@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [
        ("qwen2", {}, 100),
        ("gpt2", {}, 100),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 7}, 100),
        ("llama", _scaled("linear", factor=4.0), 400),
        ("llama", _scaled("yarn", factor=4.0, original_max_position_embeddings=100), 400),
        ("llama", _scaled("yarn", factor=2.0, original_max_position_embeddings=50), 100),
        (
            "llama",
            _scaled(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=12,
            ),
            100,
        ),
        ("llama", _scaled("dynamic", factor=4.0), 100),
        ("llama", {"rope_parameters": {"rope_theta": 10000.0, **_LONGROPE}}, 48),
    ],
)
def test_a_step_may_be_as_long_as_the_model_has_positions(
    kind: str, settings: dict[str, Any], limit: int
):
    config = AutoConfig.for_model(kind, max_position_embeddings=100, **settings)
    found = length_limit(config)
    assert found is not None
    assert found.num_tokens == limit


def test_what_has_no_positions_has_no_limit():
    assert length_limit(AutoConfig.for_model("bloom")) is None
