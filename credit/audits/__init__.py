"""The checks of the audit, one file per idea; `credit/audit.py` runs them."""
