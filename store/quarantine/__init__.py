"""Move files that break a rule to `quarantine/`, without losing anything."""
