"""SkyRL: a trainer whose advantages are ours.

    class Experiment(BasePPOExp):
        def get_trainer(self, *args, **kwargs):
            return skyrl.with_credit(RayPPOTrainer)(*args, **kwargs)

SkyRL's estimators are given no text, so the method that calls them is overridden.
"""

from itertools import accumulate
from typing import Any

from graphcredit.integrations.step_credit import StepCredit
from graphcredit.integrations.token_rows import Row, spread, token_advantages


def with_credit(trainer: type, credit: StepCredit | None = None) -> type:
    """Return a subclass of SkyRL's `RayPPOTrainer`, or of one that extends it.

    Its `compute_advantages_and_returns` first does what SkyRL does, metrics included, by
    `trainer.algorithm.advantage_estimator`; then the advantages and returns become ours.

    Args:
        trainer: The class.
        credit: How turns are credited.
    """
    base: Any = trainer

    class Credited(base):
        def compute_advantages_and_returns(self, data: Any) -> Any:
            data = super().compute_advantages_and_returns(data)
            values = token_advantages(
                rows_of(data, self.global_step), self.tokenizer.decode, credit
            )
            of_tokens = spread(values, data["advantages"], to_the_right=True)
            data["advantages"] = data["returns"] = of_tokens
            return data

    return Credited


def rows_of(data: Any, step: int) -> list[Row]:
    """Return the rows of a `TrainingInputBatch`; those that fill it up are left out.

    With `generator.step_wise_trajectories` a row is a turn, and `is_last_step` says where a
    trajectory ends; without, a row is a trajectory. What `loss_mask` marks is sampled.
    """
    uids = data.metadata["uids"]
    num_rows = len(data["sequences"]) - data.metadata.get("pad_size", 0)
    is_last = data.metadata.get("is_last_step") or [True] * num_rows
    num_before = list(accumulate([0, *is_last[: num_rows - 1]]))
    length = data["response_mask"].shape[1]
    rows: list[Row] = []
    for number in range(num_rows):
        ids = data["sequences"][number]
        is_seen = data["attention_mask"][number].bool()
        is_response = data["response_mask"][number].bool()
        mask = data["loss_mask"][number]  # 0 for a row that SkyRL filters: its reward still counts
        rows.append(
            Row(
                task_id=str(uids[number]),
                trajectory_id=f"{step}-{num_before[number]}",
                prompt=ids[is_seen][: -int(is_response.sum())].tolist(),
                response=ids[-length:][is_response].tolist(),
                mask=(mask if mask.any() else is_response)[is_response].tolist(),
                reward=float(data["rewards"][number].sum()),
            )
        )
    return rows
