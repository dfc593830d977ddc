"""The files of logs, and the records in them."""
