"""The rules about the rows of steps, each a SQL condition: to add a rule, add a row.

A rule whose condition is null counts as kept: nulls are left to the rule `not_null`.
"""

from graphcredit.store.checks.file_rules import REWRITE, RowRule
from graphcredit.store.checks.relations import (
    RowRelation,
    no_null_elements,
    not_null,
    notice,
    relation,
    rule,
)
from graphcredit.store.checks.value_rules import VALUE_RULES
from graphcredit.store.schema import STEP_COLUMNS
from graphcredit.store.sql.views import DERIVED_VIEWS, HAS_VALUES

_NEIGHBOURS = """
    lag(step_index) OVER steps_in_order AS previous_index,
    lead(step_index) OVER steps_in_order AS next_index,
    lag(task_id) OVER steps_in_order AS previous_task_id,
    lag(next_state) OVER steps_in_order AS previous_next_state,
    lag(logged_at) OVER steps_in_order AS previous_logged_at,
    lag(checked_file) OVER steps_in_order AS previous_file,
    lead(checked_file) OVER steps_in_order AS next_file
"""
_IN_ORDER = """
    WINDOW steps_in_order AS (
        PARTITION BY trajectory_id ORDER BY step_index, checked_file, file_row_number
    )
"""
_SEQUENCE = f"""
    SELECT *, {_NEIGHBOURS}
    FROM (
        SELECT checked_file, file_row_number, trajectory_id, task_id, step_index,
            hash(state) AS state, hash(next_state) AS next_state, {HAS_VALUES} AS has_values,
            terminated, truncated, success, logged_at
        FROM steps_table
        WHERE trajectory_id IS NOT NULL AND step_index IS NOT NULL
    )
    {_IN_ORDER}
"""
_TRAJECTORIES = f"""
    WITH steps AS (
        SELECT
            '' AS run_id, 0 AS iteration, 0.0::DOUBLE AS reward, '' AS action,
            CASE WHEN has_values THEN 1.0::DOUBLE END AS cost, true AS is_action_valid, *
        FROM sequence
    )
    FROM ({DERIVED_VIEWS["trajectories"]})
"""
"""The SQL of the view `trajectories`, over `steps` that are made of `sequence`."""
_STARTS = """
    SELECT *, first(state) OVER (PARTITION BY task_id ORDER BY trajectory_id) AS group_state
    FROM sequence WHERE step_index = 0 AND previous_index IS NULL
"""

MISSING_IMAGES = "missing_images"
"""Name of the SQL function that looks for the files of images."""

_PICTURED = f"""
    WITH pictured AS MATERIALIZED (
        SELECT checked_file, file_row_number, trajectory_id,
            {MISSING_IMAGES}(list_transform(images, lambda i: i.path)) AS missing
        FROM steps_table WHERE images IS NOT NULL
    )
    SELECT * FROM pictured JOIN (
        SELECT checked_file, len(list_distinct(flatten(list(missing)))) AS num_missing
        FROM pictured GROUP BY checked_file
    ) USING (checked_file)
"""

STEP_RELATIONS: tuple[RowRelation, ...] = (
    relation(
        "steps",
        "steps",
        "FROM steps_table",
        *not_null(STEP_COLUMNS, REWRITE),
        *VALUE_RULES,
        rule("step_index", "step_index must be 0 or more", "step_index >= 0", "step_index"),
        *map(
            no_null_elements,
            ("admissible_actions", "prompt_ids", "response_ids", "response_logprobs"),
        ),
    ),
    # Each step with the previous and the next one. States are hashes.
    relation(
        "sequence",
        "steps",
        _SEQUENCE,
        rule(
            "unique_step",
            "(trajectory_id, step_index) must be unique within a run and iteration",
            "step_index IS DISTINCT FROM previous_index AND step_index IS DISTINCT FROM next_index",
            "regexp_extract(if(step_index = previous_index, previous_file, next_file), "
            "'[^/]*/[^/]*/[^/]*/[^/]*$')"
            " || ' has it too: step ' || step_index || ' of ' || trajectory_id",
            "log each rollout once, and give different ones different ids",
        ),
        rule(
            "contiguous_steps",
            "step_index must count 0, 1, 2, … within a rollout",
            "step_index - coalesce(previous_index, -1) <= 1",
            "'step ' || step_index || ' of ' || trajectory_id || ' after '"
            " || coalesce('step ' || previous_index, 'no step')",
        ),
        rule(
            "one_task",
            "a trajectory_id must belong to one task_id within a run and iteration",
            "task_id = previous_task_id",
            "trajectory_id || ' in ' || task_id || ' and ' || previous_task_id",
        ),
        rule(
            "unbroken_chain",
            "state must be the next_state of the step before",
            "step_index <> previous_index + 1 OR state = previous_next_state",
            "'another state at step ' || step_index || ' of ' || trajectory_id",
        ),
        rule(
            "end_on_last_step",
            "terminated and truncated must be false before the last step",
            "next_index IS NULL OR next_index = step_index OR NOT (terminated OR truncated)",
            "'an end at step ' || step_index || ' of ' || trajectory_id",
        ),
        rule(
            "success_on_last_step",
            "success must be null before the last step",
            "next_index IS NULL OR next_index = step_index OR success IS NULL",
            "'success at step ' || step_index || ' of ' || trajectory_id",
        ),
        rule(
            "ordered_times",
            "logged_at must not decrease within a rollout",
            "logged_at >= previous_logged_at",
            "logged_at || ' after ' || previous_logged_at || ' in ' || trajectory_id",
        ),
        notice(
            "ended_with_outcome",
            "a last step that has success has an end (terminated or truncated), too",
            "next_index IS NOT NULL OR terminated OR truncated OR success IS NULL",
            "'success without an end in ' || trajectory_id",
            "set it: until then the rollout counts as incomplete and gets no credit",
        ),
        is_stored=True,
    ),
    # The first step of each trajectory.
    relation(
        "starts",
        "steps",
        _STARTS,
        notice(
            "same_start",
            "the rollouts of a group start from the same state",
            "state = group_state",
            "'another first state of ' || trajectory_id || ' in ' || task_id",
            "give rollouts of different initial states different task_ids",
        ),
    ),
    relation("trajectories", "steps", _TRAJECTORIES, is_stored=True),
    relation(
        "pictured",
        "steps",
        _PICTURED,
        RowRule(
            name="image_file",
            holds="the files that steps name as their images must be in the store's folder images/",
            condition="len(missing) = 0",
            found="missing[1] || if(num_missing > 1, ' and ' || (num_missing - 1) || ' more', '')",
            remedy="bring them back: training needs them",
            is_movable=False,
        ),
    ),
)
"""All about steps; each may read those before it."""
