"""From step shards to step-level credit: groups, states, graphs, estimators, the stage."""
