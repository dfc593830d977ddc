"""Kinds of noise that somebody wrote who had not read `--merge segments`, all at once.

They judged version 7 of it while that was made, and are design since; so are those of `unseen.py`.
`sealed.py` judges the merge.
"""

from benchmarks.noise.disturb import Disturb
from benchmarks.noise.fresh import each_look, lasting, structure

KINDS: dict[str, Disturb] = {
    "tool_result_json": each_look.tool_result_json,
    "captured_by_test": each_look.captured_by_test,
    "signed_links": each_look.signed_links,
    "telemetry_yaml": each_look.telemetry_yaml,
    "rate_limit": each_look.rate_limit,
    "accessibility_tree": structure.accessibility_tree,
    "notifications": structure.notifications,
    "out_of_order_log": structure.out_of_order_log,
    "typing_errors": structure.typing_errors,
    "folded_lines": structure.folded_lines,
    "support_chat": lasting.support_chat,
    "experiment_arm": lasting.experiment_arm,
    "half_translated": lasting.half_translated,
    "ambience": lasting.ambience,
    "scratchpad": lasting.scratchpad,
    "resized_terminal": lasting.resized_terminal,
}
"""The kinds by name, from easy to hard."""
