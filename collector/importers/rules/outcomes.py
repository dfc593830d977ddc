"""The rules that the options of an import name: of states, success, groups and rewards."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from zlib import crc32

from graphcredit.collector.importers.logs.places import is_path_term, path_rule
from graphcredit.collector.importers.messages.rollout import (
    NO_WORDS,
    LoggedRollout,
    Turns,
    prompt_name,
)
from graphcredit.collector.importers.messages.values import (
    NESTED,
    RecordError,
    as_number,
    as_text,
    as_verdict,
    field_at,
    fields_of,
    short,
)
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.rules.scores import ScoreRule, score_rule
from graphcredit.collector.importers.rules.states import StateRule, state_rule
from graphcredit.collector.importers.rules.verdicts import Verdicts, verdicts_of, with_verdict
from graphcredit.store.errors import OptionError
from graphcredit.store.near_names import did_you_mean

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}

_THRESHOLD = re.compile(r"\s*([^<>=]+?)\s*(>=|<=|==|>|<)\s*(-?[\d.eE+-]+)\s*")
_TEXT = re.compile(r"\s*([^<>=]+?)\s*==\s*([^<>=]+?)\s*")
_WEIGHT = r"[\d.]+(?:[eE][+-]?\d+)?\s*\*"
_TERM = re.compile(
    rf"\s*(?P<signs>[+-]?\s*-?)\s*(?P<weight>{_WEIGHT})?\s*(?P<name>[^+*\s].*?)\s*"
    rf"(?=$|\+|\s-|-\s|-{_WEIGHT})"
)
"""A term of a sum. A minus inside a name, as in `exact-match`, has no space and no weight."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a rollout succeeded, and how that is known."""

    success: bool | None
    """None if neither the log nor the rule says so."""
    by: str
    """What decided, for the report."""
    judged_as: tuple[str, str] | None = None
    """The field of the ids in the file of verdicts, and its id there."""

    @property
    def is_known(self) -> bool:
        """Whether it is known how the rollout ended: who won, or its return."""
        return self.success is not None or self.by == RETURN


RETURN = "its return"
"""What decides where a reward is no win: rollouts are compared by it, and nobody won or lost."""

_NO_VERDICT = Verdict(success=None, by="nothing")

BY_PROMPT = "the prompt"
"""What makes a group where the log names none."""

_MOST_LABELS, _LABEL_CHARACTERS = 40, 100

SuccessRule = Callable[[LoggedRollout], Verdict]
GroupRule = Callable[[LoggedRollout], str]
RewardRule = Callable[[LoggedRollout, Turns], list[float]]
"""Returns the reward of each turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the options decide, ready for use."""

    options: ImportOptions
    state: StateRule
    verdicts: Verdicts | None
    success: SuccessRule
    group: GroupRule
    reward: RewardRule
    score: ScoreRule
    decided: frozenset[str]
    """Columns that an option decides, also where a log has them as the store does."""

    def judged(self, rollout: LoggedRollout) -> tuple[LoggedRollout, tuple[str, str] | None]:
        """Return a rollout with the verdict that a file has of it, and by which id.

        Files beside a log judge rollouts of which the log says nothing, no more than zero, or only
        what the agent claims.
        """
        if self.verdicts is not None:
            return self.verdicts.judged(rollout)
        if rollout.is_claim or (rollout.success is None and not rollout.reward):
            for path in rollout.place.verdicts:
                verdicts = verdicts_of(path)
                judged, by = verdicts.judged(rollout)
                if verdicts.alone is not None:
                    judged = with_verdict(rollout, verdicts.alone)
                    by = ("", "") if rollout.place.is_only else None
                if by is not None:
                    return judged, (path.name, by[1])
        return rollout, None

    def grouped_by(self, rollout: LoggedRollout, name: str) -> str:
        """Return the field of a record that names a group, or what else does."""
        option = self.options.group
        if option == "auto" and not (rollout.group or rollout.task):
            return rollout.place.task_by if is_by_path(rollout) else BY_PROMPT
        if option not in ("auto", "task"):
            return BY_PROMPT if option == "prompt" else option
        labels = labels_of(rollout.record).items()
        return next((field for field, value in labels if value == name), "the log's task")


def labels_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the short fields of a record, and of what it nests, that may name things."""
    parts = [("", record)]
    parts += [(f"{name}.", fields_of(record.get(name))) for name in (*NESTED, "config")]
    fields = ((before + name, value) for before, part in parts for name, value in part.items())
    return {
        name: _label(value)
        for name, value in islice(fields, _MOST_LABELS)
        if isinstance(value, int | str)
    }


def _label(value: int | str) -> str:
    """Return a value as text; of a long text the beginning, and a sum that tells it from others."""
    if not isinstance(value, str) or len(value) <= _LABEL_CHARACTERS:
        return str(value)
    return f"{value[:40]}…{crc32(value.encode(errors='replace')):08x}"


_DEFAULTS = ImportOptions()
_STATES, _ENDS = ("state", "next_state"), ("terminated", "truncated", "success")
_DECIDES: Mapping[str, tuple[str, ...]] = {
    "state": _STATES,
    "decimals": _STATES,
    "success": _ENDS,
    "verdicts": _ENDS,
    "reward": ("reward",),
    "score": ("score",),
}


def rules_of(options: ImportOptions) -> Rules:
    """Return the rules that the options name.

    Raises:
        OptionError: One is not a rule.
    """
    return Rules(
        options=options,
        state=state_rule(options.state, options.decimals),
        verdicts=None if options.verdicts is None else verdicts_of(options.verdicts),
        success=success_rule(options.success),
        group=group_rule(options.group),
        reward=reward_rule(options.reward),
        score=score_rule(options.score),
        decided=frozenset(
            column
            for option, columns in _DECIDES.items()
            if getattr(options, option) != getattr(_DEFAULTS, option)
            for column in columns
        ),
    )


def success_rule(text: str) -> SuccessRule:
    """Return the rule that `--success` names: auto, returns, a threshold, or a field.

    Raises:
        OptionError: It is a threshold without a number.
    """
    if text == "auto":
        return _auto_success
    if text == "returns":
        return _by_log_or_return
    if match := _THRESHOLD.fullmatch(text):
        name, sign, number = match.groups()
        threshold = _number(number, "success", text)
        return lambda rollout: _by_threshold(rollout, name, sign, threshold, text)
    if match := _TEXT.fullmatch(text):
        name, wanted = match.groups()
        return lambda rollout: _by_text(rollout, name, wanted, text)
    if re.search("[<>=]", text):
        raise OptionError(
            "import.success must be a field, a field with a threshold such as 'reward>=1', or one "
            f"with a text such as 'status==solved': got {text!r}"
        )
    return lambda rollout: _by_field(rollout, text)


def _number(text: str, option: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"import.{option} must have a number: got {whole!r}") from None


def _auto_success(rollout: LoggedRollout) -> Verdict:
    if rollout.success is None and rollout.reward in (1, 0, -1):
        return Verdict(success=rollout.reward == 1, by="a reward of 1")
    return _by_log_or_return(rollout)


def _by_log_or_return(rollout: LoggedRollout) -> Verdict:
    if rollout.success is not None:
        return Verdict(success=rollout.success, by="the log")
    return _NO_VERDICT if rollout.reward is None else Verdict(success=None, by=RETURN)


def _by_threshold(
    rollout: LoggedRollout, name: str, sign: str, threshold: float, by: str
) -> Verdict:
    value = _number_at(rollout, name)
    if value is None:
        return _NO_VERDICT
    return Verdict(success=_COMPARISONS[sign](value, threshold), by=by)


def _by_text(rollout: LoggedRollout, name: str, wanted: str, by: str) -> Verdict:
    value = as_text(field_at(rollout.record, name))
    return _NO_VERDICT if value is None else Verdict(success=value == wanted, by=by)


def _by_field(rollout: LoggedRollout, name: str) -> Verdict:
    value = field_at(rollout.record, name)
    if value is None:
        value = rollout.rewards.get(name)
    if value is None:
        return _NO_VERDICT
    if value in ("C", "I"):  # Inspect's letters
        return Verdict(success=value == "C", by=name)
    success = as_verdict(value)
    if success is None:
        raise RecordError(
            f"{name} must be true, false, 1 or 0 to be the success: got {short(value)}. A "
            f"threshold such as '{name}>=1' or a text such as '{name}==solved' tells more"
        )
    return Verdict(success=success, by=name)


def _number_at(rollout: LoggedRollout, name: str) -> float | None:
    """Return a number of a rollout: its reward, a named reward, or a field of its record."""
    if name == "reward":
        return rollout.reward
    if name in rollout.rewards:
        return rollout.rewards[name]
    return as_number(field_at(rollout.record, name), name)


def is_by_path(rollout: LoggedRollout) -> bool:
    """Return whether names of files make the groups: the record has neither task nor prompt."""
    has_place = rollout.place.task is not None
    return has_place and (rollout.is_steps or prompt_name(rollout.messages)[:2] == NO_WORDS)


def group_rule(text: str) -> GroupRule:
    """Return the rule that `--group` names: auto, or task, prompt, parts of the path, fields.

    Raises:
        OptionError: A part of the path is none.
    """
    if text == "auto":
        return lambda r: (
            r.group
            or r.task
            or ((r.place.task or "") if is_by_path(r) else prompt_name(r.messages))
        )
    rules = [_group_term(term, text) for term in group_terms(text)]
    return lambda r: "+".join([rule(r) for rule in rules])


def group_terms(text: str) -> list[str]:
    """Return the terms that `+` joins; one in the pattern of a path is a part of it."""
    terms: list[str] = []
    for part in text.split("+"):
        before = terms[-1] if terms else ""
        is_open = before.startswith("path:") and before.count("(") > before.count(")")
        if terms and (is_open or not part):
            terms[-1] += f"+{part}"
        else:
            terms.append(part.strip())
    return terms


def _group_term(term: str, text: str) -> GroupRule:
    if is_path_term(term):
        part = path_rule(term)
        return lambda r: _named(part(r.place.path), text, term)
    match term:
        case "task":
            return lambda r: _named(r.task, text, "the task")
        case "prompt":
            return lambda r: prompt_name(r.messages)
        case _:
            return lambda r: _named(as_text(field_at(r.record, term)), text, term, r.record)


def _named(value: str | None, option: str, what: str, fields: Iterable[str] = ()) -> str:
    if not value:
        raise RecordError(
            f"the record must name {what}, by which --group {option} groups: it does not. "
            "--group prompt groups by the messages before the first action."
            + did_you_mean(what, fields)
        )
    return value


def reward_rule(text: str) -> RewardRule:
    """Return the rule that `--reward` names: end, turns, or a sum of named rewards.

    Raises:
        OptionError: A weight is not a number.
    """
    if text == "end":
        return lambda rollout, turns: (
            _of_turns(rollout, turns) if rollout.is_steps else _at_end(rollout.reward, turns)
        )
    if text == "turns":
        return _of_turns
    terms = list(_terms(text))
    return lambda rollout, turns: _at_end(_total(rollout, terms), turns)


def _terms(text: str) -> Iterator[tuple[float, str]]:
    """Yield weights and names of a sum such as `correct + 0.5*format - 0.1*length`."""
    at = 0
    while at < len(text) or not text:
        match = _TERM.match(text, at)
        if match is None:
            raise OptionError(
                "import.reward must be end, turns, or a sum of named rewards such as "
                f"'correct+0.5*format-0.1*length': got {text!r}"
            )
        weight = _number((match["weight"] or "1*").rstrip("* "), "reward", text)
        yield weight * (-1) ** match["signs"].count("-"), match["name"]
        at = match.end()


def _total(rollout: LoggedRollout, terms: list[tuple[float, str]]) -> float:
    total = 0.0
    for weight, name in terms:
        value = _number_at(rollout, name)
        if value is None:
            known = ", ".join(rollout.rewards) or "none"
            hint = did_you_mean(name, rollout.rewards)
            if "-" in name:
                hint = " A minus needs a space beside it, or a weight"
            raise RecordError(
                f"the record must have a reward {name!r}; its rewards: {known}{hint and '.' + hint}"
            )
        total += weight * value
    return total


def _at_end(total: float | None, turns: Turns) -> list[float]:
    return [0.0] * (len(turns.turns) - 1) + [total or 0.0]


def _of_turns(rollout: LoggedRollout, turns: Turns) -> list[float]:
    rewards = [turn.message.reward for turn in turns.turns]
    if all(reward is None for reward in rewards):
        raise RecordError(
            "the record must have a reward for each turn, for --reward turns: it has none. "
            "--reward end takes the reward of the whole"
        )
    return [reward or 0.0 for reward in rewards]
