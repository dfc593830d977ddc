"""Experiments on the parts and the inputs of the estimator `analogy`."""
