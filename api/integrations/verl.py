"""verl's v1 trainer: `algorithm.adv_estimator=graphcredit.reach`, and nothing else to change.

verl loads `graphcredit.integrations.verl_plugin` by its entry point. v1 names the rows of a batch
`{uid}_{session}_{index}` and gives estimators neither names nor tokens, so its `_compute_advantage`
is wrapped.
"""

from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from graphcredit.credit.estimators.table import all_estimators
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.integrations.token_rows import Row, spread, token_advantages
from graphcredit.store.errors import InputError

PREFIX = "graphcredit."
"""What the names of our estimators begin with."""

_batch: ContextVar[tuple[list[str], Any, Any] | None] = ContextVar("batch", default=None)
"""Names, fields and tokenizer of the batch whose advantages are computed."""


def register() -> None:
    """Register every estimator with verl, and wrap its trainer.

    Raises:
        ImportError: There is no verl with a v1 trainer.
    """
    from verl.trainer.ppo.core_algos import (  # pyright: ignore[reportMissingImports]
        register_adv_est,
    )
    from verl.trainer.ppo.v1 import trainer_base  # pyright: ignore[reportMissingImports]

    for name in all_estimators():
        register_adv_est(PREFIX + name)(partial(advantages, name))
    trainer: Any = trainer_base.PPOTrainer
    compute = trainer._compute_advantage

    @wraps(compute)
    def with_rows(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        if not str(self.config.algorithm.adv_estimator).startswith(PREFIX):
            return compute(self, batch, metrics)
        fields = trainer_base.tq.kv_batch_get(
            keys=batch.keys,
            partition_id=batch.partition_id,
            select_fields=["prompts", "responses", "extra_fields"],
        )
        token = _batch.set((list(batch.keys), fields, self.tokenizer))
        try:
            return compute(self, batch, metrics)
        finally:
            _batch.reset(token)

    trainer._compute_advantage = with_rows


def advantages(
    estimator: str, *, token_level_rewards: Any, response_mask: Any, config: Any = None, **_: Any
) -> tuple[Any, Any]:
    """Return [num_rows, response_length] advantages and returns, as an estimator of verl does.

    `config.graphcredit` has options of `StepCredit`; `extra_fields["states"]` of an agent loop's
    output, where it is, the state before each of its turns.

    Raises:
        InputError: It is not the v1 trainer that asks; or see `token_advantages`.
    """
    batch = _batch.get()
    if batch is None:
        raise InputError(
            "verl's v1 trainer must compute the advantages: the older one knows no names of rows. "
            "Set trainer.use_v1=True"
        )
    keys, fields, tokenizer = batch
    rewards = token_level_rewards.sum(-1).tolist()
    names = [key.rsplit("_", 2) for key in keys]
    # Balancing over workers moves rows: a trajectory's are in the order of their index.
    order = sorted(range(len(keys)), key=lambda number: (*names[number][:2], int(names[number][2])))
    rows = [
        Row(
            task_id=names[number][0],
            trajectory_id="_".join(names[number][:2]),
            prompt=fields["prompts"][number].tolist(),
            response=(response := fields["responses"][number].tolist()),
            mask=response_mask[number, : len(response)].tolist(),
            reward=rewards[number],
            states=_extra(fields, number).get("states"),
        )
        for number in order
    ]
    options: Any = (config or {}).get("graphcredit") or {}
    values = token_advantages(rows, tokenizer.decode, StepCredit(estimator=estimator, **options))
    of_row = dict(zip(order, values, strict=True))
    tensor = spread([of_row[number] for number in range(len(keys))], token_level_rewards)
    return tensor, tensor


def _extra(fields: Any, number: int) -> dict[str, Any]:
    extra = fields["extra_fields"][number] if "extra_fields" in fields.keys() else {}  # noqa: SIM118
    return getattr(extra, "data", extra) or {}
