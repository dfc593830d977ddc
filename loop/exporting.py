"""Steps with their credit for other tools: as tables, as sequences of tokens, or turn by turn."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from graphcredit.collector.exporters.tokens import MadeTokens, TokensReport, export_tokens
from graphcredit.collector.exporters.turns import TurnsReport, export_turns
from graphcredit.store.errors import OptionError
from graphcredit.store.keywords import takes_options
from graphcredit.store.layout import AnyStore, Shard, open_store
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.parquet.export import ExportReport, export_store
from graphcredit.store.progress import OnProgress, silent

ExportKind: TypeAlias = Literal["parquet", "tokens", "turns"]

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".csv"),
    "tokens": (".parquet",),
    "turns": (".jsonl", ".ndjson"),
}
"""What is exported, to the endings of the files that it is written to."""

_FILES = frozenset(
    (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".gz")
)
"""Endings that promise a file of some kind."""


@takes_options()
def export(
    store: AnyStore,
    target: Path | str,
    *,
    to: ExportKind = "parquet",
    model: str | None = None,
    chat_template: Path | None = None,
    estimator: str | None = None,
    run: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
    on_notice: Callable[[str], None] = warnings.warn,
) -> ExportReport | TokensReport | TurnsReport:
    """Write steps with their credit for other tools, or credit beside the ids of the log.

    Example:
        graphcredit.export("store", "steps.csv", estimator="reach")

    Args:
        store: A store, or its path.
        target: A new folder, or a file that ends in .csv or .parquet; for tokens a file that ends
            in .parquet, for turns one that ends in .jsonl.
        to: parquet: steps and credit, all with the same columns. tokens: sequences of token ids
            with mask, advantages and log-probabilities. turns: a line of advantages a turn.
        model: With tokens, a model whose chat template tokenises messages: for logs without tokens.
        chat_template: With `model`, a file with a template in place of the model's.
        estimator: Only this estimator's columns; by default all.
        run: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the parts written and their number.
        on_notice: Called with what to know of the tokens that were made.

    Raises:
        OptionError: The name of the target promises another format, or options do not fit.
        InputError: There is nothing to export, or `target` is there.
        SchemaError: A shard cannot be read.
    """
    opened, target = open_store(store), Path(target)
    if to not in _ENDINGS:
        raise OptionError(must_be_one_of("export.to", _ENDINGS, to))
    name = target.name.removesuffix(".gz").removesuffix(".zst") if to == "turns" else target.name
    if Path(name).suffix in _FILES.difference(_ENDINGS[to]):
        fits = [f"--to {name}" for name, endings in _ENDINGS.items() if target.suffix in endings]
        remedy = f". {' or '.join(fits)} writes {target.suffix}" if fits else ""
        raise OptionError(
            f"the target of --to {to} must be a file that ends in {' or '.join(_ENDINGS[to])}, or "
            f"a name without an ending: got {target}{remedy}"
        )
    if model is not None and to != "tokens":
        raise OptionError("--model goes with --to tokens only")
    if chat_template is not None and model is None:
        raise OptionError("--chat-template goes with --model only")
    write = partial(export_store if to == "parquet" else export_turns, opened, target)
    if to == "tokens":
        shards = opened.shards(run, iteration)
        made = None
        if model is not None:
            made = _made(shards, model, chat_template, on_progress, on_notice)
        write = partial(export_tokens, opened, target, made=made)
    return write(run_id=run, iteration=iteration, estimator=estimator, on_progress=on_progress)


def _made(
    shards: Sequence[Shard],
    model: str,
    template: Path | None,
    on_progress: OnProgress,
    on_notice: Callable[[str], None],
) -> MadeTokens:
    """Return the tokens that a model's chat template makes of the messages."""
    from graphcredit.trainer.data.token_source import logged_columns
    from graphcredit.trainer.messages.made import prompts_and_answers
    from graphcredit.trainer.messages.tokens import tokens_of_messages
    from graphcredit.trainer.model.source import find_model

    if logged_columns(shard.path for shard in shards)[0]:
        raise OptionError("--model is for logs without token ids: leave it out here")
    made = tokens_of_messages(shards, find_model(model), template=template, on_progress=on_progress)
    for notice in made.notices:
        on_notice(notice)
    return lambda path: prompts_and_answers(made, path)
