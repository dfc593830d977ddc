"""The core, on any list of messages: every message of the policy is a step, nothing is lost."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import LoggedRollout, turns_of
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.steps import trajectory_of
from tests.collector.importers.logs import called, said

TEXTS = st.text(max_size=12)
MESSAGES = st.lists(
    st.one_of(
        st.builds(said, st.sampled_from(["system", "user", "tool", "assistant"]), TEXTS),
        st.builds(lambda text: called("look", at=text), TEXTS),
    ),
    max_size=12,
)
RULES = st.sampled_from(["last", "results", "window:3", "regex:[a-z]+", "json:a", "column:content"])


@given(raw=MESSAGES, state=RULES, reward=st.sampled_from([None, 0.0, 1.0]))
def test_every_message_of_the_policy_becomes_one_step(
    raw: list[dict[str, Any]], state: str, reward: float | None
):
    messages = chat_messages(raw, "messages")
    rollout = LoggedRollout(messages=messages, record={"messages": raw}, reward=reward)
    made = trajectory_of(rollout, rules_of(ImportOptions(state=state)))
    spoken = [message for message in raw if message["role"] == "assistant"]
    if made is None:
        assert spoken == []
        return
    assert len(made.steps) == len(spoken)
    kept: list[dict[str, Any]] = []
    for step in made.steps:
        extra = json.loads(step["extra"])
        kept += [*extra.get("seen", []), extra["message"], *extra.get("after", [])]
    assert kept == [{k: v for k, v in message.items() if v is not None} for message in raw]
    for step, after in zip(made.steps, made.steps[1:], strict=False):
        assert step["next_state"] == after["state"]
    assert made.steps[-1]["next_state"].startswith("[end: ")
    assert sum(step["reward"] for step in made.steps) == (reward or 0.0)
    ends = [step.get("success") is not None for step in made.steps]
    assert ends == [False] * (len(ends) - 1) + [reward is not None]


@given(raw=MESSAGES)
def test_turns_have_each_message_once(raw: list[dict[str, Any]]):
    messages = chat_messages(raw, "messages")
    turns = turns_of(messages)
    joined = [m for turn in turns.turns for m in (*turn.seen, turn.message)]
    assert (*joined, *turns.after) == messages


def test_half_a_surrogate_pair_is_replaced():
    messages = chat_messages([said("user", "\ud83d"), said("assistant", "ok \ude00")], "m")
    rollout = LoggedRollout(messages=messages, record={}, reward=1.0)
    made = trajectory_of(rollout, rules_of(ImportOptions()))
    assert made is not None
    assert (made.steps[0]["state"], made.steps[0]["action"]) == ("?", "ok ?")
    made.steps[0]["extra"].encode()


def test_success_without_a_reward_becomes_the_reward():
    messages = chat_messages([said("user", "a"), said("assistant", "b")], "m")
    rules = rules_of(ImportOptions())
    for success, reward in ((True, 1.0), (False, 0.0)):
        made = trajectory_of(LoggedRollout(messages=messages, record={}, success=success), rules)
        assert made is not None
        assert made.steps[-1]["reward"] == reward
