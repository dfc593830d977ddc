# pyright: reportMissingImports=false
"""slime: its samples, its rollout manager, and its loss, around our two functions.

Where a checkout is on PYTHONPATH, samples and batch are made by slime's code and compared with the
record; elsewhere the adapter gets the record. Megatron and SGLang are not imported.
"""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from graphcredit.integrations import StepCredit, slime
from graphcredit.store.errors import InputError, OptionError
from tests.api.hall import (
    EAST,
    GIGPO,
    TAKE,
    WEST,
    Tokenizer,
    check_record,
    ids,
    read_record,
    stand_ins,
)

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

RECORD = "slime"
# x in two samples of one rollout, then y, then x in one sample: a group of its own with y.
EXPECTED = [[EAST], [TAKE, TAKE], [WEST], [EAST, 0, TAKE], [WEST]]
ARGS = SimpleNamespace(
    advantage_estimator="grpo",
    balance_by_flops=False,
    balance_data=False,
    calculate_per_token_loss=False,
    ci_test=False,
    custom_advantage_function_path="tests.api.test_slime.advantages",
    custom_reward_post_process_path="tests.api.test_slime.post_process",
    entropy_coef=0.0,
    eps_clip=0.2,
    eps_clip_c=None,
    eps_clip_high=0.2,
    get_mismatch_metrics=False,
    global_batch_size=4,
    hf_checkpoint="m",
    kl_coef=0.0,
    log_correct_samples=False,
    log_multi_turn=False,
    log_passrate=False,
    micro_batch_size=1,
    normalize_advantages=False,
    reward_key=None,
    rollout_top_p=1.0,
    use_dynamic_batch_size=False,
    use_kl_loss=False,
    use_opd=False,
    use_opsm=False,
    use_rollout_logprobs=False,
    use_tis=False,
)
handed: list[dict[str, Any]] = []
"""The batches that slime asked for advantages of."""


def post_process(args: Any, samples: Sequence[Any]) -> Any:
    """Name options, as the document says."""
    return slime.post_process(args, samples, GIGPO)


def advantages(args: Any, rollout_data: dict[str, Any]) -> None:
    """Keep what slime hands over."""
    handed.append(dict(rollout_data))
    slime.advantages(args, rollout_data)


@pytest.fixture(autouse=True)
def of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slime, "_tokenizer", lambda path: Tokenizer())
    handed.clear()


@pytest.fixture
def framework() -> Iterator[None]:
    pytest.importorskip("slime", reason="slime is not installed")
    with stand_ins("megatron", "sglang"):
        yield


def samples() -> list[Any]:
    """Return samples with what slime's generation appends to them."""
    from slime.utils.types import Sample

    def sample(group: int, rollout: int, reward: float, prompt: str, *spans: str) -> Any:
        made = Sample(
            group_index=group, index=rollout, rollout_id=rollout, tokens=ids(prompt), reward=reward
        )
        for number, text in enumerate(spans):
            trainable = number % 2 == 0
            logprobs = [-0.5] * len(text.split()) if trainable else None
            made.append_response_tokens(
                ARGS, tokens=ids(text), log_probs=logprobs, trainable=trainable, text=text
            )
        made.status = Sample.Status.COMPLETED
        return made

    return [
        sample(0, 0, 1.0, "find hall", "east"),
        sample(0, 0, 1.0, "find hall east kitchen", "take take"),
        sample(0, 1, 0.0, "find hall", "west"),
        sample(1, 2, 1.0, "find hall", "east", "kitchen", "take"),
        sample(1, 3, 0.0, "find hall", "west"),
    ]


def test_its_rollout_manager_and_its_loss(framework: None, monkeypatch: pytest.MonkeyPatch):
    from slime.backends.megatron_utils import loss
    from slime.backends.megatron_utils.cp_utils import get_sum_of_sample_mean
    from slime.backends.megatron_utils.data import DataIterator
    from slime.observability import train_metric_utils
    from slime.ray import rollout
    from slime.utils.misc import load_function

    mpu: Any = loss.mpu
    mpu.get_context_parallel_world_size.return_value = 1
    mpu.get_tensor_model_parallel_rank.return_value = 0
    mpu.get_data_parallel_world_size.return_value = 1
    monkeypatch.setattr(rollout.ray, "put", lambda value: value)
    manager: Any = object.__new__(rollout.RolloutManager.__ray_metadata__.modified_class)
    manager.args, manager.custom_convert_samples_to_train_data_func = ARGS, None
    manager.custom_reward_post_process_func = load_function(ARGS.custom_reward_post_process_path)
    parallel = {"dp_size": 1, "cp_size": 1, "vpp_size": 1}
    manager.set_train_parallel_config(parallel | {"microbatch_group_size_per_vp_stage": 1})
    made = samples()
    (box,) = manager._split_train_data_by_dp(manager._convert_samples_to_train_data(made))
    data = box.inner
    data["log_probs"] = data["rollout_log_probs"]
    loss.compute_advantages_and_returns(ARGS, data)
    check_record(RECORD, {"samples": made, "rollout_data": handed[0]})
    for found, expected in zip(data["advantages"], EXPECTED, strict=True):
        assert found.dtype == torch.float32
        assert found.tolist() == pytest.approx(expected, rel=1e-4)

    logged: dict[str, Any] = {}
    monkeypatch.setattr(train_metric_utils, "gather_log_data", lambda *args: logged.update(args[3]))
    train_metric_utils.log_rollout_data(0, ARGS, data)
    total = sum(sum(values) / len(values) for values in EXPECTED)
    assert logged["rewards"] == pytest.approx((total, 5), rel=1e-4)

    # Each sample is a micro-batch; the ratio is 1, so the gradient of a sampled token is minus its
    # advantage, over the sampled tokens of its rollout.
    gradients: list[list[float]] = []
    iterator = DataIterator(data, data["micro_batch_indices"])
    names = ["advantages", "log_probs", "loss_masks", "response_lengths", "total_lengths"]
    names = [*names, "unconcat_tokens", "rollout_mask_sums", "rollout_log_probs"]
    for _ in data["micro_batch_indices"]:
        batch = iterator.get_next(names)
        logprobs = batch["log_probs"][0].clone().requires_grad_()
        theirs = (None, {"log_probs": [logprobs], "entropy": [torch.zeros_like(logprobs)]})
        monkeypatch.setattr(loss, "get_log_probs_and_entropy", lambda *a, given=theirs, **o: given)
        reducer = get_sum_of_sample_mean(
            batch["total_lengths"],
            batch["response_lengths"],
            batch["loss_masks"],
            batch["rollout_mask_sums"],
        )
        value, _ = loss.policy_loss_function(ARGS, batch, torch.zeros(1), reducer)
        value.backward()
        gradients.append(cast(Any, logprobs.grad).tolist())
    sampled = [3, 3, 1, 2, 1]
    for found, expected, count in zip(gradients, EXPECTED, sampled, strict=True):
        assert found == pytest.approx([-v / count for v in expected], rel=1e-4)


@pytest.fixture
def record() -> Any:
    record = read_record(RECORD)
    for sample in record["samples"]:
        sample.get_reward_value = lambda args, of=sample: of.reward
    return record


def test_the_record(record: Any):
    rewards, values = post_process(ARGS, record["samples"])
    assert rewards == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert values == [pytest.approx(value, rel=1e-4) for value in EXPECTED]
    batch = record["rollout_data"]
    assert batch["rewards"] == [pytest.approx(value, abs=1e-5) for value in values]
    slime.advantages(ARGS, batch)
    for name in ("advantages", "returns"):
        assert [row.dtype for row in batch[name]] == [torch.float32] * 5
        assert [row.tolist() for row in batch[name]] == [pytest.approx(v, abs=1e-5) for v in values]
    assert batch["rewards"] == pytest.approx([sum(v) / len(v) for v in values], abs=1e-5)


def test_a_sample_without_a_response(record: Any):
    """One that was aborted before its first token: it has states of no turn."""
    _, _, y, x, _ = record["samples"]
    x.group_index, x.metadata = 0, {"states": ["hall", "kitchen"]}
    y.metadata = {"states": ["hall"]}
    y.response_length, y.loss_mask = 0, []
    _, values = post_process(ARGS, [x, y])
    assert values == [[0.0] * 3, []]


def test_what_is_wrong_is_said(record: Any):
    x = record["samples"][0]
    with pytest.raises(InputError, match=r"must have 3 tokens here.*: found 2"):
        slime.advantages(ARGS, {"kl": [torch.zeros(2)], "rewards": [[0.0] * 3]})
    with pytest.raises(InputError, match="slime must take advantages of tokens"):
        slime.post_process(SimpleNamespace(custom_advantage_function_path=None), [x])
    with pytest.raises(OptionError, match=r"state=results. .* this batch has tokens"):
        slime.post_process(ARGS, [x], StepCredit(state="results"))
    x.group_index = None
    with pytest.raises(
        InputError, match="sample 0 must have a group_index and an index: found none"
    ):
        post_process(ARGS, [x])
