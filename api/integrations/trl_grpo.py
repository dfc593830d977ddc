"""TRL's GRPOTrainer with an advantage for each turn. Needs TRL; run with 1.16.0.

`GRPOTrainer` has no hook for advantages. The subclass lets it generate, score and log, then
replaces the advantage of each completion by those of its turns.
"""

from itertools import groupby
from typing import Any

from accelerate.utils import gather_object

from graphcredit.integrations.step_credit import Episode, StepCredit
from graphcredit.store.errors import missing_extras

with missing_extras():
    from trl import (  # pyright: ignore[reportMissingImports]
        GRPOTrainer,  # pyright: ignore[reportPrivateImportUsage]
    )

_Trainer: Any = GRPOTrainer

Span = tuple[int, int]
"""First token of a turn, and the first one after it."""


class StepCreditGRPOTrainer(_Trainer):
    """A GRPOTrainer whose tokens have the advantage of their turn, not of their completion.

    A turn is a run of tokens that the policy sampled; tool results and observations lie between
    (`tools`, `environment_factory`, or `env_mask` of a `rollout_func`). Its state is the text since
    the turn before, for the first turn the prompt. A completion without tools is one turn.

    Example:
        trainer = StepCreditGRPOTrainer(
            model, reward_funcs=[won], tools=[look, take], train_dataset=tasks,
            step_credit=StepCredit(estimator="graphgpo"),
        )
    """

    def __init__(self, *args: Any, step_credit: StepCredit | None = None, **options: Any) -> None:
        """Open the trainer.

        Args:
            *args: As GRPOTrainer takes them.
            step_credit: How turns are credited.
            **options: As GRPOTrainer takes them.
        """
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
        spans = [_spans(row) for row in sampled]
        texts = [self._texts(output, row, of_row) for row, of_row in enumerate(spans)]
        every: list[list[tuple[str, str]]] = gather_object(texts)
        values = self._values(every)
        first = self.accelerator.process_index * len(texts)
        advantages = mask.new_zeros(mask.shape, dtype=output["advantages"].dtype)
        for row, of_row in enumerate(spans):
            for (start, stop), value in zip(of_row, values[first + row], strict=True):
                advantages[row, start:stop] = value
        output["advantages"] = advantages
        self._logs["advantages"].extend(
            sum(of_row) / len(of_row) if of_row else 0.0 for of_row in values
        )
        return output

    def _texts(self, output: dict[str, Any], row: int, spans: list[Span]) -> list[tuple[str, str]]:
        """Return the state and the action of each turn of a completion."""
        prompt = output["prompt_ids"][row][output["prompt_mask"][row].bool()].tolist()
        ids = output["completion_ids"][row].tolist()
        decode: Any = self.processing_class.decode
        after = [0, *(stop for _, stop in spans)]
        return [
            (decode(prompt if not number else ids[after[number] : start]), decode(ids[start:stop]))
            for number, (start, stop) in enumerate(spans)
        ]

    def _values(self, completions: list[list[tuple[str, str]]]) -> list[list[float]]:
        """Return the advantage of each turn; 0 in completions that no function gave a reward."""
        size = self.num_generations if self.model.training else self.num_generations_eval
        weights = self.reward_weights.to(self._rewards.device)
        totals = (self._rewards * weights).nansum(dim=1).tolist()
        is_scored = (~self._rewards.isnan().all(dim=1)).tolist()
        step = self.state.global_step
        values = self._step_credit.of_episodes(
            Episode(
                task_id=f"{step}-{number // size}",
                trajectory_id=f"{step}-{number}",
                steps=turns,
                reward=totals[number],
            )
            for number, turns in enumerate(completions)
            if is_scored[number]
        )
        return [
            [next(values) if is_scored[number] else 0.0 for _ in turns]
            for number, turns in enumerate(completions)
        ]


def _spans(sampled: list[int]) -> list[Span]:
    """Return where the runs of sampled tokens lie."""
    spans: list[Span] = []
    position = 0
    for is_sampled, run in groupby(sampled):
        stop = position + len(list(run))
        if is_sampled:
            spans.append((position, stop))
        position = stop
    return spans
