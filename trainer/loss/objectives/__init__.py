"""Policy objectives, one file each; `trainer/loss/registry.py` is the table of all of them.

An objective is a frozen dataclass of its options, whose docstring is the specification, with one
method: `terms(tokens)` returns the loss of each token. To add one, write that file and add a row to
the table, which says, too, whether the loss takes a ratio to `old`; the contract test in
`tests/trainer/test_objectives.py` then runs over it as well, and whatever `terms` reports under a
name of its own is a column of the store's view `training`.

It need not care for masks, weights or the rest of the loss: `policy_loss` gives it only scored
tokens, multiplies what it returns by the correction and by each token's share, which is known from
the plan, and adds divergence and entropy. What an objective must keep: a token's loss depends on no
other segment than its own (packing must change nothing), is finite for any finite
log-probabilities, and has gradient 0 where the advantage is 0.
"""
