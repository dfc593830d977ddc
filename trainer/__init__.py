"""The trainer: enriched shards in, a better policy out. Only this folder imports torch."""
