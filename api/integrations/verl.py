"""verl's v1 trainer: `algorithm.adv_estimator=graphcredit.reach`, and nothing else to change.

v1 names the rows of a batch `{uid}_{session}_{index}`, and tells estimators neither names nor
tokens: `with_rows` does. verl loads `verl_plugin`.
"""

from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from graphcredit.credit.estimators.table import all_estimators
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.integrations.token_rows import Row, spread, token_advantages
from graphcredit.store.errors import InputError

PREFIX = "graphcredit."
_batch: ContextVar[tuple[list[str], Any, Any] | None] = ContextVar("batch", default=None)


def register() -> None:
    """Register every estimator with verl, and wrap its trainer."""
    from verl.trainer.ppo import core_algos  # pyright: ignore[reportMissingImports]
    from verl.trainer.ppo.v1 import trainer_base  # pyright: ignore[reportMissingImports]

    for name in all_estimators():
        core_algos.register_adv_est(PREFIX + name)(partial(advantages, name))
    trainer: Any = trainer_base.PPOTrainer
    trainer._compute_advantage = with_rows(trainer._compute_advantage, trainer_base)


def with_rows(compute: Any, base: Any) -> Any:
    """Return `PPOTrainer._compute_advantage` so that `advantages` knows its batch."""

    @wraps(compute)
    def computed(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        if PREFIX not in str(self.config.algorithm.adv_estimator):
            return compute(self, batch, metrics)
        names = ["prompts", "responses", "response_mask", "extra_fields"]
        fields = base.tq.kv_batch_get(batch.keys, batch.partition_id, names)
        token = _batch.set((list(batch.keys), fields, self.tokenizer))
        try:
            return compute(self, batch, metrics)
        finally:
            _batch.reset(token)

    return computed


def advantages(
    estimator: str, *, token_level_rewards: Any, response_mask: Any, config: Any = None, **_: Any
) -> tuple[Any, Any]:
    """Return [num_rows, response_length] advantages and returns.

    `config.graphcredit` has options of `StepCredit`; `extra_fields["states"]` may have states.
    """
    batch = _batch.get()
    if batch is None:
        raise InputError("verl's v1 trainer must ask for these advantages: set trainer.use_v1=True")
    keys, fields, tokenizer = batch
    names = [key.rsplit("_", 2) for key in keys]
    # Balancing moves rows: a trajectory's are in the order of their index.
    order = sorted(range(len(keys)), key=lambda number: (*names[number][:2], int(names[number][2])))
    extras = [getattr(extra, "data", extra) or {} for extra in fields["extra_fields"]]
    rows = [
        Row(
            task_id=names[number][0],
            trajectory_id="_".join(names[number][:2]),
            prompt=fields["prompts"][number].tolist(),
            response=fields["responses"][number].tolist(),
            # As it was before tokens were rejected: its runs are the turns.
            mask=fields["response_mask"][number].tolist(),
            reward=float(token_level_rewards[number].sum()),
            states=extras[number].get("states"),
        )
        for number in order
    ]
    credit = StepCredit.of_options(estimator, (config or {}).get("graphcredit") or {})
    values = token_advantages(rows, tokenizer.decode, credit)
    of_row = [value for _, value in sorted(zip(order, values, strict=True))]
    return (spread(of_row, token_level_rewards) * response_mask,) * 2
