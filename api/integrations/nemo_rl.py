"""NeMo-RL: an advantage estimator for its GRPO, beside those of its configuration.

    nemo_rl.install(grpo)  # the module nemo_rl.algorithms.grpo, before `grpo.setup`

then `grpo.adv_estimator.name: graphcredit.reach`, and options of `StepCredit` beside the name.
"""

from itertools import count
from typing import Any

from graphcredit.integrations.message_episodes import Chat, turn_advantages, turns_of
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.store.errors import InputError

PREFIX = "graphcredit."


class CreditEstimator:
    """An estimator as NeMo-RL calls it."""

    def __init__(self, credit: StepCredit | None = None) -> None:
        self._credit = credit
        self._batches = count()

    def compute_advantage(
        self, prompt_ids: Any, rewards: Any, mask: Any, *, repeated_batch: Any, **_: Any
    ) -> Any:
        """Return [num_samples, length] the advantages, 0 where `mask` is.

        Args:
            prompt_ids: The prompt of each sample; equal ones are a group.
            rewards: [num_samples] total rewards.
            mask: [num_samples, length] 1 for each token that is trained.
            repeated_batch: Has `message_log`, whose `token_loss_mask` says which were sampled.
            **_: Log-probabilities, which are not used.
        """
        if "message_log" not in repeated_batch:
            raise InputError(
                "NeMo-RL must hand over `message_log`: found "
                f"{', '.join(map(str, repeated_batch)) or 'nothing'}. grpo_train and "
                "async_grpo_train do; the trainer of grpo_sync does not"
            )
        logs, batch = repeated_batch["message_log"], next(self._batches)
        sampled = [[bool(message["token_loss_mask"].any()) for message in log] for log in logs]
        chats = [
            Chat(
                task_id=str(prompt_ids[number].tolist()),
                trajectory_id=f"{batch}-{number}",
                turns=turns_of(list(map(_plain, log)), f"sample {number}", sampled[number]),
                reward=float(rewards[number]),
            )
            for number, log in enumerate(logs)
        ]
        advantages = mask.new_zeros(mask.shape, dtype=rewards.dtype)
        for number, of_turns in enumerate(turn_advantages(chats, self._credit)):
            values, position = iter(of_turns), 0
            for message, is_sampled in zip(logs[number], sampled[number], strict=True):
                stop = position + len(message["token_ids"])
                if is_sampled:
                    advantages[number, position:stop] = next(values)
                position = stop
        return advantages * mask


def install(grpo: Any) -> None:
    """Let the module `nemo_rl.algorithms.grpo` make our estimators by their names."""
    create = grpo._create_advantage_estimator

    def created(master_config: Any) -> Any:
        config = master_config.grpo.adv_estimator
        if not config.name.startswith(PREFIX):
            return create(master_config)
        options = config.model_extra or {}
        return CreditEstimator(StepCredit.of_options(config.name.removeprefix(PREFIX), options))

    grpo._create_advantage_estimator = created


def _plain(message: Any) -> dict[str, Any]:
    return {name: message[name] for name in ("role", "content", "tool_calls") if name in message}
