"""The checks of the audit, one file per idea; `credit/audit/run.py` runs them."""
