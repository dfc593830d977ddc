"""Messages are tokenised once: other ranks and later starts read the tokens beside the output."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from graphcredit.store.layout import open_store
from graphcredit.trainer.messages import tokens
from graphcredit.trainer.messages.made import (
    MessageTokens,
    ShardTokens,
    kept_tokens,
    prompts_and_answers,
)
from graphcredit.trainer.messages.tokens import open_tokens
from tests.cli.in_process import run
from tests.trainer.models import CHATML, MARKED, save_chat_model
from tests.trainer.test_messages import EAST, HALL, KITCHEN, OUT

ONE, TWO, NONE = Path("one"), Path("two"), Path("none")


def of_shard(places: list[list[int]], *sequences: list[int]) -> ShardTokens:
    """Return a shard whose rows have a sequence, where the answer begins in it, where it ends."""
    columns = np.array(places, np.int64).reshape(-1, 3).T
    ids = [np.array(each, np.int32) for each in sequences]
    return ShardTokens(sequences=ids, sequence=columns[0], start=columns[1], end=columns[2])


MADE = MessageTokens(
    shards={
        ONE: of_shard([[0, 2, 3], [-1, -1, -1], [0, 5, 6]], [1, 2, 3, 4, 5, 6]),
        NONE: of_shard([]),
        TWO: of_shard([[1, 1, 2], [0, 1, 2]], [7, 8], [9, 10]),
    },
    chat_template="{{ messages }}",
    notices=("how it was done",),
)
PAIRS = {
    ONE: [([1, 2], [3]), None, ([1, 2, 3, 4, 5], [6])],
    NONE: [],
    TWO: [([9], [10]), ([7], [8])],
}


def never() -> MessageTokens:
    raise AssertionError("the tokens are there")


def test_what_is_read_is_what_was_made(tmp_path: Path):
    path = tmp_path / "tokens" / "steps.parquet"
    kept = partial(kept_tokens, path, "key", [TWO, NONE, ONE])
    assert kept(lambda: MADE, writes=True) is MADE
    for read in (kept(never, writes=True), kept(never, writes=False)):
        assert {shard: prompts_and_answers(read, shard) for shard in read.shards} == PAIRS
        assert (read.num_steps, read.num_sequences) == (4, 3)
        assert (read.chat_template, read.notices) == (MADE.chat_template, MADE.notices)


def test_other_ranks_wait_for_the_file_and_a_damaged_one_is_written_anew(tmp_path: Path):
    path = tmp_path / "steps.parquet"
    shards = list(MADE.shards)
    kept_tokens(path, "of another log", shards, lambda: replace(MADE, notices=()), writes=True)
    path.write_bytes(path.read_bytes()[:-40])
    with ThreadPoolExecutor() as pool:
        other = pool.submit(kept_tokens, path, "key", shards, never, writes=False)
        assert kept_tokens(path, "key", shards, lambda: MADE, writes=True) is MADE
        assert other.result(timeout=300).notices == MADE.notices


def test_a_file_is_read_while_log_model_and_template_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Else the messages are tokenised again, and so are those of a log that grew."""
    log, store, model = tmp_path / "log.jsonl", tmp_path / "store", tmp_path / "model"
    lines = [{"task_id": "t", "reward": n, "messages": [HALL, EAST, KITCHEN, OUT]} for n in (0, 1)]
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("import", log, store).exit_code == 0
    save_chat_model(model)
    template = tmp_path / "template.jinja"
    template.write_text(MARKED, encoding="utf-8")
    num_made: list[Path] = []

    def counted(*arguments: object, **options: object) -> MessageTokens:
        num_made.append(tmp_path)
        return tokens_of_messages(*arguments, **options)  # pyright: ignore[reportArgumentType]

    tokens_of_messages = tokens.tokens_of_messages
    monkeypatch.setattr(tokens, "tokens_of_messages", counted)
    told: list[tuple[str, float, float]] = []

    def made(template: Path | None = None) -> int:
        source = open_tokens(
            open_store(store).shards(),
            str(model),
            lambda what, done=0.0, of=0.0, note="": told.append((what, done, of)),
            template=template,
            keep_in=tmp_path / "out" / "tokens" / "steps.parquet",
        )
        assert source.appends
        assert source.chat_template == (template and template.read_text(encoding="utf-8"))
        return len(num_made)

    assert [made(), made(), made(template), made(template)] == [1, 1, 2, 2]
    assert told[:2] == [("tokenise the messages", n, 2) for n in (1, 2)]
    template.write_text(CHATML, encoding="utf-8")
    assert [made(template), made(template), made()] == [3, 3, 4]
    config = json.loads((model / "generation_config.json").read_text(encoding="utf-8"))
    (model / "generation_config.json").write_text(json.dumps({**config, "eos_token_id": 7}))
    assert [made(), made()] == [5, 5]
    log.write_text(json.dumps(lines[0]), encoding="utf-8")
    assert run("import", log, store, "--run", "other").exit_code == 0
    assert [made(), made()] == [6, 6]
