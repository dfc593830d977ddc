"""slime: two functions named on its command line.

    --custom-reward-post-process-path graphcredit.integrations.slime.post_process
    --custom-advantage-function-path graphcredit.integrations.slime.advantages

The first sees all samples, and puts advantages of tokens where rewards were; the second hands them
to the loss.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from graphcredit.integrations.step_credit import StepCredit
from graphcredit.integrations.token_rows import Row, token_advantages
from graphcredit.store.errors import InputError


def post_process(
    args: Any, samples: Sequence[Any], credit: StepCredit | None = None
) -> tuple[list[float], list[list[float]]]:
    """Return the rewards, and the advantages of the tokens of each sample's response.

    Samples with one `rollout_id` are rows of one trajectory, in order; `group_index` is the group.
    `metadata["states"]`, where it is there, are the states before the turns.

    Raises:
        InputError: An option is missing, or a sample is of no group; or see `token_advantages`.
    """
    if not args.custom_advantage_function_path:
        raise InputError(
            "slime must take advantages of tokens: give it "
            "--custom-advantage-function-path graphcredit.integrations.slime.advantages"
        )
    rewards = [float(sample.get_reward_value(args)) for sample in samples]
    rows: list[Row] = []
    for number, (sample, reward) in enumerate(zip(samples, rewards, strict=True)):
        length = sample.response_length
        start = len(sample.tokens) - length
        rollout = sample.index if sample.rollout_id is None else sample.rollout_id
        if None in (sample.group_index, rollout):
            raise InputError(f"sample {number} must have a group_index and an index: found none")
        rows.append(
            Row(
                task_id=str(sample.group_index),
                trajectory_id=f"{sample.group_index}-{rollout}",
                prompt=sample.tokens[:start],
                response=sample.tokens[start:],
                mask=[1] * length if sample.loss_mask is None else sample.loss_mask,
                reward=reward,
                states=(sample.metadata or {}).get("states"),
            )
        )
    return rewards, token_advantages(rows, _tokenizer(args.hf_checkpoint).decode, credit)


def advantages(args: Any, rollout_data: dict[str, Any]) -> None:
    """Set `advantages` and `returns` of slime's batch to what `post_process` left in `rewards`.

    Raises:
        InputError: A sample has another number of tokens here: context parallel cuts them.
    """
    tensors: list[Any] = []
    for kl, values in zip(rollout_data["kl"], rollout_data["rewards"], strict=True):
        if len(kl) != len(values):
            raise InputError(
                f"a sample must have {len(values)} tokens here, as it was credited: found "
                f"{len(kl)}. Context parallel is not supported: set --context-parallel-size 1"
            )
        tensors.append(kl.new_tensor(values))
    rollout_data["advantages"] = rollout_data["returns"] = tensors
    # slime logs the mean of them.
    rollout_data["rewards"] = [sum(row) / max(len(row), 1) for row in rollout_data["rewards"]]


@cache
def _tokenizer(path: str) -> Any:
    from transformers import AutoTokenizer  # slime has it

    return AutoTokenizer.from_pretrained(path, trust_remote_code=False)
