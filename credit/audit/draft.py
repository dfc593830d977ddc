"""The first draft of `states.toml`: what a merge did in a store, as rules to take or to leave.

Every rule is a comment, so the draft changes nothing until someone edits it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from graphcredit.credit.audit.states import StatesOfTask, states_of_task
from graphcredit.credit.audit.suggest import Suggestion, TextDifference, differences
from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.sql.catalog import connect
from graphcredit.store.state_rules.file import Verb

MOST_TASKS = 50
"""Tasks that are looked at, unless one is named."""
_MOST_TEXTS = 20
"""Texts of a state that are compared with its most frequent one."""
_MOST_RULES = 60
"""Rules of each kind: a file for people is short."""
_FEW = 3
"""Differences of a pair of states that is nearly one."""
_NEAR = 10
"""Pairs of each task."""
_SHOWN = 100
"""Characters of an example."""

_HEAD = """\
# Which texts are one state: your word against what `graphcredit credit` finds by itself.
# docs/merging.md explains this file; `graphcredit check` tells whether it is right.
#
# This is a draft, and changes nothing yet. A rule holds once its # is taken away at the start of
# its lines. Delete what you do not want, and write rules of your own:
#
#   [[ignore]]  it says nothing of the state   [[keep]]  it always does: no merge may unite it
#   field = "status.time"                      a field of JSON
#   text = "An ad: {any}"                      a piece of a line
#   values = "battery at {number} percent"     the values in such a piece
#   words = ["cellar", "basement"]             ways to say one thing
#   tasks = "kitchen-*"                        only in these tasks
#
# {number}, {time}, {date}, {id} and {word} are one token, {any} is anything within a line.
"""


@dataclass(kw_only=True, slots=True)
class _Seen:
    """Where a difference was found."""

    places: set[tuple[str, tuple[int, ...]]] = field(
        default_factory=set[tuple[str, tuple[int, ...]]]
    )
    """The task, and the state or the two states."""
    times: int = 0
    """In so many texts, or pairs."""
    example: tuple[str, tuple[int, ...], TextDifference] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A draft, and what is in it."""

    text: str
    """All of the file."""
    num_tasks: int
    """Tasks that were looked at."""
    num_tasks_in_all: int
    num_noise: int
    """Rules of what was taken for noise."""
    num_near: int
    """Rules of what keeps apart states that are nearly alike."""
    num_unsaid: int
    """Differences that no simple rule means."""


def draft_rules(store: Store, *, run_id: str, iteration: int, task_id: str | None = None) -> Draft:
    """Return a draft of `states.toml` from what became one state in an iteration.

    Args:
        store: A store with credit.
        run_id: The run.
        iteration: The iteration.
        task_id: Only this task; by default the first `MOST_TASKS` in order.

    Raises:
        InputError: There is no credit.
    """
    tasks = [task_id] if task_id else _tasks(store, run_id, iteration)
    noise, near = defaultdict[Suggestion, _Seen](_Seen), defaultdict[Suggestion, _Seen](_Seen)
    num_unsaid = 0
    for task in tasks[:MOST_TASKS]:
        of_task = states_of_task(store, task, run_id=run_id, iteration=iteration, num_near=_NEAR)
        num_unsaid += _note(noise, task, _within(of_task)) + _note(near, task, _between(of_task))
    # What is noise in one place is no reason to keep states apart in another.
    for suggestion in noise:
        near.pop(suggestion, None)
    heading = f"\n# Run {run_id}, iteration {iteration}"
    looked = counted(min(len(tasks), MOST_TASKS), "task")
    heading += f": {looked} of {len(tasks):,} looked at.\n"
    text = _HEAD + heading
    text += _section(
        "What was taken for noise. A rule says that it is none.", "keep", noise, "text"
    )
    text += _section(
        f"What keeps states apart that differ in {_FEW} places or less. Rules for all of them make "
        "one.",
        "ignore",
        near,
        "pair",
    )
    return Draft(
        text=text,
        num_tasks=min(len(tasks), MOST_TASKS),
        num_tasks_in_all=len(tasks),
        num_noise=min(len(noise), _MOST_RULES),
        num_near=min(len(near), _MOST_RULES),
        num_unsaid=num_unsaid,
    )


def write_draft(store: Store, draft: Draft, *, may_replace: bool) -> None:
    """Write a draft into a store, whole or not at all.

    Raises:
        InputError: The store has rules, and they may not be replaced.
    """
    path = store.state_rules_path
    if path.exists() and not may_replace:
        raise InputError(
            f"a draft must not take the place of rules: {path} exists. Move it away, or replace "
            "it with --replace"
        )
    with atomic_path(path) as temporary:
        temporary.write_text(draft.text, encoding="utf-8")


def _tasks(store: Store, run_id: str, iteration: int) -> list[str]:
    def read() -> list[str]:
        with connect(store, run_id=run_id, iteration=iteration) as connection:
            sql = "SELECT DISTINCT task_id FROM nodes ORDER BY task_id"
            return [task for (task,) in connection.execute(sql).fetchall()]

    tasks = unchanged(store, read, run_id=run_id, iteration=iteration)
    if not tasks:
        raise InputError(
            f"rules are drafted from credit: run {run_id}, iteration {iteration} of {store.root} "
            "has none. `graphcredit credit STORE --merge segments` assigns it"
        )
    return tasks


_Difference = tuple[tuple[int, ...], Iterable[TextDifference]]


def _within(of_task: StatesOfTask) -> Iterator[_Difference]:
    for state in of_task.merged:
        first, *others = state.texts
        for other in others[:_MOST_TEXTS]:
            yield (state.state_id,), differences(first.text, other.text)


def _between(of_task: StatesOfTask) -> Iterator[_Difference]:
    text = {state.state_id: state.texts[0].text for state in of_task.states}
    for pair in of_task.near:
        pieces = list(differences(text[pair.first], text[pair.second]))
        if not pair.has_other_actions and len(pieces) <= _FEW:
            yield (pair.first, pair.second), pieces


def _note(seen: dict[Suggestion, _Seen], task: str, compared: Iterable[_Difference]) -> int:
    """Count differences by the rule that means them; return how many no rule means."""
    num_unsaid = 0
    for states, pieces in compared:
        for piece in pieces:
            if piece.suggestion is None:
                num_unsaid += 1
                continue
            sightings = seen[piece.suggestion]
            sightings.places.add((task, states))
            sightings.times += 1
            sightings.example = sightings.example or (task, states, piece)
    return num_unsaid


def _section(title: str, verb: Verb, seen: dict[Suggestion, _Seen], what: str) -> str:
    ranked = sorted(seen.items(), key=lambda item: (-len(item[1].places), str(item[0])))
    lines = [f"\n# {title}\n" if ranked else f"\n# {title} There is nothing of the kind.\n"]
    for suggestion, sightings in islice(ranked, _MOST_RULES):
        assert sightings.example
        task, states, piece = sightings.example
        where = f"state {states[0]}" if len(states) == 1 else f"states {states[0]} and {states[1]}"
        places = counted(len(sightings.places), "state") if what == "text" else ""
        times = counted(sightings.times, what)
        lines += [
            f"\n# {times}{f' of {places}' if places else ''}; {where} of task {_short(task)}:",
            f"\n#   {_short(piece.first)} / {_short(piece.second)}",
            f"\n#[[{verb}]]",
            f"\n#{suggestion.means} = {_toml(suggestion.value)}\n",
        ]
    if len(ranked) > _MOST_RULES:
        lines.append(f"\n# And {len(ranked) - _MOST_RULES:,} more, each in fewer states.\n")
    return "".join(lines)


def _short(text: str) -> str:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return _toml(shown)


def _toml(value: str | tuple[str, ...]) -> str:
    """Return a value as TOML; the escapes of JSON are also TOML's."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
