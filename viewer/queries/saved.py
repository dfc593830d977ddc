"""The example queries of the SQL page."""

READY: dict[str, str] = {
    "What the views hold": """SELECT table_name AS "view", column_name, data_type
FROM duckdb_columns()
WHERE NOT internal AND table_name NOT LIKE '%_files_%'
ORDER BY "view", column_index""",
    "Groups that teach nothing": """SELECT run_id, iteration, task_id, num_steps, success_rate
FROM groups
WHERE is_degenerate
ORDER BY ALL""",
    "Failed trajectories": """SELECT run_id, iteration, task_id, trajectory_id, num_steps, "return"
FROM trajectories
WHERE success = false
ORDER BY num_steps DESC
LIMIT 100""",
    "Notes on steps": """SELECT run_id, iteration, trajectory_id, step_index, tags, note, action
FROM noted
ORDER BY noted_at DESC
LIMIT 100""",
    "Actions that are refused most": """SELECT action, count(*) AS times
FROM steps
WHERE NOT is_action_valid
GROUP BY action
ORDER BY times DESC
LIMIT 50""",
    "States that are visited most": """SELECT task_id, state_id, visits, success_rate, state
FROM nodes
WHERE NOT is_goal
ORDER BY visits DESC
LIMIT 50""",
    "Steps that went away from the goal": """SELECT
    task_id, trajectory_id, step_index, action,
    next_oracle_distance - oracle_distance AS lost
FROM steps
WHERE next_oracle_distance > oracle_distance
ORDER BY lost DESC
LIMIT 100""",
}
"""Title to query."""
