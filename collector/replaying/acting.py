"""Find out who acted in a log, and make the policy that plays on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.options import LanguageOptions, ReplayOptions
from graphcredit.collector.policies.base import Policy
from graphcredit.collector.policies.registry import POLICIES, parse_policy
from graphcredit.store.errors import OptionError

_OF_ACTING = (
    *("policy", "template", "temperature", "max_new_tokens"),
    *("engine", "weights", "tokenizer", "dtype", "max_steps"),
)
"""Settings of a trajectory that decide how its policy acts, and for how long."""

_SAMPLING = ("temperature", "max_new_tokens", "dtype")
"""Options of a language model that are taken from the log where they are not given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Player:
    """Who plays on, and for how long."""

    policy: Policy
    max_steps: int
    """Steps after which an episode is truncated, those before the decision included."""
    is_acting: bool | None
    """Whether it is the policy that acted; None if the log does not say who did."""
    differences: tuple[str, ...] = ()
    """What is different from the policy that acted, in words."""


def find_player(
    marks: Iterable[Mapping[str, Any]], environments: Iterable[str], options: ReplayOptions
) -> Player:
    """Return who plays on."""
    acted = _acted(marks)
    policy = _policy(acted, sorted(set(environments)), options)
    differences = _differences(acted, policy)
    return Player(
        policy=policy,
        max_steps=_max_steps(acted, options),
        is_acting=None if "policy" not in acted else not differences,
        differences=differences,
    )


def _acted(marks: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the settings that decide how the policy acted; there must be one set of them."""
    found: list[dict[str, Any]] = []
    for mark in marks:
        own = {name: mark[name] for name in _OF_ACTING if mark.get(name) is not None}
        if own not in found:
            found.append(own)
    if len(found) > 1:
        raise OptionError(
            "the trajectories of a replay must be played by one policy with one limit of steps: "
            f"the log has {' and '.join(map(str, found[:3]))}. Choose tasks of one with --task"
        )
    return found[0] if found else {}


def _policy(
    acted: Mapping[str, Any], environments: Sequence[str], options: ReplayOptions
) -> Policy:
    sampling = {name: acted[name] for name in _SAMPLING if name in acted}
    given = {name: getattr(options, name) for name in _SAMPLING}
    sampling |= {name: value for name, value in given.items() if value is not None}
    template = options.template or (environments[0] if len(environments) == 1 else None)
    language = LanguageOptions(template=template, **sampling)
    return parse_policy(options.policy or _named(acted), language)


def _named(acted: Mapping[str, Any]) -> str:
    """Return the policy that the log names."""
    name = acted.get("policy")
    if name is None:
        raise OptionError(
            "a replay needs a policy that plays on, and this log does not say who acted "
            "(`graphcredit collect` records it in `extra` of first steps). Name one with --policy: "
            "the values are that policy's then"
        )
    kind = str(name).partition(":")[0]
    if kind == "tutor":
        return "random"  # it takes the same actions
    if "template" in acted or kind not in POLICIES:
        raise OptionError(
            f"the policy that acted, {name}, is a language model, of which the log has only a "
            "digest: name it with --policy hf:PATH"
        )
    return str(name)


def _differences(acted: Mapping[str, Any], policy: Policy) -> tuple[str, ...]:
    """Return how a policy differs from the one that acted; settings that are not recorded agree."""
    if "policy" not in acted:
        return ()
    is_tutor = str(acted["policy"]).startswith("tutor:")
    if is_tutor and policy.name == "random":
        return ()
    known = {"policy": policy.name, **policy.settings}
    return tuple(
        f"{name} {known[name]!r} instead of {acted[name]!r}"
        for name in known
        if name in acted and known[name] != acted[name]
    )


def _max_steps(acted: Mapping[str, Any], options: ReplayOptions) -> int:
    logged = acted.get("max_steps")
    if logged is None and options.max_steps is None:
        raise OptionError(
            "a replay needs the limit of steps of the episodes, and this log does not say it "
            "(`graphcredit collect` records it). Name it with --max-steps"
        )
    if logged is not None and options.max_steps not in (None, logged):
        raise OptionError(
            f"max_steps must be that of the episodes, {logged}: got {options.max_steps}. Leave it "
            "out"
        )
    return int(logged if logged is not None else options.max_steps or 0)
