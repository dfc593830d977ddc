"""From a rollout to the steps of a trajectory: the one road that every format takes."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from graphcredit.collector.importers.logs.json_text import content_digest, strict_json
from graphcredit.collector.importers.messages.as_chat import chat_of
from graphcredit.collector.importers.messages.cut import cuts_of
from graphcredit.collector.importers.messages.rollout import (
    NO_SAMPLING,
    LoggedRollout,
    LoggedSampling,
    Message,
    Turn,
    Turns,
    are_plain,
    only_agent,
    text_of,
    turns_of,
)
from graphcredit.collector.importers.messages.tokens import WITHOUT_TOKENS, samplings
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.rules.outcomes import Rules, Verdict, labels_of
from graphcredit.collector.importers.rules.states import States, action_of
from graphcredit.collector.importers.trajectory import UNKNOWN, Begun, ImportedTrajectory, Origin
from graphcredit.collector.recording.validation import check_step, check_value
from graphcredit.collector.states.content import clean
from graphcredit.store.schema import LARGEST_NUMBER

DEFAULT_RUN = "imported"

_CLAIMED = (
    "success is what the agent, or a judge that it brings, says of itself: --success or --verdicts "
    "names a verdict of others"
)

_LONGEST_RUN = 128
"""Characters of a run's name in a path."""
_WORDS = 40
"""Characters of a first action that a note shows."""

_SAMPLING = tuple(field.name for field in fields(LoggedSampling))


def trajectory_of(
    rollout: LoggedRollout, rules: Rules, origin: Origin = UNKNOWN
) -> ImportedTrajectory | None:
    """Return the trajectory that a rollout becomes; None if the policy has no message in it."""
    options = rules.options
    if options.agent is not None:
        rollout = only_agent(rollout, options.agent)
    turns = turns_of(rollout.messages)
    if not turns.turns:
        return None
    rollout, judged_as = rules.judged(rollout)
    states = rules.state(turns.turns)
    final = _final_state(rollout, turns, rules)
    rewards = rules.reward(rollout, turns)
    if judged_as is not None and not any(rewards):  # the rows of a log of steps may all have 0
        rewards[-1] = rollout.reward or 0.0
    is_named = options.reward not in ("end", "turns")
    has_rewards = options.reward == "turns" or any(rewards)  # 0 in each turn is a return, too
    if is_named or (rollout.reward is None and has_rewards):
        rollout = replace(rollout, reward=sum(rewards))
    decided = rules.decided | ({"reward", "success"} if judged_as is not None else set())
    stated = {name: [*v] for name, v in rollout.columns.items() if name not in decided}
    verdict = replace(
        Verdict(success=rollout.success, by="the log")
        if "success" in stated
        else rules.success(rollout),
        judged_as=judged_as,
    )
    if judged_as is not None and rules.verdicts is None and verdict.success is not None:
        verdict = replace(verdict, by=f"{judged_as[0]} beside the log")
    scores = rules.score(rollout, turns)
    for name, values in (("reward", rewards), ("score", scores.of_turns)):
        for value in values:
            if value is not None and not abs(value) <= LARGEST_NUMBER:
                check_value(name, value)
    has_no_reward = not any(rewards) and rollout.reward is None and verdict.success is not None
    if has_no_reward:
        rewards[-1] = float(bool(verdict.success))
    is_claim = rollout.is_claim and verdict.by == "the log"
    iteration = options.iteration if options.iteration is not None else rollout.iteration or 0
    if not 0 <= iteration < 1 << 31:
        raise RecordError(f"the training step must be a whole number from 0: got {iteration}")
    task_id = clean(rules.group(rollout))
    columns = _columns(rollout, turns, states, rewards, verdict)
    sampled, reasons = samplings([turn.message for turn in turns.turns], rollout.record)
    columns |= _sampling_columns(sampled)
    if images := [image for message in rollout.messages for image in message.images]:
        columns["images"] = _images_of_prompts(turns)
    if any(score is not None for score in scores.of_turns):
        columns["score"] = scores.of_turns
    if final is not None:
        columns["next_state"][-1] = clean(final)
    is_by_file, made_id, content = _is_by_file(rollout), "", b""
    if rollout.trajectory_id:
        content = _content(task_id, columns)
    else:
        made_id = _id_by_content(rollout)
        if is_by_file:
            made_id, content = rollout.place.path, made_id.encode()
    columns |= stated
    return ImportedTrajectory(
        run_id=options.run or _run_name(rollout.run) or DEFAULT_RUN,
        iteration=iteration,
        task_id=task_id,
        trajectory_id=clean(rollout.trajectory_id or made_id),
        has_own_id=bool(rollout.trajectory_id),
        is_by_file=is_by_file,
        content=content,
        num_steps=len(turns.turns),
        verdict=verdict,
        candidates={} if verdict.is_known else _candidates(rollout),
        total=sum(rewards) if verdict.is_known else rollout.reward,
        grouped_by=rules.grouped_by(rollout, task_id),
        labels=labels_of(rollout.record),
        part=rollout.place.path.partition("/")[0] if rollout.place.is_one_of_several else "",
        begun=_begun(columns, turns, rollout),
        counts={
            _outcome(verdict, is_truncated=rollout.truncated): 1,
            "reward_of_success": has_no_reward,
            "images": len(images),
            "missed": states.num_missed,
            **_counts(rollout, turns, columns),
            **{f"{WITHOUT_TOKENS}{each}": reasons.count(each) for each in dict.fromkeys(reasons)},
        },
        left_out={**_left_out(rollout), **scores.left_out},
        notes=(*rollout.notes, *([_CLAIMED] if is_claim else [])),
        columns=columns,
        images=tuple({image.path: image for image in images}.values()),
        origin=origin,
    )


def _left_out(rollout: LoggedRollout) -> Mapping[str, int]:
    """Return what is left out of a rollout, with the parts that have a mark in place of a text."""
    num_unread = sum(message.num_unread for message in rollout.messages)
    unread = {"part of a message that no reader knows: a mark stands for it": num_unread}
    return {**rollout.left_out, **unread} if num_unread else rollout.left_out


def _candidates(rollout: LoggedRollout) -> Mapping[str, tuple[str, float]]:
    """Return the named rewards, and the flags of a record and of the objects in it."""
    found = {name: (f"--reward {name}", number) for name, number in rollout.rewards.items()}
    for name, value in rollout.record.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flags = [(name, value), *((f"{name}.{each}", flag) for each, flag in inner)]
        found |= {n: (f"--success {n}", float(f)) for n, f in flags if isinstance(f, bool)}
    return found


def _begun(columns: Mapping[str, list[Any]], turns: Turns, rollout: LoggedRollout) -> Begun:
    states, action = columns["state"], columns["action"][0]
    then = digest(states[1]) if len(states) > 1 else b""
    is_said = not (rollout.is_steps or turns.turns[0].message.tool_calls)
    words = action[:_WORDS] if is_said else ""
    prompt = clean(text_of(turns.turns[0].seen))
    return Begun(
        state=digest(states[0]),
        action=digest(action),
        then=then,
        prompt=digest(prompt) if prompt else b"",
        field=rollout.state_field,
        words=words,
    )


def digest(text: str) -> bytes:
    """Return eight bytes that differ for different texts."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _outcome(verdict: Verdict, *, is_truncated: bool) -> str:
    if verdict.success is None:
        return "by_return" if verdict.is_known else "unjudged"
    return "success" if verdict.success else "truncated" if is_truncated else "failed"


def _counts(
    rollout: LoggedRollout, turns: Turns, columns: Mapping[str, list[Any]]
) -> dict[str, int]:
    messages = [turn.message for turn in turns.turns]
    scores = columns.get("score", ())
    return {
        "steps": len(messages),
        "empty": columns["action"].count(""),
        "turn_rewards": not rollout.is_steps and _has_other_rewards(messages, scores),
        "scored": sum(score is not None for score in scores),
        "unscored": all(score is None for score in scores),
        "tokens": sum(ids is not None for ids in columns.get("response_ids", ())),
        "logprobs": sum(ids is not None for ids in columns.get("response_logprobs", ())),
    }


def _has_other_rewards(messages: list[Message], scores: Sequence[float | None]) -> bool:
    """Return whether turns have rewards that are not their scores."""
    rewards = [message.reward for message in messages]
    return any(reward is not None for reward in rewards) and rewards != list(scores)


def _run_name(run: str | None) -> str:
    """Return the log's name of the run, as it may stand in a path.

    Two runs may differ in what a path cannot have, or beyond its length: a digest keeps them apart.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", run or "").lstrip(".-_")
    is_in_other_letters = any(c.isalnum() and not c.isascii() for c in run or "")
    if not run or (len(name) <= _LONGEST_RUN and not is_in_other_letters):
        return name
    digest = hashlib.blake2b(run.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{name[: _LONGEST_RUN - 9].rstrip('-')}-{digest}".lstrip("-")


def _is_by_file(rollout: LoggedRollout) -> bool:
    """Return whether the path of its file is the id of a rollout: nothing else but a task is."""
    is_nameless = not rollout.trajectory_id and rollout.label in ("", rollout.task)
    return is_nameless and rollout.place.is_only and rollout.place.is_one_of_several


def _id_by_content(rollout: LoggedRollout) -> str:
    """Return an id that is the same whenever, and from wherever, the record is read."""
    digest = content_digest(rollout.record)
    return f"{rollout.label}-{digest}" if rollout.label else digest


def _content(task_id: str, columns: Mapping[str, list[Any]]) -> bytes:
    compared = [task_id, *(columns[name] for name in ("state", "action", "reward"))]
    return hashlib.sha256(strict_json(compared).encode()).digest()[:8]


def _columns(
    rollout: LoggedRollout, turns: Turns, states: States, rewards: list[float], verdict: Verdict
) -> dict[str, list[Any]]:
    texts = [clean(text) for text in states.texts]
    observations = [
        text
        if len(turn.seen) == 1 and not turn.heard and turn.seen[0].text == text
        else clean(text_of((*turn.heard, *turn.seen), system=True))
        for turn, text in zip(turns.turns, texts, strict=True)
    ]
    results = [turn.seen for turn in turns.turns[1:]] + [turns.after]
    columns: dict[str, list[Any]] = {
        "state": texts,
        "next_state": [*texts[1:], end_state(verdict, truncated=rollout.truncated)],
        "observation": [
            observation if observation and observation != text else None
            for observation, text in zip(observations, texts, strict=True)
        ],
        "thought": [clean(_thought_of(turn.message)) or None for turn in turns.turns],
        "action": [clean(action_of(turn.message)) for turn in turns.turns],
        "is_action_valid": [not (seen and all(m.is_refused for m in seen)) for seen in results]
        if any(message.is_refused for message in rollout.messages)
        else [True] * len(texts),
        "reward": rewards,
        "extra": _extras(rollout, turns),
        **_admissible_columns(turns),
    }
    if verdict.is_known:
        before = [False] * (len(texts) - 1)
        columns["terminated"] = [*before, not rollout.truncated]
        columns["truncated"] = [*before, rollout.truncated]
        columns["success"] = [*([None] * len(before)), verdict.success]
    return columns


def _extras(rollout: LoggedRollout, turns: Turns) -> list[str]:
    """Return the messages of each step as the log has them, and as a chat, as JSON."""
    extras: list[dict[str, Any]] = []
    is_chat = are_plain(rollout.messages)
    for turn, is_cut in zip(turns.turns, cuts_of(rollout, turns), strict=True):
        extra: dict[str, Any] = {"message": turn.message.source}
        if seen := [message.source for message in turn.seen if message.source]:
            extra["seen"] = seen
        if not is_chat and (chat := chat_of(turn)) is not None:
            extra["chat"] = chat
        if is_cut:
            extra["cut"] = True
        extras.append(extra)
    if rollout.info:
        extras[0]["log"] = rollout.info
    if after := [message.source for message in turns.after if message.source]:
        extras[-1]["after"] = after
    try:
        return [strict_json(extra) for extra in extras]
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordError(f"the messages must be JSON values: {error}") from None


def _final_state(rollout: LoggedRollout, turns: Turns, rules: Rules) -> str | None:
    """Return the state that the last step led to; None if the log does not say it."""
    if not rollout.is_steps or not text_of(turns.after):
        return None
    after = Turn(turns.after, turns.turns[-1].message)
    return rules.state((*turns.turns, after)).texts[-1]


def end_state(verdict: Verdict, *, truncated: bool) -> str:
    """Return the state after the last step: a marker that differs by outcome.

    The log does not say where a last action led. A copy of the state before it would be a loop.
    """
    if verdict.success is None:
        return "[end]" if verdict.is_known else "[end: unknown]"
    if verdict.success:
        return "[end: success]"
    return "[end: truncated]" if truncated else "[end: failure]"


def _thought_of(message: Message) -> str:
    """Return the reasoning of a message; text beside tool calls is reasoning too."""
    if not message.text:
        return message.thought
    is_apart = bool(message.tool_calls) or message.action not in (None, message.text)
    spoken = message.text if is_apart else ""
    thoughts = (message.thought, spoken if spoken != message.thought else "")
    return "\n\n".join(thought for thought in thoughts if thought)


def _admissible_columns(turns: Turns) -> dict[str, list[Any]]:
    """Return what the environment accepts at each step; a log says it from the first step on."""
    if not any(message.admissible_actions for message in turns.turns[0].seen):
        return {}
    accepted = [
        next((m.admissible_actions for m in reversed(turn.seen) if m.admissible_actions), None)
        for turn in turns.turns
    ]
    return {"admissible_actions": [actions and [clean(a) for a in actions] for actions in accepted]}


def _images_of_prompts(turns: Turns) -> list[list[Mapping[str, Any]] | None]:
    """Return the images in the prompt of each step: a prompt has all messages before."""
    prompt: list[Mapping[str, Any]] = []
    prompts: list[list[Mapping[str, Any]] | None] = []
    for turn in turns.turns:
        prompt += [image.as_logged() for message in turn.seen for image in message.images]
        prompts.append(list(prompt) or None)
        prompt += [image.as_logged() for image in turn.message.images]
    return prompts


def _sampling_columns(sampled: Sequence[LoggedSampling]) -> dict[str, list[Any]]:
    """Return the columns of sampling, checked and converted as the recorder does."""
    if all(each is NO_SAMPLING or each == NO_SAMPLING for each in sampled):
        return {}
    steps = [check_step({name: getattr(each, name) for name in _SAMPLING}) for each in sampled]
    return {name: [step.get(name) for step in steps] for name in _SAMPLING}
