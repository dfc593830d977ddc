"""The rules of --state, --success, --group and --reward, by hand."""

import pytest

from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import LoggedRollout, turns_of
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.rules.outcomes import group_rule, reward_rule, success_rule
from graphcredit.collector.importers.rules.states import state_rule
from graphcredit.store.errors import OptionError
from tests.collector.importers.logs import called, said

TALK = [
    said("system", "Rules."),
    said("user", "start"),
    called("look"),
    said("tool", '{"room": {"name": "hall"}, "turn": 1}', room="H"),
    called("look"),
    called("wait"),
    said("tool", "You are in the hall. Time 3"),
    said("assistant", "done"),
]


def _states(rule: str) -> tuple[str, ...]:
    return state_rule(rule)(turns_of(chat_messages(TALK, "messages")).turns).texts


SEEN = ("start", '{"room": {"name": "hall"}, "turn": 1}', "You are in the hall. Time 3")


@pytest.mark.parametrize(
    ("rule", "states"),
    [
        # Two actions in a row: the second one acts where the first one did.
        ("last", (SEEN[0], SEEN[1], SEEN[1], SEEN[2])),
        ("results", ("(nothing yet)", SEEN[1], SEEN[1], f"{SEEN[2]}\n{SEEN[1]}")),
        ("calls", ("(nothing yet)", "look({})", "look({})", "look({})\nwait({})")),
        (
            "effects:wait+last-tool+last",
            (
                f"(nothing yet)\n\n(nothing yet)\n\n{SEEN[0]}",
                f"(nothing yet)\n\nafter look\n\n{SEEN[1]}",
                f"(nothing yet)\n\nafter look\n\n{SEEN[1]}",
                f"wait({{}})\n\nafter wait\n\n{SEEN[2]}",
            ),
        ),
        ("window:1", (SEEN[0], SEEN[1], SEEN[1], SEEN[2])),
        (
            "window:2",
            (
                SEEN[0],
                f"{SEEN[0]}\n> look({{}})\n{SEEN[1]}",
                f"{SEEN[1]}\n> look({{}})\n{SEEN[1]}",
                f"{SEEN[1]}\n> wait({{}})\n{SEEN[2]}",
            ),
        ),
        (r"regex:in the (\w+)\. Time (\d+)", (SEEN[0], SEEN[1], SEEN[1], "hall | 3")),
        ("regex:hall", (SEEN[0], "hall", SEEN[1], "hall")),
        ("json:room.name", (SEEN[0], "hall", SEEN[1], SEEN[2])),
        ("json:room", (SEEN[0], '{"name": "hall"}', SEEN[1], SEEN[2])),
        ("column:room", (SEEN[0], "H", SEEN[1], SEEN[2])),
    ],
)
def test_a_rule_gives_a_state_to_each_turn(rule: str, states: tuple[str, ...]):
    assert _states(rule) == tuple(states)


def test_results_are_a_set_and_long_ones_are_digested():
    talk = [said("user", "go")]
    for text in ("b", "a", "b", "x" * 5000):
        talk += [called("look"), said("tool", text)]
    talk.append(said("assistant", "done"))
    states = state_rule("results")(turns_of(chat_messages(talk, "m")).turns).texts
    assert states[:4] == ("(nothing yet)", "b", "a\nb", "a\nb")
    assert states[4].startswith("a\nb\nxxx")
    assert len(states[4]) < 300


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "first",
        "window:0",
        "window:x",
        "regex:",
        "regex:(",
        "json:",
        "facts:x",
        "calls+",
        "calls+window:2",
    ],
)
def test_a_state_rule_that_is_none_is_refused(rule: str):
    with pytest.raises(OptionError, match=r"import\.state must"):
        state_rule(rule)


def test_the_nearest_rule_of_states_is_named():
    with pytest.raises(OptionError, match=r"got 'worktre'\. Did you mean 'worktree'\?$"):
        state_rule("worktre")


def test_calls_of_no_tool_are_no_rule():
    with pytest.raises(OptionError, match="calls: must name tools"):
        state_rule("calls:")


def _rollout(**more: object) -> LoggedRollout:
    record = {"info": {"solved": True, "level": 3, "odd": "maybe"}, "user": "u1", "bonus": 2}
    values = {"messages": chat_messages(TALK, "m"), "record": record, "task": "t", **more}
    return LoggedRollout(**values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("rule", "more", "success"),
    [
        ("auto", {"reward": 1.0}, True),
        ("auto", {"reward": -1.0}, False),
        ("auto", {"reward": 0.99}, None),
        ("returns", {"reward": 1.0}, None),
        ("returns", {"reward": 5.0, "success": False}, False),
        ("auto", {"reward": 5.0, "success": False}, False),
        ("auto", {}, None),
        ("reward>0.5", {"reward": 0.6}, True),
        ("exact == 1", {"rewards": {"exact": 1.0}}, True),
        ("info.level<3", {}, False),
        ("info.solved", {}, True),
        ("info.nothing", {}, None),
        ("info.odd==maybe", {}, True),
        ("info.odd == never", {}, False),
        ("info.nothing==maybe", {}, None),
    ],
)
def test_success(rule: str, more: dict[str, object], success: bool | None):
    assert success_rule(rule)(_rollout(**more)).success is success


def test_success_rules_that_are_none():
    with pytest.raises(OptionError, match="threshold"):
        success_rule("reward>=high")
    with pytest.raises(RecordError, match=r"info\.odd must be true, false, 1 or 0"):
        success_rule("info.odd")(_rollout())


@pytest.mark.parametrize("value", [-1, 10, 0.5])
def test_a_score_is_no_verdict(value: float):
    rollout = _rollout(rewards={"score": value})
    with pytest.raises(RecordError, match=r"threshold such as 'score>=1'"):
        success_rule("score")(rollout)


def test_groups():
    assert group_rule("auto")(_rollout(group="g")) == "g"
    assert group_rule("auto")(_rollout()) == "t"
    assert group_rule("task")(_rollout(group="g")) == "t"
    assert group_rule("user")(_rollout(group="g")) == "u1"
    by_prompt = group_rule("prompt")(_rollout())
    assert by_prompt.startswith("start #")
    assert group_rule("auto")(_rollout(task=None)) == by_prompt
    with pytest.raises(RecordError, match=r"the record must name info\.seed"):
        group_rule("info.seed")(_rollout())


def test_rewards():
    rollout = _rollout(reward=3.0, rewards={"a": 1.0, "b": 4.0})
    turns = turns_of(rollout.messages)
    assert reward_rule("end")(rollout, turns) == [0.0, 0.0, 0.0, 3.0]
    assert reward_rule("a+0.5*b")(rollout, turns)[-1] == 3.0
    assert reward_rule("-1*a + bonus")(rollout, turns)[-1] == 1.0
    assert reward_rule("a-0.5*b")(rollout, turns)[-1] == -1.0
    assert reward_rule("-a + 2 * b - 1e-1*bonus")(rollout, turns)[-1] == pytest.approx(6.8)
    with pytest.raises(RecordError, match="a reward for each turn"):
        reward_rule("turns")(rollout, turns)
    with pytest.raises(RecordError, match="a reward 'c'; its rewards: a, b"):
        reward_rule("a+c")(rollout, turns)
    with pytest.raises(RecordError, match=r"'a-b'.* A minus needs a space beside it, or a weight"):
        reward_rule("a-b")(rollout, turns)


def test_a_name_of_a_reward_may_have_a_minus():
    rollout = _rollout(rewards={"exact-match": 4.0, "pass-2": 1.0})
    turns = turns_of(rollout.messages)
    for rule in ("exact-match - pass-2", "exact-match -pass-2", "exact-match-1*pass-2"):
        assert reward_rule(rule)(rollout, turns)[-1] == 3.0


@pytest.mark.parametrize("rule", ["", "a+", "a++b", "*a", "1.2.3*a"])
def test_sums_that_are_none(rule: str):
    with pytest.raises(OptionError, match=r"import\.reward must "):
        reward_rule(rule)
