"""Step indexes of steps that are in no store."""

from collections.abc import Sequence

import numpy as np

from graphcredit.trainer.data.step_index import StepIndex


def index_of(
    responses: Sequence[int],
    *,
    prompts: Sequence[int] | None = None,
    masked: Sequence[int] | None = None,
    trajectory: Sequence[int] | None = None,
    group: Sequence[int] | None = None,
    sequence: Sequence[int] | None = None,
    manifest: str = "m",
) -> StepIndex:
    """Return an index of steps with responses of the given lengths.

    Args:
        responses: Response tokens of each step.
        prompts: Prompt tokens; 1 for each by default.
        masked: Response tokens that are not scored; none by default.
        trajectory: Of each step; all of one by default.
        group: The same.
        sequence: Which steps are alike; none by default.
        manifest: Stands for the data.
    """
    count = len(responses)
    zeros = np.zeros(count, np.int64)
    response = np.array(responses, np.int64)
    return StepIndex(
        shards=(),
        shard=zeros,
        row=np.arange(count),
        prompt_length=zeros + 1 if prompts is None else np.array(prompts, np.int64),
        response_length=response,
        num_scored=response - (zeros if masked is None else np.array(masked, np.int64)),
        advantage=np.ones(count),
        trajectory=zeros if trajectory is None else np.array(trajectory, np.int64),
        group=zeros if group is None else np.array(group, np.int64),
        staleness=zeros,
        sequence=np.arange(count) if sequence is None else np.array(sequence, np.int64),
        num_images=zeros,
        manifest=manifest,
    )
