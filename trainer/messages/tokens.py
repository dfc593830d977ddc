"""Tokenise the messages of an iteration: the tokens of all steps, each sequence once in memory."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from graphcredit.store.errors import InputError
from graphcredit.store.images import image_bytes
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.data.token_source import TokenSource, logged_columns
from graphcredit.trainer.messages.conversation import COLUMNS, conversation_of
from graphcredit.trainer.messages.made import MessageTokens, ShardTokens
from graphcredit.trainer.messages.sequences import TokenSequence, sequences_of
from graphcredit.trainer.messages.template import BLIND, ChatTemplate
from graphcredit.trainer.model.source import find_model


def open_tokens(
    shards: Sequence[Shard], model: str, on_progress: OnProgress, *, template: Path | None = None
) -> TokenSource:
    """Return where the tokens are from; messages are tokenised if no step has token ids.

    Args:
        shards: The steps.
        model: The model.
        on_progress: Is told how far it is.
        template: A file with another chat template.

    Raises:
        InputError: No step can be tokenised, or there are token ids and a chat template.
        SchemaError: A shard cannot be read.
    """
    has_ids, has_logprobs = logged_columns(shard.path for shard in shards)
    if has_ids and template is not None:
        raise InputError(
            f"a chat template ({template}) makes tokens of messages, but this log has token ids: "
            "leave it out"
        )
    if has_ids or not shards:
        return TokenSource(has_logprobs=has_logprobs or not shards)
    made = tokens_of_messages(shards, find_model(model), template=template, on_progress=on_progress)
    return TokenSource(
        made=made.of_rows,
        has_logprobs=False,
        appends=made.num_sequences < made.num_steps,
        chat_template=made.chat_template,
        notices=made.notices,
    )


def tokens_of_messages(
    shards: Sequence[Shard],
    directory: Path,
    *,
    template: Path | None = None,
    on_progress: OnProgress = silent,
) -> MessageTokens:
    """Tokenise the steps of some shards by the chat template of a model.

    Args:
        shards: The steps.
        directory: The model.
        template: A file with another chat template.
        on_progress: Is told how far it is.

    Raises:
        InputError: The model has no template, the template does not tell answers from the rest, or
            no step can be tokenised.
        SchemaError: A shard cannot be read.
    """
    day = _day(shards[0].path)
    opened = ChatTemplate(directory, day, file=template)
    made, counts = _made(shards, opened, on_progress)
    if opened.refuses_calls:
        # All calls of a log are in one form.
        other = ChatTemplate(directory, day, file=template, calls_as_text=True)
        remade, recounted = _made(shards, other, on_progress)
        if remade.num_steps > made.num_steps:
            opened, made, counts = other, remade, recounted
    num_steps, num_sequences = made.num_steps, made.num_sequences
    num_tokens = sum(len(ids) for each in made.shards.values() for ids in each.sequences)
    num_cut = counts.pop(_CUT, 0)
    by_columns, lacking = counts.pop(_BY_COLUMNS, 0), counts.pop(_WITHOUT_REASONING, 0)
    faults = [f"{count:,} steps cannot be tokenised: {why}" for why, count in (+counts).items()]
    if not num_steps and (+counts).keys() == {BLIND}:
        raise InputError(f"{directory} takes none of the {counts[BLIND]:,} steps: {BLIND}")
    if not num_steps:
        raise InputError(
            "training needs token ids, or messages that the chat template of the model takes: "
            f"{'; '.join(faults)}. --chat-template FILE takes another template than the model's"
        )
    way = "by its marks of answers" if opened.has_marks() else "answers by what they append"
    made_by = (
        f"no step has token ids: {opened.name} made {num_tokens:,} of the "
        f"messages of {num_steps:,} steps, {way}, in {num_sequences:,} sequences"
    )
    if lacking:
        faults.append(f"the chat template leaves out the reasoning of {lacking:,} answers")
    changes = [f"the chat template takes {what}" for what in opened.changes]
    notices = [made_by, *changes, *faults, *filter(None, [opened.ends.notice()])]
    if by_columns:
        notices.append(
            f"{by_columns:,} steps have no messages: the observation is taken to be what the user "
            "says, and the action the answer"
        )
    if num_cut:
        notices.append(
            f"{num_cut:,} answers were cut by a limit: no end is learnt from them, since none was "
            "sampled. --filter \"(extra->>'cut') IS DISTINCT FROM 'true'\" leaves them out"
        )
    return replace(made, notices=tuple(notices))


_BY_COLUMNS, _WITHOUT_REASONING, _CUT = "by columns", "without reasoning", "cut"


def _made(
    shards: Sequence[Shard], template: ChatTemplate, on_progress: OnProgress
) -> tuple[MessageTokens, Counter[str]]:
    """Return the tokens of each shard, without notices, and why steps have none."""
    counts: Counter[str] = Counter()
    names = (_read(shard.path, ["trajectory_id"])["trajectory_id"] for shard in shards)
    total = sum(len(each.unique()) for each in names)
    done = iter(range(1, total + 1))

    def tell() -> None:
        on_progress("tokenise the messages", next(done), total)

    made = {shard.path: _shard_tokens(shard, template, counts, tell) for shard in shards}
    return MessageTokens(shards=made, chat_template=template.text, notices=()), counts


def _shard_tokens(
    shard: Shard, template: ChatTemplate, counts: Counter[str], tell: Callable[[], None]
) -> ShardTokens:
    rows = _read(shard.path).to_pylist()
    of_trajectory: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        of_trajectory.setdefault(row["trajectory_id"], []).append(number)
    sequences: list[TokenSequence] = []
    place = np.full((3, len(rows)), -1, np.int64)
    for numbers in of_trajectory.values():
        numbers.sort(key=lambda number: rows[number]["step_index"])
        conversation = conversation_of([rows[number] for number in numbers])
        each, faults = sequences_of(conversation, template)
        counts[_CUT] += sum(turn.is_cut for turn in conversation.turns)
        for sequence in each:
            last = numbers[sequence.spans[-1].step]
            images, where = rows[last]["images"], f"{shard.path}, row {last}"
            if images and template.image_reader:
                contents = (image_bytes(shard.root, image, where) for image in images)
                vectors = template.image_reader.num_vectors(contents, where)
                sequence = sequence.expanded(template.image_reader.token, vectors)
            counts[_WITHOUT_REASONING] += sequence.num_without_reasoning
            for step, start, end in sequence.spans:
                place[:, numbers[step]] = len(sequences), start, end
            sequences.append(sequence)
        counts.update(faults)
        counts[_BY_COLUMNS] += conversation.num_by_columns
        if conversation.fault is not None:
            counts[conversation.fault] += len(numbers) - len(conversation.turns)
        tell()
    return ShardTokens(
        sequences=[sequence.ids for sequence in sequences],
        sequence=place[0],
        start=place[1],
        end=place[2],
    )


def _read(path: Path, columns: Sequence[str] = COLUMNS) -> pa.Table:
    with open_parquet(path) as file:
        present = [name for name in columns if name in file.schema_arrow.names]
        return conform(file.read(columns=present), step_columns(columns), where=str(path))


def _day(path: Path) -> date:
    """Return the day on which the first step of a shard was logged."""
    days = _read(path, ["logged_at"])["logged_at"].cast(pa.date32())
    return days[0].as_py() if len(days) else date(1970, 1, 1)
