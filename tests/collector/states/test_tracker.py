"""States while an agent plays are those that a log of it gives."""

import pytest

from graphcredit.collector.states.calls import Move, visits_of
from graphcredit.collector.states.table import TOOL_RULES, tool_rule
from graphcredit.collector.states.tracker import ToolStates
from graphcredit.store.errors import OptionError

CALLS = [
    ("get", '{"id": 1}', '{"id": 1, "is": "open"}'),
    ("close", '{"id": 2}', "Error: no such order"),
    ("close", '{"id": 1}', "ok"),
]
RULES = [f"{row.name}:close" if row.takes == "tools" else row.name for row in TOOL_RULES]


@pytest.mark.parametrize("rule", [*RULES, "effects:close+last-tool"])
def test_states_call_by_call(rule: str):
    moves = [Move(action=f"{tool}({arguments})", results=(r,)) for tool, arguments, r in CALLS]
    wanted = tool_rule(rule)(visits_of([*moves, Move(action="stop({})")]))
    states = ToolStates(rule)
    assert [states.state, *(states.call(*call) for call in CALLS)] == wanted


def test_what_must_be_learned_is_refused():
    with pytest.raises(OptionError, match="must name its tools"):
        ToolStates("calls+effects")
