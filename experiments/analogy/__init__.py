"""What the estimator `analogy` is made of, part by part."""
