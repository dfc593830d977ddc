"""Decide where the tokens of an iteration are from, and say it."""

from collections.abc import Sequence

from graphcredit.store.layout import Shard
from graphcredit.store.progress import OnProgress
from graphcredit.trainer.data.token_source import TokenSource, logged_columns
from graphcredit.trainer.messages.tokens import MessageTokens, tokens_of_messages
from graphcredit.trainer.model.source import find_model


def open_tokens(shards: Sequence[Shard], model: str, on_progress: OnProgress) -> TokenSource:
    """Return where the tokens are from; messages are tokenised now if no step has token ids.

    Raises:
        InputError: No step can be tokenised.
        SchemaError: A shard cannot be read.
    """
    has_ids, has_logprobs = logged_columns(shard.path for shard in shards)
    if has_ids or not shards:
        return TokenSource(has_logprobs=has_logprobs or not shards)
    made = tokens_of_messages(shards, find_model(model), on_progress=on_progress)
    return TokenSource(made=made, has_logprobs=False)


def source_notices(source: TokenSource, instead: str) -> list[str]:
    """Return how tokens were made, and what stands for missing log-probabilities of the sampler."""
    made = source.made.notices if isinstance(source.made, MessageTokens) else ()
    if source.has_logprobs:
        return [*made]
    lack = f"no step has log-probabilities of its sampler: {instead}, and there is no correction"
    return [*made, lack]
