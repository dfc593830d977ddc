"""An estimator and a log format for graphcredit, in a package of their own."""
