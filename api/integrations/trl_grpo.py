"""TRL's GRPOTrainer with an advantage for each turn. Needs TRL.

`GRPOTrainer` has no hook for advantages. The subclass lets it generate, score and log, then
replaces the advantage of each completion by those of its turns.
"""

from typing import Any

from accelerate.utils import gather_object

from graphcredit.integrations.step_credit import StepCredit
from graphcredit.integrations.token_rows import Row, spread, token_advantages
from graphcredit.store.errors import missing_extras

with missing_extras():
    import trl  # pyright: ignore[reportMissingImports]

_Trainer: Any = trl.GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]
_Completion = tuple[list[int], list[int], list[int]]
"""Prompt, completion, and the completion's mask: 1 where the policy sampled."""


class StepCreditGRPOTrainer(_Trainer):
    """A GRPOTrainer whose tokens have the advantage of their turn, not of their completion.

    A turn is a run of tokens that the policy sampled; tool results and observations lie between
    (`tools`, `environment_factory`, or `env_mask` of a `rollout_func`). A completion without tools
    is one turn. A completion that no function gave a reward has advantage 0.
    """

    def __init__(self, *args: Any, step_credit: StepCredit | None = None, **options: Any) -> None:
        """Open the trainer with what GRPOTrainer takes, and how turns are credited."""
        super().__init__(*args, **options)
        self._step_credit = step_credit or StepCredit()
        self._rewards: Any = None

    def _calculate_rewards(self, *args: Any, **options: Any) -> Any:
        """Keep the rewards, [num_completions of all processes, num_reward_funcs]."""
        self._rewards = super()._calculate_rewards(*args, **options)
        return self._rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        mask = output["completion_mask"]
        sampled = (mask * output["tool_mask"] if "tool_mask" in output else mask).tolist()
        prompts = zip(output["prompt_ids"], output["prompt_mask"].bool(), strict=True)
        prompts = [ids[is_seen].tolist() for ids, is_seen in prompts]
        here = list(zip(prompts, output["completion_ids"].tolist(), sampled, strict=True))
        every: list[_Completion] = gather_object(here)
        values = self._values(every)
        first = self.accelerator.process_index * len(here)
        like = mask.new_zeros(mask.shape, dtype=output["advantages"].dtype)
        output["advantages"] = spread(values[first : first + len(here)], like)
        means = (sum(v) / max(sum(m), 1) for v, (*_, m) in zip(values, every, strict=True))
        self._logs["advantages"].extend(means)
        return output

    def _values(self, completions: list[_Completion]) -> list[list[float]]:
        """Return the advantage of each token of the completions of all processes."""
        size = self.num_generations if self.model.training else self.num_generations_eval
        weights = self.reward_weights.to(self._rewards.device)
        totals = (self._rewards * weights).nansum(dim=1).tolist()
        is_scored = (~self._rewards.isnan().all(dim=1)).tolist()
        step = self.state.global_step
        rows = {
            number: Row(
                task_id=f"{step}-{number // size}",
                trajectory_id=f"{step}-{number}",
                prompt=prompt,
                response=completion,
                mask=sampled,
                reward=totals[number],
            )
            for number, (prompt, completion, sampled) in enumerate(completions)
            if is_scored[number]
        }
        decode = self.processing_class.decode
        values = token_advantages(list(rows.values()), decode, self._step_credit)
        of_row = dict(zip(rows, values, strict=True))
        return [of_row.get(n, [0.0] * len(c)) for n, (_, c, _) in enumerate(completions)]
