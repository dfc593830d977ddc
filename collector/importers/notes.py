"""The report of what was counted, with its notes: what was decided, and what may be wrong."""

import re
from collections.abc import Iterator
from dataclasses import replace

from graphcredit.collector.importers.messages.tokens import WITHOUT_TOKENS
from graphcredit.collector.importers.prompts import VERDICTS
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.rules.outcomes import RETURN
from graphcredit.collector.importers.tally import Tally
from graphcredit.store.plural import counted

_SHOWN_CANDIDATES = 12
"""Numbers of records without a verdict that a note names."""

NOT_USED = "not used"
"""How the note begins of files with verdicts that judge nothing."""

_SHOWN_FIELDS = 5
"""Fields that nobody read that a note names."""

_NAME = re.compile(r"[\w.]+")
"""A name that an option takes as it is."""

_REMEDY = "--group names a field that rollouts of one task share"


def report_of(tally: Tally) -> ImportReport:
    """Return the counts so far."""
    counts, path = tally.counts, tally.options.verdicts
    num_single = 0 if tally.is_begin else sum(size == 1 for size in tally.groups.values())
    are_doubtful = len(tally.groups) == 1 or 2 * num_single > len(tally.groups)
    return replace(
        tally.sums,
        num_steps=counts["steps"],
        num_groups=len(tally.groups),
        num_single_groups=num_single,
        num_success=counts["success"],
        num_failed=counts["failed"],
        num_truncated=counts["truncated"],
        num_by_return=counts["by_return"],
        num_unjudged=counts["unjudged"],
        num_with_tokens=counts["tokens"],
        num_with_logprobs=counts["logprobs"],
        without_tokens={
            name.removeprefix(WITHOUT_TOKENS): number
            for name, number in counts.items()
            if name.startswith(WITHOUT_TOKENS)
        },
        num_images=counts["images"],
        notes=[
            *_decided(tally),
            *tally.observed.decided(are_doubtful=are_doubtful),
            *([] if path is None else tally.judged.notes(path)),
            *_unread(tally),
            *tally.observed.warnings(),
            *_warnings(tally),
            *tally.notes,
        ],
    )


def _decided(tally: Tally) -> list[str]:
    if not tally.success_by:
        return []
    by = {name: n for name, n in tally.success_by.items() if name not in ("nothing", RETURN)}
    judged = [f"{name} ({count:,})" for name, count in by.items()]
    num_scored = tally.counts["scored"]
    scored = f"; {counted(num_scored, 'step')} with a score" if num_scored else ""
    return [
        f"state: {tally.options.state}; group: {tally.options.group}; "
        f"reward: {tally.options.reward}; success by {', '.join(judged) or 'nothing'}{scored}"
    ]


def _unread(tally: Tally) -> Iterator[str]:
    """Yield what of the records became part of no step."""
    for name, coverage in tally.sums.coverage.items():
        fields = coverage.sentences()
        if fields:
            more = len(fields) - _SHOWN_FIELDS
            rest = f"; and {counted(more, 'field')} more, which --json names" * (more > 0)
            yield (
                f"{name}: texts of the records that are in no step: "
                f"{'; '.join(fields[:_SHOWN_FIELDS])}{rest}"
            )
        if guessed := coverage.guessed.most_common(_SHOWN_FIELDS):
            named = ", ".join(f"`{path}` ({number:,})" for path, number in guessed)
            yield (
                f"{name}: records have too many texts to look for each in the steps, so most "
                f"of those before in their field decided about texts of {named}"
            )


def _warnings(tally: Tally) -> list[str]:
    counts = tally.counts
    notes: list[str] = []
    if unused := [name for name in tally.beside if name not in tally.used]:
        more = f" and {len(unused) - _SHOWN_FIELDS:,} more" * (len(unused) > _SHOWN_FIELDS)
        notes.append(
            f"{NOT_USED}: {', '.join(unused[:_SHOWN_FIELDS])}{more} beside the log, which may "
            "have verdicts. The log or another file has them, or these name none of its "
            "rollouts, cannot be read or have more than 64 MiB; --verdicts FILE takes them"
        )
    if tally.num_equal:
        notes.append(
            f"{counted(tally.num_equal, 'rollout')} equal to one of another file: they count "
            "as attempts of their own. --drop-equal takes them for copies"
        )
    if counts["missed"]:
        notes.append(
            f"{tally.options.state} found nothing in {counted(counts['missed'], 'state')} of "
            f"{counts['steps']:,}: there the state is what the agent last saw"
        )
    if counts["empty"]:
        notes.append(
            f"{counted(counts['empty'], 'step')} with an empty action: the message has neither "
            "text nor a call that is known"
        )
    if counts["unjudged"]:
        numbers = ", ".join(list(tally.candidates)[:_SHOWN_CANDIDATES]) or "none"
        option = _option(tally)
        hint = f". {option} takes one that all of them have" if option else ""
        notes.append(
            f"{counted(counts['unjudged'], 'rollout')} without a verdict: incomplete in the "
            "store, without credit. --success names a field or a threshold, --reward a number, "
            f"--verdicts a file with them; numbers and flags of these records: "
            f"{numbers}{hint}"
        )
    if counts["reward_of_success"]:
        notes.append(
            f"{counted(counts['reward_of_success'], 'rollout')} without a reward in the "
            "log: it is 1 for success and 0 otherwise"
        )
    if counts["turn_rewards"] and tally.options.reward == "end":
        notes.append(
            f"{counted(counts['turn_rewards'], 'rollout')} with rewards of single turns, "
            "which were not used: --reward turns uses them"
        )
    if counts["unscored"] and tally.options.score != "auto":
        notes.append(
            f"{counted(counts['unscored'], 'rollout')} without a score at {tally.options.score}"
        )
    num_single = 0 if tally.is_begin else sum(size == 1 for size in tally.groups.values())
    if num_single and num_single == len(tally.groups):
        notes.append(f"every group has one rollout, so no estimator can compare: {_REMEDY}")
    elif 2 * num_single > len(tally.groups):
        notes.append(
            f"{num_single:,} of {len(tally.groups):,} groups have one rollout, which no "
            f"estimator can compare: if rollouts of one task are apart, {_REMEDY}"
        )
    return notes


def _option(tally: Tally) -> str | None:
    """Return an option that gives each record without a verdict one, which differ."""
    for option, values in tally.values.items():
        name = option.partition(" ")[2]
        is_there = tally.candidates[name] == tally.counts["unjudged"] and len(values) > 1
        if is_there and _NAME.fullmatch(name) and any(w in name.lower() for w in VERDICTS):
            return option
    return None
