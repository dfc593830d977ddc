"""From environments to step shards: recorder, environments, policies, rollout."""
