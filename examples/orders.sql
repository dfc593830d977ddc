SELECT action, round(grpo_advantage, 2) AS grpo, round(reach_value, 2) AS value, round(reach_q, 2) AS q
FROM enriched WHERE trajectory_id LIKE 'refund-14:1-%' ORDER BY step_index
