"""Move what breaks a rule out of the way, without losing anything."""
