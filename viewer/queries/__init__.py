"""The queries of the pages: functions that run SQL over a store's views and return a table.

Each is about a run, or about an iteration of it, and raises SchemaError if a shard cannot be read.
"""
