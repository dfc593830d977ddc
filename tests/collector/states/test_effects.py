"""Which tools change something: worked out by hand, and on services drawn at random."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.collector.states.calls import Call, Visit, called
from graphcredit.collector.states.effects import Effects, learn_effects
from graphcredit.collector.states.table import tool_rule
from tests.collector.importers.logs import called as call_of
from tests.collector.importers.logs import said, write_lines


def _effects(*rollouts: list[Call]) -> Effects:
    return learn_effects(
        [[[Visit(seen="", calls=(call,)) for call in calls] for calls in rollouts]]
    )


OPEN, CLOSED = called("get", {"id": 1}, "open"), called("get", {"id": 1}, "closed")
CLOSE = called("close", {"id": 1}, "ok")
LIST = called("list", {"id": 1}, "[1]")


def test_what_stands_between_two_reads_that_differ_has_changed_something():
    assert _effects([OPEN, OPEN, CLOSE, CLOSED]).changing == ("close",)


def test_the_two_reads_may_be_of_two_rollouts_of_the_group():
    assert _effects([OPEN], [CLOSE, CLOSED]).changing == ("close",)


def test_of_two_suspects_the_one_that_is_elsewhere_the_only_one_is_guilty():
    learned = _effects([OPEN, LIST, CLOSE, CLOSED], [OPEN, LIST, OPEN], [LIST, LIST, CLOSE, CLOSED])
    # `get` was called between two equal reads that agree, too: of `list` in the third, of `get` in
    # the second, which is enough about the same things.
    assert learned == Effects(changing=("close",), unchanging=("get", "list"), unknown=())


def test_a_failed_call_is_no_suspect_and_a_second_one_that_fails_is_evidence():
    failed = called("lock", {"id": 1}, "Error: no")
    assert _effects([OPEN, OPEN, failed, CLOSE, CLOSED]).changing == ("close",)
    done, twice = called("pay", {"id": 1}, "paid"), called("pay", {"id": 1}, "Error: paid already")
    assert _effects([done, twice]).changing == ("pay",)


def test_what_changes_by_itself_accuses_nobody():
    early, late = called("clock", {}, "9:00"), called("clock", {}, "9:05")
    assert _effects([early, LIST, late], [late]).changing == ()


def _state_after(*calls: Call) -> str:
    visits = [Visit(seen="", calls=(call,)) for call in (*calls, OPEN)]
    return tool_rule("effects:set,drop")(visits)[-1]


def test_effects_on_different_things_may_be_in_any_order_and_others_not():
    one, two = called("set", {"id": 1}), called("set", {"id": 2})
    drop = called("drop", {"id": 1})
    assert (
        _state_after(one, two, drop) == _state_after(two, one, drop) == _state_after(one, drop, two)
    )
    assert (
        len({_state_after(*calls) for calls in ((one, drop), (drop, one), (one, one), (one,))}) == 4
    )


_TOOLS = st.sampled_from(["read", "sum", "set", "drop"])
_PLAYED = st.lists(st.lists(st.tuples(_TOOLS, st.integers(1, 2)), max_size=7), max_size=4)


def _play(rollouts: list[list[tuple[str, int]]]) -> list[list[Call]]:
    """Return what a service of two registers answers, each read by `read` and both by `sum`."""
    played: list[list[Call]] = []
    for names in rollouts:
        values = {1: 0, 2: 0}
        calls: list[Call] = []
        for tool, register in names:
            if tool in ("set", "drop"):
                values[register] = int(tool == "set")
            said = {"read": values[register], "sum": sum(values.values())}.get(tool, "ok")
            calls.append(called(tool, "" if tool == "sum" else {"id": register}, str(said)))
        played.append(calls)
    return played


@given(_PLAYED)
@settings(deadline=None)
def test_what_is_one_state_by_true_effects_reads_the_same(rollouts: list[list[tuple[str, int]]]):
    said: dict[tuple[str, str], str] = {}
    for calls in _play(rollouts):
        states = tool_rule("effects:set,drop")([Visit(seen="", calls=(call,)) for call in calls])
        for call, state in zip(calls, states, strict=True):
            assert said.setdefault((state, call.key), call.content) == call.content


@given(_PLAYED)
@settings(deadline=None)
def test_every_difference_has_somebody_who_made_it(rollouts: list[list[tuple[str, int]]]):
    played = _play(rollouts)
    is_different = len({(c.key, c.content) for calls in played for c in calls}) > len(
        {c.key for calls in played for c in calls}
    )
    assert bool(_effects(*played).changing) == is_different


def test_an_import_learns_them_from_its_log(tmp_path: Path):
    messages = [said("user", "close it"), call_of("get", id=1), said("tool", "open")]
    messages += [call_of("close", id=1), said("tool", "ok"), call_of("get", id=1)]
    messages += [said("tool", "closed"), said("assistant", "done")]
    log = write_lines(tmp_path / "log.jsonl", {"messages": messages, "reward": 1, "task_id": "t"})
    report = preview_log(log, ImportOptions(state="effects"), 1).report
    assert report.notes[0].startswith("state: effects:close,get;")


@pytest.mark.parametrize("state", ["effects", "effects+last-tool"])
def test_a_log_without_calls_has_no_effects(tmp_path: Path, state: str):
    row = {"messages": [said("user", "hi"), said("assistant", "Hello.")], "reward": 1}
    log = write_lines(tmp_path / "log.jsonl", row)
    assert preview_log(log, ImportOptions(state=state), 1).num_states == 1
