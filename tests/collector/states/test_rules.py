"""What an agent that uses tools has done and learned, by hand, in a log and while it plays."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.states.calls import Call, Move, Visit, called, visits_of
from graphcredit.collector.states.content import content_of, is_failure
from graphcredit.collector.states.table import TOOL_RULES, tool_rule
from graphcredit.collector.states.tracker import ToolStates
from graphcredit.store.errors import OptionError

NOTHING = "(nothing yet)"
ORDER = '{"request_id": "r-1", "order_id": "O7", "items": ["b", "a"], "status": "open"}'
ORDER_AGAIN = '{"status":"open","items":["a","b"],"order_id":"O7","timestamp":1732620000}'
CANCELLED = '{"order_id": "O7", "items": ["a", "b"], "status": "cancelled"}'

LOG = [
    Move(action="Which order?", results=()),
    Move(action='get({"id": "O7"})', results=(ORDER,)),
    Move(action='get({"id": "O7", "fresh": null})', results=(ORDER_AGAIN,)),
    Move(action='cancel({"id": "O9"})', results=("Error: no such order",)),
    Move(action='cancel({"id": "O7"})\nnote({"text": " x "})', results=(CANCELLED, "noted")),
    Move(action="Done."),
]
_GET, _CANCEL, _NOTE = 'get({"id": "O7"})', 'cancel({"id": "O7"})', 'note({"text": "x"})'
_OPEN = '{"items": ["a", "b"], "order_id": "O7", "status": "open"}'
_FACTS = 'order_id O7.items = ["a", "b"]\norder_id O7.order_id = "O7"\norder_id O7.status = '


@pytest.mark.parametrize(
    ("rule", "states"),
    [
        ("calls", [NOTHING, NOTHING, _GET, _GET, _GET, f"{_CANCEL}\n{_GET}\n{_NOTE}"]),
        ("calls:get,note", [NOTHING, NOTHING, _GET, _GET, _GET, f"{_GET}\n{_NOTE}"]),
        ("effects:cancel,book", [NOTHING] * 5 + [_CANCEL]),
        ("last-tool", [NOTHING, NOTHING, "after get", "after get", "after get", "after note"]),
        (
            "results",
            [
                *(NOTHING, NOTHING, _OPEN, _OPEN, f"Error: no such order\n{_OPEN}"),
                f"Error: no such order\nnoted\n{_OPEN.replace('open', 'cancelled')}\n{_OPEN}",
            ],
        ),
        (
            "facts",
            [
                *(NOTHING, NOTHING, *[f'{_FACTS}"open"'] * 3),
                f'note({{"text": "x"}}) = noted\n{_FACTS}"cancelled"',
            ],
        ),
    ],
)
def test_a_rule_by_hand(rule: str, states: list[str]):
    assert tool_rule(rule)(visits_of(LOG)) == states


def test_of_a_list_of_things_each_has_its_fields():
    listed = (
        '[{"flight_id": 2, "seats": {"economy": 3}}, {"flight_id": 1, "seats": {"economy": 0}}]'
    )
    seen = visits_of([Move(action="search({})", results=(listed,)), Move(action="x()")])
    lines = set(tool_rule("facts")(seen)[1].splitlines())
    assert {
        "flight_id 2.seats.economy = 3",
        "flight_id 1.seats.economy = 0",
        'search({}) = ["flight_id 1", "flight_id 2"]',
    } <= lines


def test_commands_are_calls_and_sentences_are_not():
    assert tool_rule("calls")(visits_of([Move(action="go north"), Move(action="look")])) == [
        NOTHING,
        "go(north)",
    ]
    chat = visits_of([Move(action="Hello."), Move(action="Bye")])
    assert [visit.calls for visit in chat] == [(), ()]


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Error: payment missing", True),
        ('{"error": "no such order"}', True),
        ('{"success": false, "order": 3}', True),
        ("ValueError: x", True),
        ('{"errors": [], "error": null, "status": "failed"}', False),  # a status of a thing
        ("No error here", False),
    ],
)
def test_a_failure_says_so(text: str, failed: bool):
    assert is_failure(text) == failed


_calls = st.lists(
    st.builds(
        lambda tool, id_, result, fails: called(
            tool, {"id": id_}, "Error: no" if fails else json.dumps({"id": id_, "is": result})
        ),
        st.sampled_from(["get", "put", "cancel"]),
        st.integers(0, 3),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=6,
)


def _last(rule: str, calls: Sequence[Call]) -> str:
    visits = [Visit(seen="", calls=(call,)) for call in calls]
    return tool_rule(rule)([*visits, Visit(seen="", calls=())])[-1]


@given(calls=_calls, data=st.data())
@pytest.mark.parametrize("rule", ["calls", "results"])
def test_the_order_of_calls_makes_no_difference(rule: str, calls: list[Call], data: st.DataObject):
    other = data.draw(st.permutations(calls))
    assert _last(rule, calls) == _last(rule, other)


@given(calls=_calls, place=st.integers(0, 6))
@pytest.mark.parametrize("rule", ["calls", "effects:put,cancel", "facts", "last-tool"])
def test_a_failed_call_changes_nothing(rule: str, calls: list[Call], place: int):
    failed = called("put", {"id": 9}, '{"error": "locked"}')
    refused = called("get", {"id": 8}, '{"id": 8}', is_failed=True)
    assert _last(rule, [*calls[:place], failed, refused, *calls[place:]]) == _last(rule, calls)


def _stamped(call: Call, number: int) -> Call:
    """Return a call whose result has an id and a time of its own, and its fields turned round."""
    if call.is_failed:
        return call
    fields = {"request_id": f"r{number}", "timestamp": number, **json.loads(call.result)}
    turned = dict(reversed(list(fields.items())))
    return called(call.tool, json.loads(call.arguments), json.dumps(turned, indent=1))


@given(calls=_calls, number=st.integers(0, 1000))
@pytest.mark.parametrize("rule", [row.name for row in TOOL_RULES if row.takes == "nothing"])
def test_ids_of_calls_and_times_never_matter(rule: str, calls: list[Call], number: int):
    stamped = [_stamped(call, number + i) for i, call in enumerate(calls)]
    assert _last(rule, stamped) == _last(rule, calls)


def test_other_contents_stay_apart():
    assert content_of('{"id": 1}') != content_of('{"id": 2}')
    assert content_of("a  b\n") == content_of("a b") != content_of("b a")


@pytest.mark.parametrize("rule", ["calls", "results", "effects:put"])
def test_a_long_past_is_a_number_and_a_digest_in_whatever_order_it_was(rule: str):
    def states(order: Sequence[int], *last: str) -> list[str]:
        moves = [Move(action=f'put({{"at": "f{n}"}})', results=("x" * 90 + str(n),)) for n in order]
        ends = [Move(action=action, results=(action,)) for action in last]
        return tool_rule(rule)(visits_of([*moves, *ends, Move(action="Done.")]))

    up, down = states(range(2000)), states(range(1999, -1, -1))
    assert max(map(len, up)) < 30_000
    assert up[-1] == down[-1]
    assert up[-1].startswith("2,000 in all #")
    assert len({*up, states(range(2001))[-1]}) == 2002
    one, two = 'put({"at": "f1", "to": "a"})', 'put({"at": "f1", "to": "b"})'
    pair = [states(range(2000), *order)[-1] for order in ((one, two), (two, one))]
    assert (pair[0] == pair[1]) == (rule != "effects:put")  # both are about f1


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
