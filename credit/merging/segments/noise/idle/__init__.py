"""What lasts for a while or for a whole rollout, and no outcome depends on.

Such a value might be a part of the state, and certain looks do not tell: they are of other
rollouts, or have the same past. So it is *claimed* to be idle by how it comes about:

- a number that is carried along (`numbers.py`);
- an echo of the action before (`echoes.py`);
- a value that a rollout has of its own, or that lasts, in its frame (`own.py`);
- segments that stand for each other as wholes (`versions.py`), or phrases in many segments
  (`phrases.py`);
- words that are drawn, wherever they stand (`drawn.py`).

Claims whose values go together in every rollout are one (`dialects.py`). Outcomes *decide*
(`decide.py`).
"""
