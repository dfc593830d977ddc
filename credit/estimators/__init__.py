"""One estimator per file; `credit/estimators/table.py` lists them all."""
