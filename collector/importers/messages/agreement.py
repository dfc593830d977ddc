"""Opening answers that only agree, as to the rules of a game: they are context, and no step."""

import re
from dataclasses import replace

from graphcredit.collector.importers.messages.rollout import LoggedRollout

_AGREED = re.compile(
    r"(?i)\W*(ok(ay)?|understood|got it|sure|yes|of course|certainly|i understand|ready|alright)"
    r"(\W*|\b[^?:\n]{0,60}\b(instructions?|rules?|the task|ready|understand|understood|my best)\b"
    r"[^?:\n]{0,60})"
)
"""An answer that only agrees; one that acts has another line, or names its action."""


def without_agreement(rollout: LoggedRollout) -> LoggedRollout:
    """Return a rollout whose first answer is context if it only agrees, and no task is named."""
    if rollout.task is not None or rollout.is_steps:
        return rollout
    messages = rollout.messages
    turns = [number for number, message in enumerate(messages) if message.is_answer]
    if len(turns) < 2 or turns[1] == turns[0] + 1:
        return rollout
    first = messages[turns[0]]
    if first.tool_calls or not _AGREED.fullmatch(first.text):
        return rollout
    context = replace(first, is_context=True)
    changed = (*messages[: turns[0]], context, *messages[turns[0] + 1 :])
    told = {"opening answer that only agrees: it is context": 1}
    return replace(rollout, messages=changed, left_out={**rollout.left_out, **told})
