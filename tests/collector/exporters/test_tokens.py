"""`export --to tokens`: sequences of token ids with a mask, advantages and log-probabilities.

And conversations as a tokenizer's own chat template writes them.
"""

import itertools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.exporters.sequences import StepTokens, sequences_of
from graphcredit.collector.exporters.tokens import export_tokens
from graphcredit.collector.policies.tokens import encode_prompt, load_tokenizer
from graphcredit.credit.iteration.settings import settings_of
from graphcredit.credit.options import CreditOptions
from graphcredit.credit.stage import assign_credit as assign
from graphcredit.store import open_store
from graphcredit.store.errors import InputError
from tests.cli.in_process import run
from tests.collector.importers.logs import walk, write_lines
from tests.collector.importers.read_back import imported
from tests.collector.talkers import save_talker
from tests.trainer.models import chat_tokenizer, save_chat_model


def step(index: int, prompt: list[int], response: list[int], **more: Any) -> StepTokens:
    values: dict[str, Any] = {"logprobs": [-1.0] * len(response), "advantage": float(index + 1)}
    return StepTokens(step_index=index, prompt=prompt, response=response, **{**values, **more})


def test_a_sequence_goes_on_where_a_prompt_begins_with_it():
    steps = [
        step(0, [1], [2, 3]),
        step(1, [1, 2, 3, 4], [5], advantage=None),
        step(2, [1, 2, 3, 4, 5, 6], [7], logprobs=[-0.5]),
        step(3, [1, 6], [8], logprobs=None),  # the past was rewritten
    ]
    first, second = sequences_of(steps)
    assert first.step_indices == [0, 1, 2]
    assert first.input_ids == [1, 2, 3, 4, 5, 6, 7]
    assert first.loss_mask == [0, 1, 1, 0, 0, 0, 1]
    assert first.advantages == [0, 1, 1, 0, 0, 0, 3]
    assert first.logprobs == [0, -1, -1, 0, 0, 0, -0.5]
    assert (second.input_ids, second.loss_mask) == ([1, 6, 8], [0, 0, 1])
    assert (second.advantages, second.logprobs) == ([0, 0, 4], None)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3), st.integers(1, 3)), max_size=6))
def test_each_answer_is_in_one_sequence_after_its_prompt(plan: list[tuple[bool, int, int]]):
    tokens, past, steps = itertools.count(), list[int](), list[StepTokens]()
    for index, (goes_on, num_seen, num_said) in enumerate(plan):
        seen = [next(tokens) for _ in range(num_seen)]
        said = [next(tokens) for _ in range(num_said)]
        prompt = [*past, *seen] if goes_on else seen
        steps.append(step(index, prompt, said))
        past = [*prompt, *said]
    sequences = list(sequences_of(steps))
    assert [n for each in sequences for n in each.step_indices] == list(range(len(steps)))
    assert len(sequences) == sum(not goes_on for goes_on, *_ in plan[1:]) + bool(plan)
    for each in sequences:
        for number in each.step_indices:
            whole = [*steps[number].prompt, *steps[number].response]
            assert each.input_ids[: len(whole)] == whole
            places = [i for i, value in enumerate(each.advantages) if value == number + 1]
            assert [each.input_ids[i] for i in places] == steps[number].response
            assert all(each.loss_mask[i] for i in places)
        assert sum(each.loss_mask) == sum(len(steps[n].response) for n in each.step_indices)


def with_tokens(row: dict[str, Any], start: int) -> dict[str, Any]:
    """Return a row of messages whose answers have tokens that count up."""
    ids: list[int] = []
    messages = []
    for message in row["messages"]:
        if message["role"] == "assistant":
            answer = [start + len(ids)]
            message = {**message, "prompt_ids": [*ids], "response_ids": answer, "logprobs": [-1.0]}
            ids += answer
        else:
            ids.append(start + len(ids))
        messages.append(message)
    return {**row, "messages": messages}


def test_the_file_and_its_report(tmp_path: Path):
    won, lost = walk("garden", id="x"), walk("cellar", "attic", id="y", reward=0.0)
    bare = walk("cellar", id="z", reward=0.0)
    rows = (with_tokens(won, 0), with_tokens(lost, 50), bare)
    imported(write_lines(tmp_path / "rows.jsonl", *rows), tmp_path / "s")
    store = open_store(tmp_path / "s")
    assign(store, settings_of(CreditOptions(estimators=("rloo", "grpo"))))
    with pytest.raises(InputError, match=r"name one of .* \(grpo, rloo\)"):
        export_tokens(store, tmp_path / "t.parquet")
    ended = run("export", tmp_path / "s", tmp_path / "t.parquet", "--to", "tokens", "-e", "rloo")
    assert ended.exit_code == 0, ended.err
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.num_rows == 2
    lengths = [len(ids) for ids in table["input_ids"].to_pylist()]
    assert ended.out.splitlines() == [
        f"2 sequences of 3 steps with advantages of rloo: {sum(lengths)} tokens, 3 in the loss",
        "           1  steps without tokens: in no sequence",
    ]
    for row in table.to_pylist():
        assert len({len(row[name]) for name in ("input_ids", "loss_mask", "advantages")}) == 1
        of_answers = {1.0} if row["input_ids"][0] == 0 else {-0.5}
        masked = zip(row["advantages"], row["logprobs"], row["loss_mask"], strict=True)
        assert {a for a, _, is_in_loss in masked if is_in_loss} == of_answers
        assert [-1.0 * m for m in row["loss_mask"]] == row["logprobs"]


def test_a_log_without_tokens_asks_for_a_model(tmp_path: Path):
    imported(
        write_lines(tmp_path / "rows.jsonl", walk("garden"), walk("attic", reward=0.0)),
        tmp_path / "s",
    )
    store = open_store(tmp_path / "s")
    assign(store, settings_of(CreditOptions(estimators=("rloo",))))
    with pytest.raises(InputError, match="steps must have token ids: of 2 none has"):
        export_tokens(store, tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


@pytest.mark.slow
def test_a_model_tokenises_the_messages(tmp_path: Path):
    rows = [
        {"messages": chat("hall", "go east", "kitchen", "go out"), "reward": 1.0, "task_id": "t"},
        {"messages": chat("hall", "go west"), "reward": 0.0, "task_id": "t"},
    ]
    imported(write_lines(tmp_path / "rows.jsonl", *rows), tmp_path / "s")
    assign(open_store(tmp_path / "s"), settings_of(CreditOptions(estimators=("rloo",))))
    model, target = save_chat_model(tmp_path / "m"), tmp_path / "t.parquet"
    ended = run("export", tmp_path / "s", target, "--to", "tokens", "--model", model)
    assert ended.exit_code == 0, ended.err
    assert "notice: no step has token ids: the chat template of" in ended.err
    assert "2 sequences of 3 steps with advantages of rloo" in ended.out
    tokenizer = chat_tokenizer(None)
    found: dict[str, float] = {}
    for row in pq.read_table(target).to_pylist():
        assert row["logprobs"] is None
        tokens = zip(row["advantages"], row["input_ids"], row["loss_mask"], strict=True)
        for (advantage, is_in_loss), run_of in itertools.groupby(tokens, lambda t: (t[0], t[2])):
            if is_in_loss:
                found[str(tokenizer.decode([token for _, token, _ in run_of]))] = advantage
    end = "<|im_end|>"
    assert found == {f"go east{end}": 1.0, f"go out{end}": 1.0, f"go west{end}": -1.0}
    refused = run("export", tmp_path / "s", tmp_path / "t.jsonl", "--to", "turns", "--model", model)
    assert refused.exit_code == 2
    assert "--model goes with --to tokens only" in refused.err


def chat(*contents: str) -> list[dict[str, str]]:
    roles = itertools.cycle(("user", "assistant"))
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


_NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0]['content'] }}"
)
_DATED = (
    "{% if not date_string is defined %}{% if strftime_now is defined %}"
    '{% set date_string = strftime_now("%d %b %Y") %}{% endif %}{% endif %}'
    "Today is {{ date_string }}, {{ strftime_now( '%Y-%m-%d' ) }}: {{ messages[0]['content'] }}"
)


def test_a_chat_template_that_refuses_a_system_message_is_named_with_its_words(tmp_path: Path):
    tokenizer = load_tokenizer(save_talker(tmp_path / "strict", chat_template=_NO_SYSTEM))
    user = {"role": "user", "content": "room 0"}
    assert tokenizer.decode(encode_prompt(tokenizer, [user])) == "room 0"
    message = (
        "must accept messages of system and user: that of .*strict says 'System role not "
        "supported'. .* leave `system` out of the prompt template"
    )
    with pytest.raises(InputError, match=message):
        encode_prompt(tokenizer, [{"role": "system", "content": "Play."}, user])


def test_a_chat_template_that_says_the_date_says_the_same_one_every_day(tmp_path: Path):
    tokenizer = load_tokenizer(save_talker(tmp_path / "dated", chat_template=_DATED))
    ids = encode_prompt(tokenizer, [{"role": "user", "content": "room 0"}])
    assert tokenizer.decode(ids) == "Today is 26 Jul 2024, 2024-07-26: room 0"
