"""Where a row has its messages: in a list, in a prompt and its answer, or in turns."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.importers.logs.plain import without_padding
from graphcredit.collector.importers.messages.chat import chat_messages, is_chat, said_alike
from graphcredit.collector.importers.messages.cut import is_cut, reason_of
from graphcredit.collector.importers.messages.roles import ROLES, opened, role_of
from graphcredit.collector.importers.messages.rollout import ASSISTANT, SYSTEM, Message
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_number,
    fields_of,
    first_of,
    items_of,
    parse_json,
)

LISTS = (
    *("messages", "traj", "conversations", "conversation", "trajectory", "history", "chat"),
    *("turns", "dialog", "dialogue", "contents", "chat_history", "steps", "rounds"),
    *("input_messages", "gen_ai.input.messages"),
)
"""Fields that may have all messages of a rollout."""

PROMPTS = ("prompt", "input", "input_prompt", "instruction", "query", "question", "user", "human")
ANSWERS = (
    *("completion", "output", "response", "output_response", "completions", "responses"),
    *("choices", "candidates", "outputs", "generation", "generated_text", "model_response"),
    *("prediction", "assistant", "bot", "gpt", "output_messages", "gen_ai.output.messages"),
)
"""Fields that may have a prompt, and what the policy answered."""

_OF_ACTIONS = ("traj", "trajectory", "steps")
_BEFORE = ("history", "chat_history")
"""Lists that may be what came before a prompt."""

SYSTEMS = ("system", "system_prompt", "system_instruction", "systemInstruction", "instructions")
_OF_PYTHON = re.compile(r"(ModelResponse|ChatCompletion|Message)\(id=")
"""How the text of an object begins that is no answer."""

_ONLY = ("answer", "final_answer")
"""Fields of an answer where there is no other: beside others, they are what is right."""

_TIMES = ("created_at", "createdAt", "created", "timestamp", "ts")
"""Fields of a message that may say when it was said."""

_ANSWERS_WITHIN = ("choices", "candidates", "output", "messages", "message", "content", "text")
ASIDE = (
    *(f"{name}.*.content.*.data" for name in LISTS),  # what a model's server has encrypted
    *(f"{name}.*.parts.*.state" for name in LISTS),
    *(f"{name}.*.name" for name in LISTS),
    *(f"{name}.*.toolInvocations.*.state" for name in LISTS),
    *(f"{name}.*.parts.*.toolInvocation.state" for name in LISTS),
)
"""Fields of messages that no reader reads."""

_OF_MESSAGES = {"role", "from", "content", "parts", "data", "kwargs"}


def chat_of(value: object) -> Any:
    """Return a list of messages, also where a data set has it as JSON text, or each as a pair."""
    if isinstance(value, str):
        value = parse_json(value) if value.startswith("[") else value
    if isinstance(value, list) and value and isinstance(value[0], list):
        items = cast("list[list[Any]]", value)
        if all(len(item) == 2 and isinstance(item[0], str) for item in items):
            if items[0][0] in ROLES:  # LangChain
                return [{"role": role, "content": content} for role, content in items]
            return [{"user": user, "assistant": answer} for user, answer in items]  # Gradio
    return value


def list_of(row: Mapping[str, Any]) -> str | None:
    """Return the name of the field with all messages."""
    name = known_list_of(row)
    if name is None:
        pair = pair_of(row)
        others = [name for name in row if name != "content" and _is_conversation(row[name])]
        if pair is not None:  # a list that begins with the prompt has the way to the answer
            others = [
                name for name in others if name not in pair and _begins(row[name], row[pair[0]])
            ]
        name = others[0] if len(others) == 1 and others[0] not in PROMPTS else None
    return name


def _begins(items: list[Any], prompt: object) -> bool:
    """Return whether messages with answers begin with a prompt."""
    texts = [fields_of(item).get("content") for item in items[:2]]
    is_said = any(isinstance(text, str) and str(prompt) in text for text in texts)
    return is_said and any(map(_is_answer, items))


def known_list_of(row: Mapping[str, Any]) -> str | None:
    """Return the first field with a list of messages, of those that have answers if several are."""
    found = ((name, _chat_at(row, name)) for name in LISTS if row.get(name))
    named = [name for name, value in found if is_chat(value) or _are_pairs(value)]
    if len(named) < 2:
        return next(iter(named), None)
    with_answers = (name for name in named if any(map(_is_answer, chat_of(row[name]))))
    return next(with_answers, named[0])


def _chat_at(row: Mapping[str, Any], name: str) -> Any:
    """Return a list of messages; pairs of a trajectory may be actions and what they led to."""
    chat = chat_of(row[name])
    is_made = chat is not row[name] and isinstance(row[name], list)
    return None if is_made and name in _OF_ACTIONS and not is_chat(chat) else chat


def _is_answer(item: object) -> bool:
    fields = fields_of(item)
    return role_of(opened(fields)) == ASSISTANT or _texts_of_pair(fields) is not None


def _is_conversation(value: object) -> bool:
    """Return whether a value is a list of messages, and not one of tools, which have types too."""
    return is_chat(value) and bool(_OF_MESSAGES & fields_of(items_of(value)[0]).keys())


def _are_pairs(value: object) -> bool:
    """Return whether a value is a list with a prompt and its answer in each item."""
    items = [] if is_chat(value) else items_of(value)
    return bool(items) and all(_texts_of_pair(fields_of(item)) is not None for item in items)


def pair_of(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of the fields with a prompt and its answer."""
    prompts = (name for name in PROMPTS if isinstance(row.get(name), str) or is_chat(row.get(name)))
    prompt = next(prompts, None)
    answers = (name for name in ANSWERS if name in row and answers_in(row[name]))
    answer = next(answers, None)
    return None if prompt is None or answer is None else (prompt, answer)


def answers_in(value: object) -> list[Any]:
    """Return the messages of an answer, in whatever a model's server puts around them."""
    if isinstance(value, str):
        if _OF_PYTHON.match(value):
            return []
        inner = fields_of(parse_json(value)) if value[:1] == "{" and '"choices"' in value else {}
        if choices := items_of(inner.get("choices")):
            return answers_in(choices)
        return [{"role": ASSISTANT, "content": value}]
    if isinstance(value, list):
        items = items_of(value)
        if not items or is_chat(value) or "type" in fields_of(items[0]):
            return items
        return answers_in(items[0])
    fields = fields_of(value)
    if role_of(opened(fields)) is not None:
        return [fields]
    within = (fields[name] for name in _ANSWERS_WITHIN if fields.get(name) is not None)
    found = answers_in(next(within, None)) if fields else []
    reason = reason_of(fields, 0) if found else None
    cut = {"finish_reason": reason} if reason and is_cut(reason) else {}
    return [*found[:-1], {**fields_of(found[-1]), **cut}] if cut else found


def messages_in(row: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of a row; those of a prompt are context."""
    messages = _messages_in(row)
    system = first_of(row, SYSTEMS)
    if system is None or (messages and messages[0].role == SYSTEM):
        return messages
    return (*chat_messages([{"role": "system", "content": system}], "system"), *messages)


def _messages_in(row: Mapping[str, Any]) -> tuple[Message, ...]:
    name = list_of(row)
    pair = pair_of(row) if name is None or name in _BEFORE else None
    if name is None and pair is None:  # the error says what is wrong with a list
        name = next((name for name in LISTS if name in row), None)
    before: tuple[Message, ...] = ()
    if name is not None:
        items = as_list(chat_of(row[name]), name)
        items = without_padding(items) if _is_padded(items) else items
        items = items[::-1] if _is_newest_first(items) else items
        messages = (
            tuple(_of_turns(items, name)) if _are_pairs(items) else chat_messages(items, name)
        )
        if pair is None:
            return _with_answer_beside(row, name, messages)
        before = messages
    if pair is None:
        names = ", ".join(row) or "none"
        raise RecordError(
            f"a row must have a list of messages ({', '.join(LISTS)}), or prompt and completion: "
            f"found none in its fields: {names}"
        )
    prompt = chat_messages(given_in(row, pair[0]), pair[0], is_context=not before)
    return (*before, *prompt, *chat_messages(answers_in(row[pair[1]]), pair[1]))


def given_in(row: Mapping[str, Any], name: str) -> Any:
    """Return the messages of a prompt; Alpaca's `input` is more of its `instruction`."""
    given = row[name]
    if not isinstance(given, str):
        return given
    task = row.get("instruction") if name == "input" else None
    parts = (task, given) if isinstance(task, str) else (given,)
    return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]


def _is_padded(items: list[Any]) -> bool:
    """Return whether messages have nulls that Arrow put there: nobody else writes a prompt's."""
    first = fields_of(items[0]) if items else {}
    return None in first.values() and role_of(opened(first)) != ASSISTANT


def _is_newest_first(items: list[Any]) -> bool:
    """Return whether the times of messages run backwards, as in a thread of OpenAI's Assistants."""
    if not items or first_of(fields_of(items[0]), _TIMES) is None:
        return False
    times = [first_of(fields_of(item), _TIMES) for item in items]
    if len({type(time) for time in times}) != 1 or not isinstance(times[0], str | int | float):
        return False
    return times[0] > times[-1] and times == sorted(times, reverse=True)


def _with_answer_beside(
    row: Mapping[str, Any], name: str, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """Return messages with the answer in a field of its own; it may be the last once more."""
    last = messages[-1] if messages and messages[-1].is_answer else None
    has_answer = any(message.is_answer for message in messages)
    for field in ANSWERS if has_answer else (*ANSWERS, *_ONLY):
        if field == name or not row.get(field):
            continue
        value = answers_in(row[field])
        are_items = bool(value) and "type" in fields_of(value[0])
        beside = chat_messages(value, field) if are_items or is_chat(value) else ()
        if last and beside and said_alike(beside[-1], last):
            thought = last.thought or beside[-1].thought
            return (*messages[:-1], replace(last, thought=thought))
        if beside and not (last and not last.tool_calls):
            return (*messages, *beside)
    return messages


def _of_turns(items: list[Any], name: str) -> Iterator[Message]:
    """Yield the messages of a list with a prompt and its answer in each item."""
    before = ""
    for number, item in enumerate(items):
        prompt, answer = _texts_of_pair(fields_of(item)) or ("", "")
        said = prompt[len(before) :] if before and prompt.startswith(before) else prompt
        before = prompt + answer
        reward = as_number(first_of(item, ("reward", "score")), f"{name}[{number}].reward")
        both = [{"role": "user", "content": said}, {"role": ASSISTANT, "content": answer}]
        user, spoken = chat_messages(both, name)
        yield user
        yield replace(spoken, reward=reward, source=item)


def _texts_of_pair(item: Mapping[str, Any]) -> tuple[str, str] | None:
    prompt, answer = first_of(item, PROMPTS), first_of(item, ANSWERS)
    return (prompt, answer) if isinstance(prompt, str) and isinstance(answer, str) else None
