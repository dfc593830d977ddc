"""One estimator per file; `credit/table.py` lists them all."""
