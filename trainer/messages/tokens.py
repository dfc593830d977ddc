"""Tokenise the messages of an iteration: the tokens of all steps, each sequence once in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcredit.store.errors import InputError
from graphcredit.store.images import image_bytes
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.data.ragged import Ints, Ragged
from graphcredit.trainer.data.step_columns import TokenColumns
from graphcredit.trainer.data.token_source import TokenSource, logged_columns
from graphcredit.trainer.messages.conversation import COLUMNS, conversation_of
from graphcredit.trainer.messages.sequences import TokenSequence, sequences_of
from graphcredit.trainer.messages.template import BLIND, ChatTemplate
from graphcredit.trainer.model.source import find_model


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShardTokens:
    """The tokens of the n rows of a step shard."""

    sequences: tuple[NDArray[np.int32], ...]
    """Token ids."""
    sequence: Ints
    """[n] which of them a step is in; -1 where it could not be tokenised."""
    start: Ints
    """[n] where its answer begins; its prompt is all before."""
    end: Ints
    """[n] where its answer ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageTokens:
    """The tokens of an iteration whose steps have messages only."""

    shards: Mapping[Path, _ShardTokens]
    num_steps: int
    """Steps that were tokenised."""
    num_sequences: int
    chat_template: str | None
    """The template that made them in place of the model's, if one did."""
    notices: tuple[str, ...]
    """How it was done, and what could not be."""

    def of_rows(self, path: Path, first_row: int, logged: TokenColumns) -> TokenColumns:
        """Return the tokens of adjacent rows of a shard, in place of those that the log lacks.

        Raises:
            InputError: The shard was not there yet.
        """
        if path not in self.shards:
            raise InputError(f"{path} appeared after the messages were tokenised: start again")
        tokens = self.shards[path]
        rows = range(first_row, first_row + len(logged.temperature))
        prompts = [_part(tokens, row, 0, tokens.start[row]) for row in rows]
        responses = [_part(tokens, row, tokens.start[row], tokens.end[row]) for row in rows]
        is_null = tokens.sequence[rows.start : rows.stop] < 0
        return replace(
            logged, prompt=_ragged(prompts, is_null), response=_ragged(responses, is_null)
        )


def prompts_and_answers(
    made: MessageTokens, path: Path
) -> list[tuple[list[int], list[int]] | None]:
    """Return the tokens of each row of a step shard; None where it could not be tokenised."""
    tokens = made.shards[path]
    return [
        (
            _part(tokens, row, 0, tokens.start[row]).tolist(),
            _part(tokens, row, tokens.start[row], tokens.end[row]).tolist(),
        )
        if number >= 0
        else None
        for row, number in enumerate(tokens.sequence)
    ]


def open_tokens(
    shards: Sequence[Shard], model: str, on_progress: OnProgress, *, template: Path | None = None
) -> TokenSource:
    """Return where the tokens are from; messages are tokenised now if no step has token ids.

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
        if _num_steps(remade) > _num_steps(made):
            opened, made, counts = other, remade, recounted
    num_steps = _num_steps(made)
    num_sequences = sum(len(each.sequences) for each in made.values())
    num_tokens = sum(len(ids) for each in made.values() for ids in each.sequences)
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
    of_columns = f"{by_columns:,} steps have no messages: the observation is taken to be what the "
    of_columns += "user says, and the action the answer"
    others = [of_columns] if by_columns else []
    of_cut = f"{num_cut:,} answers were cut by a limit: no end is learnt from them, since none was "
    of_cut += "sampled; --truncated mask leaves them out, drop their whole trajectories"
    others += [of_cut] if num_cut else []
    return MessageTokens(
        shards=made,
        num_steps=num_steps,
        num_sequences=num_sequences,
        chat_template=opened.text,
        notices=(made_by, *changes, *faults, *filter(None, [opened.ends.notice()]), *others),
    )


_BY_COLUMNS, _WITHOUT_REASONING, _CUT = "by columns", "without reasoning", "cut"


def _made(
    shards: Sequence[Shard], template: ChatTemplate, on_progress: OnProgress
) -> tuple[dict[Path, _ShardTokens], Counter[str]]:
    """Return the tokens of each shard, and why steps have none."""
    made: dict[Path, _ShardTokens] = {}
    counts: Counter[str] = Counter()
    for number, shard in enumerate(shards):
        made[shard.path] = _shard_tokens(shard, template, counts)
        on_progress("tokenise the messages", number + 1, len(shards))
    return made, counts


def _num_steps(made: Mapping[Path, _ShardTokens]) -> int:
    return sum(int((each.sequence >= 0).sum()) for each in made.values())


def _shard_tokens(shard: Shard, template: ChatTemplate, counts: Counter[str]) -> _ShardTokens:
    rows = _rows(shard.path)
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
    return _ShardTokens(
        sequences=tuple(sequence.ids for sequence in sequences),
        sequence=place[0],
        start=place[1],
        end=place[2],
    )


def _rows(path: Path, columns: Sequence[str] = COLUMNS) -> list[dict[str, Any]]:
    with open_parquet(path) as file:
        present = [name for name in columns if name in file.schema_arrow.names]
        table = conform(file.read(columns=present), step_columns(columns), where=str(path))
    return table.to_pylist()


def _day(path: Path) -> date:
    """Return the day on which the first step of a shard was logged."""
    rows = _rows(path, ["logged_at"])
    return rows[0]["logged_at"].date() if rows else date(1970, 1, 1)


def _part(tokens: _ShardTokens, row: int, start: int, end: int) -> NDArray[np.int32]:
    number = tokens.sequence[row]
    return tokens.sequences[number][start:end] if number >= 0 else np.empty(0, np.int32)


def _ragged(lists: Sequence[NDArray[np.int32]], is_null: NDArray[np.bool_]) -> Ragged:
    lengths = [len(ids) for ids in lists]
    return Ragged(
        values=np.concatenate([np.empty(0, np.int32), *lists]),
        starts=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        is_null=is_null,
    )
