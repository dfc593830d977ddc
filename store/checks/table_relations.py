"""The rules about the rows of the other tables, each a SQL condition: to add a rule, add a row."""

from functools import partial

from graphcredit.store.checks.file_rules import RECREDIT, REPLAY_AGAIN, REWRITE
from graphcredit.store.checks.relations import (
    RowRelation,
    no_null_elements,
    not_null,
    notice,
    relation,
    rule,
)
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
    SUMMARY_ADVANTAGE_COLUMNS,
    SUMMARY_TRAJECTORY_COLUMNS,
)

_of_credit = partial(rule, remedy=RECREDIT)
_of_replay = partial(rule, remedy=REPLAY_AGAIN)

_NOTED = "coalesce('step ' || step_index || ' of ', '') || trajectory_id"
_PLAYED = "q, q_plays, v, v_plays, v_actions, v_repeats, advantage, advantage_se"
_NUM_NUMBERS = " + ".join(f"({name} IS NOT NULL)::INT" for name in _PLAYED.split(", "))

TABLE_RELATIONS: tuple[RowRelation, ...] = (
    relation(
        "credit",
        "steps credit",
        """
        SELECT credit_table.*, coalesce(is_complete, false) AS is_complete
        FROM credit_table LEFT JOIN trajectories USING (trajectory_id)
        """,
        *not_null(CREDIT_COLUMNS, RECREDIT),
        _of_credit(
            "no_credit_for_incomplete",
            "credit must be null on the steps of incomplete trajectories",
            "is_complete OR NOT has_credit",
            "'credit in ' || trajectory_id",
        ),
        _of_credit(
            "finite_credit",
            "credit must be finite, or null where there is none",
            "has_finite_credit",
            "'NaN or an infinite number at step ' || step_index || ' of ' || trajectory_id",
        ),
    ),
    relation(
        "nodes",
        "nodes",
        """
        SELECT *,
            count(*) OVER (PARTITION BY task_id, state_id) AS copies,
            count_if(is_goal) OVER (PARTITION BY task_id) AS num_goals,
            min(state_id) OVER (PARTITION BY task_id) AS first_id
        FROM nodes_table
        """,
        *not_null(NODE_COLUMNS, RECREDIT),
        _of_credit(
            "unique_node", "a state_id must be unique in its task", "copies = 1", "state_id"
        ),
        _of_credit("node_ids", "node ids must start at 0 in each task", "first_id = 0", "first_id"),
        _of_credit("one_goal", "a task has one goal node at most", "num_goals <= 1", "num_goals"),
    ),
    relation(
        "edges",
        "nodes edges",
        """
        SELECT *,
            (task_id, state_id) IN (SELECT (task_id, state_id) FROM nodes_table) AS has_source,
            (task_id, next_state_id) IN (SELECT (task_id, state_id) FROM nodes_table) AS has_target
        FROM edges_table
        """,
        *not_null(EDGE_COLUMNS, RECREDIT),
        _of_credit("edge_source", "state_id must be a node of the task", "has_source", "state_id"),
        _of_credit(
            "edge_target", "next_state_id must be a node of the task", "has_target", "next_state_id"
        ),
        _of_credit(
            "edge_cost", "cost must be finite and above 0", "isfinite(cost) AND cost > 0", "cost"
        ),
    ),
    relation(
        "summary_trajectories",
        "steps summary_trajectories",
        """
        SELECT
            summed.*, coalesce(num_logged, 0) AS num_logged,
            count(*) OVER (PARTITION BY task_id, trajectory_id) AS copies
        FROM summary_trajectories_table AS summed
        LEFT JOIN (
            SELECT task_id, trajectory_id, count(*) AS num_logged FROM steps_table GROUP BY ALL
        ) USING (task_id, trajectory_id)
        """,
        *not_null(SUMMARY_TRAJECTORY_COLUMNS, RECREDIT),
        _of_credit(
            "unique_summary", "a summary must list a trajectory once", "copies = 1", "trajectory_id"
        ),
        _of_credit(
            "summary_steps",
            "num_steps must be the number of steps that the trajectory has",
            "num_steps = num_logged",
            "num_steps || ' of ' || trajectory_id || ', which has ' || num_logged",
        ),
    ),
    relation(
        "summary_advantages",
        "summary_advantages",
        """
        SELECT *, count(*) OVER (PARTITION BY trajectory_id, estimator) AS copies
        FROM summary_advantages_table
        """,
        *not_null(SUMMARY_ADVANTAGE_COLUMNS, RECREDIT),
        no_null_elements("bars"),
        _of_credit(
            "unique_sum",
            "a summary must list a trajectory once for each estimator",
            "copies = 1",
            "trajectory_id || ', ' || estimator",
        ),
        _of_credit(
            "summary_bars",
            f"bars must be {NUM_BARS} numbers whose sum is num_steps",
            f"len(bars) = {NUM_BARS} AND list_sum(bars) = num_steps",
            "len(bars) || ' bars of ' || coalesce(list_sum(bars), 0) || ' steps'",
        ),
        _of_credit(
            "summary_scale",
            "scale must be 0 or a power of two, and no advantage greater",
            "greatest(most, -least) <= scale AND (scale = 0 OR log2(nullif(scale, 0)) % 1 = 0)",
            "'from ' || least || ' to ' || most || ', scale ' || scale",
        ),
    ),
    relation(
        "replay",
        "steps replay",
        f"""
        SELECT replay_table.*,
            (task_id, trajectory_id, step_index, action) IN (
                SELECT (task_id, trajectory_id, step_index, action) FROM steps_table
            ) AS has_step,
            count(*) OVER (PARTITION BY trajectory_id, step_index, settings) AS copies,
            {_NUM_NUMBERS} AS num_numbers
        FROM replay_table
        """,
        *not_null(REPLAY_COLUMNS, REPLAY_AGAIN),
        _of_replay(
            "replayed_step",
            "a replay must be of a step of the store, with its task and its action",
            "has_step",
            "'step ' || step_index || ' of ' || trajectory_id",
        ),
        _of_replay(
            "unique_replay",
            "a step must be replayed once with the same settings",
            "copies = 1",
            "'step ' || step_index || ' of ' || trajectory_id",
        ),
        _of_replay(
            "replay_or_failure",
            "a replay must have either all its numbers or a failure",
            f"num_numbers = CASE WHEN failure IS NULL THEN {len(_PLAYED.split(', '))} ELSE 0 END",
            "num_numbers || ' numbers, failure ' || coalesce(failure, 'null')",
        ),
        _of_replay("steps_left", "steps_left must be 1 or more", "steps_left >= 1", "steps_left"),
        _of_replay(
            "replay_plays",
            "q_plays and v_plays must be 1 or more, v_actions and v_repeats at most v_plays",
            "q_plays >= 1 AND v_plays >= 1 AND v_actions BETWEEN 1 AND v_plays "
            "AND v_repeats BETWEEN 0 AND v_plays",
            "q_plays || ', ' || v_plays || ', ' || v_actions || ', ' || v_repeats",
        ),
        _of_replay(
            "replay_share",
            "q and v must be shares of their plays, and advantage their difference",
            "q BETWEEN 0 AND 1 AND v BETWEEN 0 AND 1 "
            "AND abs(q * q_plays - round(q * q_plays)) < 1e-6 "
            "AND abs(v * v_plays - round(v * v_plays)) < 1e-6 "
            "AND abs(q - v - advantage) < 1e-9",
            "'q ' || q || ', v ' || v || ', advantage ' || advantage",
        ),
        _of_replay(
            "replay_error",
            "advantage_se must be finite and above 0",
            "isfinite(advantage_se) AND advantage_se > 0",
            "advantage_se",
        ),
    ),
    relation(
        "notes",
        "steps notes",
        """
        SELECT *,
            CASE WHEN step_index IS NULL
                THEN (task_id, trajectory_id) IN (SELECT (task_id, trajectory_id) FROM steps_table)
                ELSE (task_id, trajectory_id, step_index) IN (
                    SELECT (task_id, trajectory_id, step_index) FROM steps_table
                )
            END AS is_there,
            count(*) OVER (PARTITION BY trajectory_id, step_index) AS copies
        FROM notes_table
        """,
        *not_null(NOTE_COLUMNS, REWRITE),
        no_null_elements("tags"),
        rule(
            "unique_note",
            "a step or trajectory must have one row of notes",
            "copies = 1",
            f"{_NOTED} || ' ' || copies || ' times'",
        ),
        notice(
            "noted_step",
            "a note is on a step or trajectory of its task in the store",
            "is_there",
            _NOTED,
            "the note is kept, and counts again when the steps are back",
        ),
    ),
    relation(
        "state_scores",
        "state_scores",
        """
        SELECT *, count(*) OVER (PARTITION BY task_id, state) AS copies FROM state_scores_table
        """,
        *not_null(STATE_SCORE_COLUMNS, REWRITE),
        rule(
            "success_count",
            "num_success must be between 0 and num_total",
            "num_success BETWEEN 0 AND num_total",
            "num_success || ' of ' || num_total",
        ),
        rule(
            "unique_state",
            "a state must be listed once in its task",
            "copies = 1",
            "left(state, 80)",
        ),
    ),
    relation(
        "entities",
        "entities",
        """
        SELECT *, count(*) OVER (PARTITION BY task_id, entity_id) AS copies FROM entities_table
        """,
        *not_null(ENTITY_COLUMNS, REWRITE),
        rule("unique_entity", "an entity_id must be unique in its task", "copies = 1", "entity_id"),
        no_null_elements("aliases"),
    ),
    relation(
        "relations",
        "entities relations",
        """
        SELECT *,
            (task_id, head_id) IN (SELECT (task_id, entity_id) FROM entities_table) AS has_head,
            (task_id, tail_id) IN (SELECT (task_id, entity_id) FROM entities_table) AS has_tail
        FROM relations_table
        """,
        *not_null(RELATION_COLUMNS, REWRITE),
        rule("relation_head", "head_id must be an entity of the task", "has_head", "head_id"),
        rule("relation_tail", "tail_id must be an entity of the task", "has_tail", "tail_id"),
    ),
)
"""All but those about steps, each over the tables that it needs."""
