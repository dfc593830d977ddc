"""Whether states tell how rollouts end, judged on the log alone."""
