"""Which tools change something: worked out by hand, and on services drawn at random."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.collector.states.calls import Call, Visit, called
from graphcredit.collector.states.effects import Effects, learn_effects
from graphcredit.collector.states.table import tool_rule
from tests.collector.importers.logs import called as call_of
from tests.collector.importers.logs import said, write_lines


def _learned(*groups: list[list[Call]]) -> Effects:
    return learn_effects(
        [[Visit(seen="", calls=(call,)) for call in calls] for calls in group] for group in groups
    )


def _group(number: int) -> list[list[Call]]:
    """Return two rollouts that close order `number`, and two that only look at it."""
    order = {"id": number}
    is_open, is_closed = (called("get", order, text) for text in ("open", "closed"))
    log, close = called("log", order, "[]"), called("close", order, "ok")
    failed = called("lock", order, "Error: no")
    look = [is_open, log, failed, is_open, log]
    return [[is_open, log, close, is_closed, log], [close, failed, log, is_closed], look, look]


GROUPS = [_group(number) for number in range(6)]
OPEN = called("get", {"id": 1}, "open")


def test_what_stands_between_reads_that_differ_changes_something():
    # With `close` between them all reads of `get` differ, and without it none.
    assert _learned(*GROUPS) == Effects(
        changing=("close",), unchanging=("get", "log"), unknown=("lock",)
    )


def test_the_reads_may_be_of_different_rollouts_of_a_group_and_never_of_two_groups():
    halves = [[rollout[-1:] if rollout[0] == OPEN else rollout for rollout in g] for g in GROUPS]
    assert _learned(*halves).changing == ("close",)
    apart = [[rollout] for group in GROUPS for rollout in group[1:]]
    assert _learned(*apart).changing == ()


def test_of_a_short_log_what_is_not_known_counts():
    learned = _learned(GROUPS[0][:2])
    assert (learned.changing, learned.tools) == ((), ("close", "lock"))


def test_a_call_that_fails_the_second_time_has_changed_something():
    done, twice = called("pay", {"id": 1}, "paid"), called("pay", {"id": 1}, "Error: paid already")
    assert _learned(*[[[done, twice], [done, OPEN, twice]]] * 8).changing == ("pay",)


def test_a_change_that_only_its_own_result_shows():
    def get(number: int) -> Call:
        return called("get", {"id": number}, f'{{"id": {number}, "name": "old"}}')

    def rename(number: int) -> Call:
        result = f'{{"id": {number}, "name": "new"}}'
        return called("rename", {"id": number, "name": "new"}, result)

    groups = [[[get(n), get(n), rename(n)], [get(n), get(n)], [rename(n)]] for n in range(6)]
    assert _learned(*groups).changing == ("rename",)


def test_what_changes_by_itself_and_what_people_say_accuse_nobody():
    said = [called("ask", {}, text) for text in ("Yes, please.", "Sure!", "Go on.")]
    clock = [called("clock", {}, text) for text in ("9:00", "9:05", "9:10")]
    groups = [
        [[clock[n % 3], OPEN, clock[(n + i) % 3], said[i], OPEN, said[n % 3]] for i in range(3)]
        for n in range(6)
    ]
    assert not {"get", "ask"} & set(_learned(*groups).changing)


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
_PLAYED = st.lists(st.lists(st.tuples(_TOOLS, st.integers(1, 2)), max_size=6), max_size=4)


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
def test_what_is_one_state_by_true_effects_reads_the_same(rollouts: list[list[tuple[str, int]]]):
    said: dict[tuple[str, str], str] = {}
    for calls in _play(rollouts):
        states = tool_rule("effects:set,drop")([Visit(seen="", calls=(call,)) for call in calls])
        for call, state in zip(calls, states, strict=True):
            assert said.setdefault((state, call.key), call.content) == call.content


@given(_PLAYED)
def test_a_difference_always_has_a_tool_that_counts_between(rollouts: list[list[tuple[str, int]]]):
    played = _play(rollouts)
    counting = set(_learned(played).tools)
    reads: list[tuple[Call, Counter[tuple[str, str]]]] = []
    for calls in played:
        past = Counter[tuple[str, str]]()
        for call in calls:
            reads.append((call, past.copy()))
            past[call.tool, call.key] += 1
    for (one, a), (two, b) in combinations(reads, 2):
        if one.key == two.key and one.content != two.content and a != b:
            assert {tool for tool, _ in (a - b) + (b - a)} & counting


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
