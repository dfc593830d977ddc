"""Faults in the steps themselves that training must not paper over."""

import numpy as np

from graphcredit.store.errors import InputError, NothingToTrainError
from graphcredit.trainer.data.ragged import Bools, Floats, Ints, Ragged
from graphcredit.trainer.data.step_columns import TOKEN_COLUMNS, UNKNOWN, StepColumns
from graphcredit.trainer.data.step_filters import KEPT, REASONS

LARGEST_LOGPROB = 1e-4
"""Rounding may lift a log-probability above 0 by this much."""

_WITHOUT_SIGNAL = {"degenerate_group", "zero_advantage"}

_RECORD = "log the ids the policy was given and sampled, with their log-probabilities"


def refuse_faults(columns: StepColumns, *, allow_truncated_sampling: bool) -> None:
    """Raise on the first fault in the tokens of some steps.

    Args:
        columns: The steps.
        allow_truncated_sampling: Let steps pass that were sampled with top-p or top-k.

    Raises:
        InputError: Some token columns are there and others not; lengths differ; there is no prompt;
            a token id is negative or null; a log-probability is above 0; a temperature is not a
            positive number; or the sampling distribution was truncated.
    """
    _refuse_partial(columns)
    _refuse_lengths(columns)
    _refuse_ids(columns, "prompt_ids", columns.tokens.prompt)
    _refuse_ids(columns, "response_ids", columns.tokens.response)
    _refuse_logprobs(columns)
    _refuse_temperatures(columns)
    if not allow_truncated_sampling:
        _refuse_truncation(columns)


def refuse_newer(columns: StepColumns, staleness: Ints, policy_version: str) -> None:
    """Raise if a step was sampled by newer weights than the ones that are trained.

    Args:
        columns: The steps.
        staleness: [n] version gap of each; `UNKNOWN` where it is not known.
        policy_version: Version of the model.
    """
    # A gap of -1 looks like UNKNOWN, so the step's own version tells the two apart.
    row = _first((staleness < 0) & (columns.version != UNKNOWN))
    if row is not None:
        raise InputError(
            f"steps must not be newer than the model: {columns.where(row)} was sampled by version "
            f"{columns.version[row]}, and the model is {policy_version!r}. Give the version of "
            "the model with --policy-version, or train on an earlier iteration"
        )


def refuse_uncorrected(staleness: Ints, policy_version: str) -> None:
    """Raise if kept steps are older than the loss allows without a correction.

    Args:
        staleness: [n] version gap of each kept step.
        policy_version: Version of the model, or the newest in the log, which may be older.
    """
    if staleness.max(initial=0) > 1:
        raise InputError(
            "without a correction, steps must be at most 1 version older than the model, "
            f"{policy_version!r}: {int((staleness > 1).sum())} of {len(staleness)} steps are up to "
            f"{staleness.max()} older. Choose a --correction, with --old-logprobs recomputed, or "
            "leave them out with --max-staleness 1"
        )


def refuse_nothing_left(outcomes: Ints) -> None:
    """Raise if no step is left to train on.

    Args:
        outcomes: [len(REASONS) + 1] number of steps left out by each reason; the last are kept.

    Raises:
        NothingToTrainError: All are left out because they have no signal, or have no credit because
            their trajectories never ended.
        InputError: All are left out, some for other reasons: the log or the filters do not fit.
    """
    num_steps = int(outcomes.sum())
    if outcomes[REASONS.index("no_tokens")] == num_steps:
        raise InputError(
            f"training needs steps with {', '.join(TOKEN_COLUMNS)}: all three are missing or null "
            f"in all {num_steps} steps. A policy that samples tokens must {_RECORD}; the recorder "
            "takes them under these names"
        )
    if outcomes[KEPT]:
        return
    counts = {name: int(n) for name, n in zip(REASONS, outcomes, strict=False) if n}
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    others = counts.keys() - _WITHOUT_SIGNAL
    if others < counts.keys() and others <= {"no_credit"}:
        raise NothingToTrainError(
            f"training needs steps with a signal: of {num_steps}, all are left out ({found}). "
            "Choose another iteration or advantage; or let an entropy bonus or the divergence from "
            "another --reference teach them"
        )
    raise InputError(
        f"training needs steps that are not left out: of {num_steps}, all are ({found}). "
        "Relax the filter that took them, or choose another iteration or advantage"
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
    found = f"{column} is 0 in all {len(advantage)} steps"
    if teaches_without is not None:
        return [f"{found}: only {teaches_without} moves the policy"]
    raise NothingToTrainError(
        f"training needs steps with a signal, but {found}: every gradient would be 0. Choose "
        "another iteration or advantage; or let an entropy bonus or the divergence from another "
        "--reference teach them"
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
            f"lacks {' and '.join(absent)}; {_RECORD}"
        )


def _refuse_lengths(columns: StepColumns) -> None:
    ids, logprobs = columns.tokens.response.lengths, columns.tokens.logprob.lengths
    row = _first(ids != logprobs)
    if row is not None:
        raise InputError(
            "each of response_ids must have one of response_logprobs: "
            f"{columns.where(row)} has {ids[row]} ids and {logprobs[row]} log-probabilities; "
            f"{_RECORD}"
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
            f"{columns.top_p[row]:g} and top_k {columns.top_k[row]}. Sample without them, or "
            "pass --allow-truncated-sampling and accept that ratios are off"
        )


def _first(flags: Bools) -> int | None:
    """Return the position of the first flag that is set."""
    return int(flags.argmax()) if flags.any() else None
