"""The schema of the store: every column with name, Arrow type, nullability and meaning.

Each column is declared here and nowhere else.
"""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of the columns below; written into the metadata of every shard."""

SCHEMA_VERSION_KEY = b"graphcredit.schema_version"
CONFIGURATION_KEY = b"graphcredit.configuration"
"""Metadata key of a credit shard: JSON, per estimator the options that made its columns."""
RULES_MET_KEY = b"graphcredit.state_rules"
"""Metadata of credit that was made with rules of states: JSON, each rule and in how many texts of
a group there is what it means."""
STATES_KEY = b"graphcredit.states"
"""Metadata key of a file of `states/`: the rule, with all that was learned."""


LARGEST_NUMBER = 1e24
"""Largest magnitude of a reward, a cost or a distance. Sums of 2³¹ such numbers fit the 32-bit
floats of credit, and squares of such sums fit 64-bit floats."""

SMALLEST_COST = 1e-24
"""Smallest cost of a step."""

ROUNDING = 1e-12
"""Tolerance of equal sums, relative to the largest: a sum depends on the order of its terms."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of one kind of file."""

    name: str
    type: pa.DataType
    nullable: bool = False
    """Whether a value may be null; a nullable column may be missing from a foreign file."""
    meaning: str
    in_logs: tuple[str, ...] = ()
    """What rows of a log may call it, besides its own name."""
    shown: str = ""
    """The words for a value beside its step in the viewer, such as `reward {}`."""


def _column(
    name: str,
    type_: pa.DataType,
    meaning: str,
    *,
    nullable: bool = False,
    in_logs: tuple[str, ...] = (),
    shown: str = "",
) -> Column:
    return Column(
        name=name, type=type_, nullable=nullable, meaning=meaning, in_logs=in_logs, shown=shown
    )


_nullable = partial(_column, nullable=True)


_STRING, _BOOL, _DOUBLE, _FLOAT, _INT = (
    pa.string(),
    pa.bool_(),
    pa.float64(),
    pa.float32(),
    pa.int32(),
)

_IMAGES = pa.list_(pa.struct([("bytes", pa.binary()), ("path", _STRING)]))

PARTITION_COLUMNS: tuple[Column, ...] = (
    _column("run_id", _STRING, "one training run or one imported log; in the path"),
    _column("iteration", _INT, "policy iteration, 0-based; in the path"),
)

STEP_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "rollouts of one task and initial state form a group"),
    _column(
        *("trajectory_id", _STRING, "unique within (run_id, iteration)"),
        in_logs=(
            *("traj_id", "traj_uid", "episode_id", "episode", "episode_index", "episode_idx"),
            *("episode_num", "ep", "ep_id", "traj", "trajectory", "traj_idx", "rollout_id"),
            *("rollout", "rollout_idx", "rollout_index", "session_id"),
        ),
    ),
    _column(
        *("step_index", _INT, "0 … T-1, contiguous"),
        in_logs=(
            *("step", "step_id", "step_idx", "step_num", "t", "timestep", "time_step"),
            *("frame_index", "turn", "turn_index", "time", "index", "i"),
        ),
    ),
    _column(
        *("state", _STRING, "what identifies the state before the action"), in_logs=("states", "s")
    ),
    _column(
        *("next_state", _STRING, "the same after the action; equals the next step's state"),
        in_logs=(
            *("next_states", "next_observation", "next_obs", "next_ob", "obs_next"),
            *("next_observations", "new_state", "new_obs", "new_observation", "s_next", "s2"),
            *("observation_after", "obs_after", "state_after"),
        ),
    ),
    _nullable(
        *("observation", _STRING, "text shown to the agent, where it differs from state"),
        in_logs=(
            *("obs", "ob", "observations", "observation.state"),
            *("observation_before", "obs_before", "state_before"),
        ),
    ),
    _nullable(
        *("thought", _STRING, "reasoning text of this step"),
        in_logs=("thoughts", "reasoning", "thinking", "rationale"),
    ),
    _column(
        *("action", _STRING, "the action as the environment received it"),
        in_logs=("actions", "act", "acts", "a", "tool", "tool_name"),
    ),
    _nullable(
        *("admissible_actions", pa.list_(_STRING), "what the environment accepts here"),
        in_logs=("admissible_commands", "available_actions", "valid_actions", "legal_actions"),
    ),
    _column(
        *("is_action_valid", _BOOL, "false: unparsable or refused; nothing was done"),
        in_logs=("action_is_valid", "is_valid", "action_valid"),
    ),
    _column(
        *("reward", _DOUBLE, "environment reward of this step, from -1e24 to 1e24"),
        in_logs=("rewards", "rew", "rews", "r", "next.reward"),
        shown="reward {}",
    ),
    _column("cost", _DOUBLE, "cost of this step, from 1e-24 to 1e24", shown="cost {}"),
    _nullable(
        *("score", _DOUBLE, "how good the state after the action is, as somebody judged it"),
        shown="score {}",
    ),
    _nullable("oracle_distance", _DOUBLE, "true remaining cost to the goal, 0 to 1e24"),
    _nullable("next_oracle_distance", _DOUBLE, "the same after the action; 0 when won"),
    _column(
        *("terminated", _BOOL, "the environment ended the episode with this step"),
        in_logs=("terminations", "termination", "term"),
    ),
    _column(
        *("truncated", _BOOL, "a limit ended the episode with this step"),
        in_logs=("truncations", "truncation", "timeouts", "timeout", "trunc"),
    ),
    _nullable("success", _BOOL, "task accomplished; set on the last step only"),
    _nullable("images", _IMAGES, "pictures in the prompt, in its order: bytes, or a path"),
    _nullable("prompt_ids", pa.list_(_INT), "token ids the policy was given"),
    _nullable("response_ids", pa.list_(_INT), "token ids the policy sampled"),
    _nullable("response_logprobs", pa.list_(_FLOAT), "log-probability of each sampled token"),
    _nullable("temperature", _FLOAT, "sampling temperature of this step"),
    _nullable("top_p", _FLOAT, "nucleus truncation of the sampling distribution"),
    _nullable("top_k", _INT, "top-k truncation of the sampling distribution"),
    _nullable("policy_version", _STRING, "which weights sampled this step"),
    _column("worker_id", _STRING, "who logged the step"),
    _column("logged_at", pa.timestamp("us", tz="UTC"), "when; does not decrease in a rollout"),
    _nullable("extra", _STRING, "JSON object, for the caller"),
)

STATES_COLUMNS: tuple[Column, ...] = (
    _column("trajectory_id", _STRING, "copied from the step shard, so that a zip can be checked"),
    _column("step_index", _INT, "copied from the step shard"),
    _column("state", _STRING, "what identifies the state before the action, by the rule"),
    _column("next_state", _STRING, "the same after the action"),
)
"""States by a rule, beside those of a step shard and in its order."""

CREDIT_COLUMNS: tuple[Column, ...] = (
    _column("trajectory_id", _STRING, "copied from the step shard, so that a zip can be checked"),
    _column("step_index", _INT, "copied from the step shard"),
    _nullable("state_id", _INT, "node of the state in its group's graph"),
    _nullable("next_state_id", _INT, "node the step leads to; the goal is a node of its own"),
    _nullable("goal_distance", _FLOAT, "cost of the cheapest observed path to the goal"),
    _nullable("next_goal_distance", _FLOAT, "the same from where the step leads"),
    _nullable("state_group_size", _INT, "steps of the group that start from this state"),
    _nullable("group_size", _INT, "complete rollouts in the group"),
    _nullable("group_success_rate", _FLOAT, "share of them that succeeded"),
    _nullable("is_degenerate_group", _BOOL, "all rollouts of the group have one return"),
)
"""Columns of every credit shard; all but the keys are null for incomplete trajectories."""

CREDIT_KEY_COLUMNS: tuple[Column, ...] = CREDIT_COLUMNS[:2]
"""The columns that a credit shard copies from its step shard, to identify each row."""

ESTIMATOR_PARTS: tuple[str, ...] = (
    "step_reward",
    "step_advantage",
    "episode_advantage",
    "advantage",
    "value",
    "q",
    "outcome",
    "baseline",
    "progress",
)
"""`<estimator>_<part>` is a float column; an estimator writes the parts that it defines."""

EDGE_PARTS: tuple[str, ...] = ("step_reward", "step_advantage", "advantage", "progress")
"""The parts that the edge table averages over the steps of an edge."""

NODE_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "the group"),
    _column("state_id", _INT, "node id, from 0 in each group"),
    _nullable(
        "state",
        _STRING,
        "the first text seen here; null at a goal that only earlier iterations reached",
    ),
    _column("is_goal", _BOOL, "the node that successful last steps lead to"),
    _column("visits", _INT, "how often the group's rollouts were here"),
    _column("num_trajectories", _INT, "how many different rollouts were here"),
    _nullable("success_rate", _FLOAT, "share of those that succeeded"),
    _nullable("goal_distance", _FLOAT, "cost of the cheapest observed path to the goal"),
    _nullable("rewardflow_value", _FLOAT, "RewardFlow's potential, where it was computed"),
    _nullable("reach_expected", _FLOAT, "still earned from here, by the group's own steps"),
    _column("num_merged", _INT, "distinct texts merged into this node"),
)

EDGE_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "the group"),
    _column("state_id", _INT, "node the edge leaves"),
    _column("next_state_id", _INT, "node the edge enters"),
    _column("action", _STRING, "the action taken"),
    _column("visits", _INT, "steps on this edge"),
    _column("cost", _DOUBLE, "the least cost observed on this edge"),
    _column("is_pruned", _BOOL, "self-loop, or every step on it was invalid"),
)

STATE_SCORE_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "the task"),
    _column("state", _STRING, "the first text seen there"),
    _nullable("identity", _STRING, "its text, as the rules leave it; null without any"),
    _nullable("signature", pa.int64(), "hash of its admissible actions, where they matter"),
    _column("num_total", _INT, "rollouts that acted in the state"),
    _column("num_success", _INT, "successful ones among them"),
    _column("score", _DOUBLE, "3SPO's score S of the state"),
    _column("num_rollouts", _INT, "rollouts to allocate at the state"),
)

ENTITY_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "the task"),
    _column("entity_id", _STRING, "key of the entity within the task"),
    _column("name", _STRING, "its name in text"),
    _nullable("aliases", pa.list_(_STRING), "other names"),
    _column("is_answer", _BOOL, "whether the entity answers the task"),
)

RELATION_COLUMNS: tuple[Column, ...] = (
    _column("task_id", _STRING, "the task"),
    _column("head_id", _STRING, "entity the relation starts from"),
    _column("relation", _STRING, "name of the relation"),
    _column("tail_id", _STRING, "entity it leads to"),
)


def metric_column(name: str, meaning: str) -> Column:
    """Return a column of `training`."""
    return _nullable(name, _DOUBLE, meaning)


TRAINING_COLUMNS: tuple[Column, ...] = (
    _column("training", _STRING, "name of the directory that the policy went to"),
    _column("update", _INT, "optimizer step, 0-based"),
    _column("epoch", _INT, "how often each step had been used before"),
    metric_column("loss", "what was minimised"),
    metric_column("policy_loss", "its part from the objective"),
    metric_column("kl_loss", "its part from the divergence; null without a reference"),
    metric_column("entropy_loss", "its part from the entropy bonus; null without one"),
    metric_column("kl", "mean divergence from the reference per token; null without a reference"),
    metric_column("entropy", "mean entropy of the policy per token, in nats"),
    metric_column("ratio_mean", "mean probability ratio of new to old policy"),
    metric_column("ratio_max", "the greatest"),
    metric_column("clipped_high", "share of tokens clipped from above"),
    metric_column("clipped_low", "share clipped from below"),
    metric_column("dual_clipped", "share clipped by the dual clip"),
    metric_column("approx_kl", "mean of r - 1 - log r against the old policy"),
    metric_column(
        "mismatch_mean",
        "mean gap in nats between sampler and trainer at the start; null where not measured",
    ),
    metric_column("mismatch_max", "the greatest"),
    metric_column("mismatch_share", "share of tokens with a gap above 0.1"),
    metric_column("correction_mean", "mean importance weight"),
    metric_column("correction_cut", "share of tokens whose weight was cut or masked"),
    metric_column("effective_sample_size", "of the importance weights, as a share of tokens"),
    metric_column("grad_norm", "norm of the gradient before clipping"),
    metric_column("learning_rate", "of this update"),
    metric_column("advantage_mean", "over the update's steps"),
    metric_column("advantage_std", "over the update's steps"),
    metric_column("advantage_zero", "share of steps whose advantage is 0"),
    metric_column("staleness_mean", "mean age of the steps in policy versions; null where unknown"),
    metric_column("num_steps", "steps used"),
    metric_column("num_tokens", "tokens that went through the model"),
    metric_column("num_scored", "tokens that entered the loss"),
    metric_column("seconds", "time of the update"),
    metric_column("tokens_per_second", "num_tokens / seconds"),
    metric_column("mfu", "share of the device's peak arithmetic; null where the peak is unknown"),
    metric_column("peak_memory", "bytes on the device; null without one"),
)
"""One row per optimizer step, in `training/`. Files may have more metrics: those that an objective
adds (such as `dual_clipped`) need not be listed here."""


def estimator_column(name: str) -> Column:
    """Return a `<estimator>_<part>` column."""
    return _nullable(name, _FLOAT, "written by an estimator")


def split_estimator_column(name: str) -> tuple[str, str] | None:
    """Return estimator and part of a `<estimator>_<part>` column; None for any other name.

    The estimator may be one that this program does not know.
    """
    for suffix in ESTIMATOR_PARTS:
        estimator = name.removesuffix(f"_{suffix}")
        if estimator not in ("", name):
            return estimator, suffix
    return None


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of some columns, with the schema version in its metadata."""
    fields = [pa.field(c.name, c.type, c.nullable) for c in columns]
    return pa.schema(fields, metadata={SCHEMA_VERSION_KEY: str(SCHEMA_VERSION).encode()})


STEP_SCHEMA = arrow_schema(STEP_COLUMNS)
