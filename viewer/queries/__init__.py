"""The queries of the pages: functions that run SQL over a store's views and return a table."""
