"""The rules about rows, declared as data: to add a rule, add a row.

Each is a SQL condition over a relation of `rows.py`. A rule whose condition is null counts as kept:
nulls are left to the rule `not_null`.
"""

from collections.abc import Iterable

from graphcredit.store.checks.file_rules import RECREDIT, REPLAY_AGAIN, REWRITE, RowRule, Severity
from graphcredit.store.checks.value_rules import VALUE_RULES
from graphcredit.store.schema import (
    CREDIT_COLUMNS,
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    NODE_COLUMNS,
    NOTE_COLUMNS,
    NUM_BARS,
    RELATION_COLUMNS,
    REPLAY_COLUMNS,
    STATE_SCORE_COLUMNS,
    STEP_COLUMNS,
    SUMMARY_ADVANTAGE_COLUMNS,
    SUMMARY_TRAJECTORY_COLUMNS,
    Column,
)


def _row(name: str, holds: str, condition: str, found: str, remedy: str = REWRITE) -> RowRule:
    return RowRule(name=name, holds=holds, condition=condition, found=found, remedy=remedy)


def _row_notice(name: str, holds: str, condition: str, found: str, remedy: str) -> RowRule:
    return RowRule(
        name=name,
        holds=holds,
        condition=condition,
        found=found,
        remedy=remedy,
        severity=Severity.NOTICE,
    )


def _not_null(columns: Iterable[Column], remedy: str) -> tuple[RowRule, ...]:
    return tuple(
        _row("not_null", f"{c.name} must not be null", f'"{c.name}" IS NOT NULL', "'null'", remedy)
        for c in columns
        if not c.nullable
    )


def _no_null_elements(column: str) -> RowRule:
    return _row(
        "no_null_elements",
        f"{column} must hold no null",
        f"list_count({column}) = len({column})",
        f"(len({column}) - list_count({column}))::VARCHAR || ' null elements'",
    )


STEP_RULES: tuple[RowRule, ...] = (
    *_not_null(STEP_COLUMNS, REWRITE),
    *VALUE_RULES,
    _row("step_index", "step_index must be 0 or more", "step_index >= 0", "step_index"),
    *map(
        _no_null_elements,
        ("admissible_actions", "prompt_ids", "response_ids", "response_logprobs"),
    ),
)
"""Over `steps`: the rows of step shards, one by one."""

COPY_RULES: tuple[RowRule, ...] = (
    _row(
        "unique_trajectory",
        "a trajectory must be in its run and iteration once",
        "copy = 0",
        "CASE WHEN NOT is_whole THEN 'steps of a trajectory more than once' WHEN copies = 2 "
        "THEN 'the same trajectory twice' ELSE 'the same trajectory ' || copies || ' times' END"
        " || ', equal: ' || trajectory_id",
        "give each trajectory its own trajectory_id; `graphcredit check STORE --quarantine` keeps "
        "one of several equal copies and moves the others aside",
    ),
)
"""Over `copies`: steps that are there several times, equal but for worker_id and logged_at."""

SEQUENCE_RULES: tuple[RowRule, ...] = (
    _row(
        "unique_step",
        "(trajectory_id, step_index) must be unique within a run and iteration",
        "step_index IS DISTINCT FROM previous_index AND step_index IS DISTINCT FROM next_index",
        "regexp_extract(if(step_index = previous_index, previous_file, next_file), "
        "'[^/]*/[^/]*/[^/]*/[^/]*$')"
        " || ' has it too: step ' || step_index || ' of ' || trajectory_id",
        "log each trajectory once, and give different ones different ids; `graphcredit check STORE "
        "--quarantine` moves all copies that differ aside",
    ),
    _row(
        "contiguous_steps",
        "step_index must count 0, 1, 2, … within a trajectory",
        "step_index - coalesce(previous_index, -1) <= 1",
        "'step ' || step_index || ' of ' || trajectory_id || ' after '"
        " || coalesce('step ' || previous_index, 'no step')",
    ),
    _row(
        "one_task",
        "a trajectory_id must belong to one task_id within a run and iteration",
        "task_id = previous_task_id",
        "trajectory_id || ' in ' || task_id || ' and ' || previous_task_id",
    ),
    _row(
        "unbroken_chain",
        "state must be the next_state of the step before",
        "step_index <> previous_index + 1 OR state = previous_next_state",
        "'another state at step ' || step_index || ' of ' || trajectory_id",
    ),
    _row(
        "end_on_last_step",
        "terminated and truncated must be false before the last step",
        "next_index IS NULL OR NOT (terminated OR truncated)",
        "'an end at step ' || step_index || ' of ' || trajectory_id",
    ),
    _row(
        "success_on_last_step",
        "success must be null before the last step",
        "next_index IS NULL OR success IS NULL",
        "'success at step ' || step_index || ' of ' || trajectory_id",
    ),
    _row(
        "ordered_times",
        "logged_at must not decrease within a trajectory",
        "logged_at >= previous_logged_at",
        "logged_at || ' after ' || previous_logged_at || ' in ' || trajectory_id",
    ),
    _row_notice(
        "ended_with_outcome",
        "a last step has an end (terminated or truncated) and success, or neither",
        "next_index IS NOT NULL OR (terminated OR truncated) = (success IS NOT NULL)",
        "CASE WHEN success IS NULL THEN 'an end without success' "
        "ELSE 'success without an end' END || ' in ' || trajectory_id",
        "set both: until then the trajectory counts as incomplete and gets no credit",
    ),
)
"""Over `sequence`: each step with the previous and the next one, without equal copies. States are
hashes."""

START_RULES: tuple[RowRule, ...] = (
    _row_notice(
        "same_start",
        "the trajectories of a group start from the same state",
        "state = group_state",
        "'another first state of ' || trajectory_id || ' in ' || task_id",
        "give rollouts of different initial states different task_ids",
    ),
)
"""Over `starts`: the first step of each trajectory."""

CREDIT_RULES: tuple[RowRule, ...] = (
    *_not_null(CREDIT_COLUMNS, RECREDIT),
    _row(
        "no_credit_for_incomplete",
        "credit must be null on the steps of incomplete trajectories",
        "is_complete OR NOT has_credit",
        "'credit in ' || trajectory_id",
        RECREDIT,
    ),
    _row(
        "finite_credit",
        "credit must be finite, or null where there is none",
        "has_finite_credit",
        "'NaN or an infinite number at step ' || step_index || ' of ' || trajectory_id",
        RECREDIT,
    ),
)
"""Over `credit`: the rows of credit shards, and whether their trajectory is complete."""

NODE_RULES: tuple[RowRule, ...] = (
    *_not_null(NODE_COLUMNS, RECREDIT),
    _row(
        "unique_node",
        "a state_id must be unique in its task",
        "copies = 1",
        "state_id",
        RECREDIT,
    ),
    _row(
        "node_ids",
        "node ids must start at 0 in each task",
        "first_id = 0",
        "first_id",
        RECREDIT,
    ),
    _row("one_goal", "a task has one goal node at most", "num_goals <= 1", "num_goals", RECREDIT),
)
"""Over `nodes`."""

EDGE_RULES: tuple[RowRule, ...] = (
    *_not_null(EDGE_COLUMNS, RECREDIT),
    _row("edge_source", "state_id must be a node of the task", "has_source", "state_id", RECREDIT),
    _row(
        "edge_target", "next_state_id must be a node of the task", "has_target", "next_state_id",
        RECREDIT,
    ),
    _row("edge_cost", "cost must be finite and above 0", "isfinite(cost) AND cost > 0", "cost",
         RECREDIT),
)  # fmt: skip
"""Over `edges`."""

SUMMARY_TRAJECTORY_RULES: tuple[RowRule, ...] = (
    *_not_null(SUMMARY_TRAJECTORY_COLUMNS, RECREDIT),
    _row("unique_summary", "a summary must list a trajectory once", "copies = 1", "trajectory_id",
         RECREDIT),
    _row(
        "summary_steps",
        "num_steps must be the number of steps that the trajectory has",
        "num_steps = num_logged",
        "num_steps || ' of ' || trajectory_id || ', which has ' || num_logged",
        RECREDIT,
    ),
)  # fmt: skip
"""Over `summary_trajectories`."""

SUMMARY_ADVANTAGE_RULES: tuple[RowRule, ...] = (
    *_not_null(SUMMARY_ADVANTAGE_COLUMNS, RECREDIT),
    _no_null_elements("bars"),
    _row("unique_sum", "a summary must list a trajectory once for each estimator", "copies = 1",
         "trajectory_id || ', ' || estimator", RECREDIT),
    _row(
        "summary_bars",
        f"bars must be {NUM_BARS} numbers whose sum is num_steps",
        f"len(bars) = {NUM_BARS} AND list_sum(bars) = num_steps",
        "len(bars) || ' bars of ' || coalesce(list_sum(bars), 0) || ' steps'",
        RECREDIT,
    ),
    _row(
        "summary_scale",
        "scale must be 0 or a power of two, and no advantage greater",
        "greatest(most, -least) <= scale AND (scale = 0 OR log2(nullif(scale, 0)) % 1 = 0)",
        "'from ' || least || ' to ' || most || ', scale ' || scale",
        RECREDIT,
    ),
)  # fmt: skip
"""Over `summary_advantages`."""

STATE_SCORE_RULES: tuple[RowRule, ...] = (
    *_not_null(STATE_SCORE_COLUMNS, REWRITE),
    _row(
        "success_count",
        "num_success must be between 0 and num_total",
        "num_success BETWEEN 0 AND num_total",
        "num_success || ' of ' || num_total",
    ),
    _row(
        "unique_state", "a state must be listed once in its task", "copies = 1", "left(state, 80)"
    ),
)
"""Over `state_scores`."""

_NOTED = "coalesce('step ' || step_index || ' of ', '') || trajectory_id"

_PLAYED = "q, q_plays, v, v_plays, v_actions, v_repeats, advantage, advantage_se"

REPLAY_RULES: tuple[RowRule, ...] = (
    *_not_null(REPLAY_COLUMNS, REPLAY_AGAIN),
    _row(
        "replayed_step",
        "a replay must be of a step of the store, with its task and its action",
        "has_step",
        "'step ' || step_index || ' of ' || trajectory_id",
        REPLAY_AGAIN,
    ),
    _row(
        "unique_replay",
        "a step must be replayed once with the same settings",
        "copies = 1",
        "'step ' || step_index || ' of ' || trajectory_id",
        REPLAY_AGAIN,
    ),
    _row(
        "replay_or_failure",
        "a replay must have either all its numbers or a failure",
        f"num_numbers = CASE WHEN failure IS NULL THEN {len(_PLAYED.split(', '))} ELSE 0 END",
        "num_numbers || ' numbers, failure ' || coalesce(failure, 'null')",
        REPLAY_AGAIN,
    ),
    _row("steps_left", "steps_left must be 1 or more", "steps_left >= 1", "steps_left",
         REPLAY_AGAIN),
    _row(
        "replay_plays",
        "q_plays and v_plays must be 1 or more, v_actions and v_repeats at most v_plays",
        "q_plays >= 1 AND v_plays >= 1 AND v_actions BETWEEN 1 AND v_plays "
        "AND v_repeats BETWEEN 0 AND v_plays",
        "q_plays || ', ' || v_plays || ', ' || v_actions || ', ' || v_repeats",
        REPLAY_AGAIN,
    ),
    _row(
        "replay_share",
        "q and v must be shares of their plays, and advantage their difference",
        "q BETWEEN 0 AND 1 AND v BETWEEN 0 AND 1 "
        "AND abs(q * q_plays - round(q * q_plays)) < 1e-6 "
        "AND abs(v * v_plays - round(v * v_plays)) < 1e-6 "
        "AND abs(q - v - advantage) < 1e-9",
        "'q ' || q || ', v ' || v || ', advantage ' || advantage",
        REPLAY_AGAIN,
    ),
    _row(
        "replay_error",
        "advantage_se must be finite and above 0",
        "isfinite(advantage_se) AND advantage_se > 0",
        "advantage_se",
        REPLAY_AGAIN,
    ),
)  # fmt: skip
"""Over `replay`."""

NUM_REPLAY_NUMBERS = " + ".join(f"({name} IS NOT NULL)::INT" for name in _PLAYED.split(", "))
"""SQL of how many of its numbers a row of `replay` has."""

NOTE_RULES: tuple[RowRule, ...] = (
    *_not_null(NOTE_COLUMNS, REWRITE),
    _no_null_elements("tags"),
    _row(
        "unique_note",
        "a step or trajectory must have one row of notes",
        "copies = 1",
        f"{_NOTED} || ' ' || copies || ' times'",
    ),
    _row_notice(
        "noted_step",
        "a note is on a step or trajectory of its task in the store",
        "is_there",
        _NOTED,
        "the note is kept, and counts again when the steps are back",
    ),
)
"""Over `notes`."""

ENTITY_RULES: tuple[RowRule, ...] = (
    *_not_null(ENTITY_COLUMNS, REWRITE),
    _row("unique_entity", "an entity_id must be unique in its task", "copies = 1", "entity_id"),
    _no_null_elements("aliases"),
)
"""Over `entities`."""

RELATION_RULES: tuple[RowRule, ...] = (
    *_not_null(RELATION_COLUMNS, REWRITE),
    _row("relation_head", "head_id must be an entity of the task", "has_head", "head_id"),
    _row("relation_tail", "tail_id must be an entity of the task", "has_tail", "tail_id"),
)
"""Over `relations`."""
