"""SAPO with GDCR: what a step finds, and what it makes use of, by distance to the answer."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part
from graphcredit.credit.estimators.relative import Normalize, StatOver, relative
from graphcredit.credit.inputs.entities.mentions import Mentions
from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.store.options import Weight

Decay: TypeAlias = Annotated[float, Field(ge=1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sapo:
    """Entities near the answer are worth finding, and worth citing once they were found.

        c(v)        = k^{-d(v)}, d(v) the relations from v to the nearest answer; 0 without a path
        step reward = Σ c(v) over newly cited v + Σ c(v) over newly retrieved v
        A_o = rel(R(τ); group)
        A_g = clip(rel(step reward; steps of τ), -1, 1)
        A   = A_o + λ |A_o| A_g

    Within τ an entity is newly retrieved at the first step whose `next_state` names it, and newly
    cited at the first step whose `thought` names it after an *earlier* step retrieved it. A thought
    that names what was not retrieved yet cites nothing, and the entity can be cited later. The
    first state of τ retrieves nothing. d is `mentions.answer_distance`; an answer has c = 1, with
    relations or without. A task without entities or without an answer has step reward 0, and then
    A_g is 0, as for a rollout of one step. Source: SAPO paper, arXiv 2605.29697, Eq. 4-14.
    """

    decay: Decay = 2.0
    """k: how much less an entity is worth for each relation between it and the answer."""
    strength: Weight = 0.5
    """λ, weight of the step part; the paper leaves it open."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not; in both parts."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps].

        Raises:
            InputError: The batch was made without the mentions of entities.
        """
        reward = self._reward(batch, batch.input("mentions"))
        compared = relative(
            reward, batch.trajectory_of_step, len(batch.is_success), normalize=self.normalize
        )
        step = np.clip(compared, -1.0, 1.0)
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        return {
            "step_reward": reward,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": episode + self.strength * np.abs(episode) * step,
        }

    def _reward(self, batch: StepBatch, mentions: Mentions) -> Floats:
        """Return the step reward, GDCR. [num_steps]."""
        retrieved, cited = new_mentions(mentions, batch.trajectory_of_step)
        distance = mentions.answer_distance
        worth: Floats = np.where(np.isfinite(distance), np.power(self.decay, -distance), 0.0)
        step = np.concatenate([mentions.cited_step[cited], mentions.retrieved_step[retrieved]])
        entity = np.concatenate(
            [mentions.cited_entity[cited], mentions.retrieved_entity[retrieved]]
        )
        reward = np.zeros(batch.num_steps)
        np.add.at(reward, step, worth[entity])
        return reward


def new_mentions(mentions: Mentions, trajectory_of_step: Ints) -> tuple[Ints, Ints]:
    """Return which mentions are new in their trajectory.

    Returns:
        Positions in `mentions.retrieved_step`, and in `mentions.cited_step`.
    """
    num_entities = max(len(mentions.answer_distance), 1)

    def owner(step: Ints, entity: Ints) -> Ints:
        return trajectory_of_step[step] * num_entities + entity

    retrieved_by = owner(mentions.retrieved_step, mentions.retrieved_entity)
    known, retrieved = np.unique(retrieved_by, return_index=True)
    cited_by = owner(mentions.cited_step, mentions.cited_entity)
    place = np.searchsorted(known, cited_by)
    is_known = np.append(known, -1)[place] == cited_by
    first_retrieved = np.append(mentions.retrieved_step[retrieved], 0)[place]
    after = np.flatnonzero(is_known & (mentions.cited_step > first_retrieved))
    return retrieved, after[np.unique(cited_by[after], return_index=True)[1]]
