"""What rewards and scores of turns are worth to credit, right, noisy and misleading."""
