"""Faults in the steps themselves that training must not paper over."""

import numpy as np

from graphcredit.store.errors import InputError, NothingToTrainError
from graphcredit.trainer.data.ragged import Bools, Floats, Ints, Ragged
from graphcredit.trainer.data.step_columns import TOKEN_COLUMNS, StepColumns

LARGEST_LOGPROB = 1e-4
"""Rounding may lift a log-probability above 0 by this much."""

RECORD = "log the ids the policy was given and sampled, with their log-probabilities"
"""What to do about tokens that are missing."""


def refuse_faults(columns: StepColumns, *, takes_sampler_ratios: bool) -> None:
    """Raise on the first fault in the tokens of some steps.

    Args:
        columns: The steps.
        takes_sampler_ratios: Whether the loss does, so that top-p and top-k would make them wrong.

    Raises:
        InputError: Some token columns are there and others not; lengths differ; there is no prompt;
            a token id is negative or null; a log-probability is above 0; a temperature is not a
            positive number; or the sampling distribution was truncated
            and ratios are taken to it.
    """
    _refuse_partial(columns)
    _refuse_lengths(columns)
    _refuse_ids(columns, "prompt_ids", columns.tokens.prompt)
    _refuse_ids(columns, "response_ids", columns.tokens.response)
    _refuse_logprobs(columns)
    _refuse_temperatures(columns)
    if takes_sampler_ratios:
        _refuse_truncation(columns)


def refuse_uncorrected(staleness: Ints) -> None:
    """Raise if kept steps are older than the loss allows without a correction.

    Args:
        staleness: [n] versions by which each kept step is older than the newest in the log.
    """
    if staleness.max(initial=0) > 1:
        raise InputError(
            "without a correction, steps must be at most 1 version older than the newest: "
            f"{int((staleness > 1).sum())} of {len(staleness)} steps are up to {staleness.max()} "
            "older. Choose another --correction, or leave them out with --max-staleness 1"
        )


def signal_notices(advantage: Floats, column: str, *, teaches_without: str | None) -> list[str]:
    """Return a notice if all advantages are 0 and something else is learnt; raise if nothing is.

    Args:
        advantage: [n] of the steps that are trained on, as the loss takes them.
        column: The advantage column.
        teaches_without: What teaches a step whose advantage is 0, if anything does.

    Raises:
        NothingToTrainError: All advantages are 0, and nothing else is learnt.
    """
    if advantage.any():
        return []
    lack = f"{column} is 0 in all {len(advantage)} steps"
    if teaches_without is not None:
        return [f"{lack}: only {teaches_without} moves the policy"]
    raise NothingToTrainError(
        f"training needs steps with a signal, but {lack}: every gradient would be 0. Choose "
        "another iteration or advantage (where tasks have one rollout each, or all ended alike, "
        "`graphcredit credit -e discounted` compares nothing); or let an entropy bonus or the "
        "divergence from another --reference teach them"
    )


def is_truncated(columns: StepColumns) -> Bools:
    """[n] the step has tokens that were sampled with top-p or top-k."""
    truncated = (columns.top_p < 1) | (columns.top_k > 0)
    return truncated & ~columns.is_without_tokens


def _refuse_partial(columns: StepColumns) -> None:
    tokens = columns.tokens
    lacks = dict(
        zip(
            TOKEN_COLUMNS,
            (tokens.prompt.is_null, tokens.response.is_null, tokens.logprob.is_null),
            strict=True,
        )
    )
    row = _first(np.logical_or.reduce(list(lacks.values())) & ~columns.is_without_tokens)
    if row is not None:
        absent = [name for name, is_null in lacks.items() if is_null[row]]
        raise InputError(
            f"a step must have all of {', '.join(TOKEN_COLUMNS)} or none: {columns.where(row)} "
            f"lacks {' and '.join(absent)}; {RECORD}"
        )


def _refuse_lengths(columns: StepColumns) -> None:
    ids, logprobs = columns.tokens.response.lengths, columns.tokens.logprob.lengths
    row = _first(ids != logprobs)
    if row is not None:
        raise InputError(
            "each of response_ids must have one of response_logprobs: "
            f"{columns.where(row)} has {ids[row]} ids and {logprobs[row]} log-probabilities; "
            f"{RECORD}"
        )
    row = _first((columns.tokens.prompt.lengths == 0) & (ids > 0))
    if row is not None:
        raise InputError(
            "prompt_ids must have a token from which the first response token is predicted: "
            f"{columns.where(row)} has none; log the whole prompt, special tokens included"
        )


def _refuse_ids(columns: StepColumns, name: str, ids: Ragged) -> None:
    position = _first(ids.values < 0)
    if position is not None:
        raise InputError(
            f"{name} must be 0 or more, none of them null: found {ids.values[position]} in "
            f"{columns.where(ids.row_of(position))}; log the ids that the tokenizer gave"
        )


def _refuse_logprobs(columns: StepColumns) -> None:
    logprob = columns.tokens.logprob
    position = _first(logprob.values > LARGEST_LOGPROB)
    if position is not None:
        raise InputError(
            "response_logprobs must be logarithms of probabilities, 0 at most: found "
            f"{logprob.values[position]:g} in {columns.where(logprob.row_of(position))}; "
            "log natural logarithms, after the softmax"
        )


def _refuse_temperatures(columns: StepColumns) -> None:
    temperature = columns.tokens.temperature
    is_sound = np.isfinite(temperature) & (temperature > 0)
    row = _first(~is_sound & ~columns.is_without_tokens)
    if row is not None:
        raise InputError(
            "temperature must be above 0 and finite where there are tokens, because logits are "
            f"divided by it: found {temperature[row]:g} in {columns.where(row)}; "
            "sample the steps to train on, do not decode them greedily"
        )


def _refuse_truncation(columns: StepColumns) -> None:
    row = _first(is_truncated(columns))
    if row is not None:
        raise InputError(
            "steps must be sampled from the whole distribution, because the trainer's "
            f"log-probabilities are of it: {columns.where(row)} has top_p "
            f"{columns.top_p[row]:g} and top_k {columns.top_k[row]}. Sample without them, or take "
            "--correction none, which takes no ratios to the sampler"
        )


def _first(flags: Bools) -> int | None:
    """Return the position of the first flag that is set."""
    return int(flags.argmax()) if flags.any() else None
