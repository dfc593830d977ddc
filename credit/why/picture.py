"""One decision as an SVG file: the winners' way, and the losers who leave it at one step.

Every rollout that was in the state is a strip of the band, blue if it won. All text is escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Any

from graphcredit.credit.why.decisions import ComparedDecision
from graphcredit.credit.why.finding_words import pooled_counts
from graphcredit.credit.why.report import WhyReport, why_in
from graphcredit.credit.why.sentences import doubt, told_apart
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.log_text import in_html, named, one_line
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect, with_views

_BLUE, _ORANGE, _INK, _PALE = "#1f66b0", "#c04f15", "#212529", "#5c636a"
_WIDTH, _HEIGHT, _MIDDLE = 1120, 498, 215
_LEFT, _FORK, _END = 40, 400, 930
_UP, _DOWN = 130, 345
_BAND, _MOST_OF_ONE = 84, 14
"""Pixels of the whole band, and the most of one rollout."""
_WORDS = 60
"""Most characters of what was done."""
_LINE = 140
"""Most characters of a line below."""
_STEPS = 4
"""Most steps of the way that are named."""

_WAYS = """
    SELECT trajectory_id, step_index, action, state = $4 AS is_there, outcome FROM (
        SELECT steps.trajectory_id, step_index, action, state,
            if($5, trajectories."return", trajectories.success::INTEGER) AS outcome
        FROM steps JOIN trajectories USING (run_id, iteration, task_id, trajectory_id)
        WHERE is_complete AND run_id = $1 AND iteration = $2 AND task_id = $3
    ) ORDER BY outcome DESC, trajectory_id, step_index
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The rollouts of one side of a decision."""

    words: str
    """What they did."""
    number: int
    mean: float
    y: int
    """Where its strips end."""
    is_better: bool

    def strips(self, *, is_graded: bool) -> list[str]:
        """Return the colour of each rollout, those that won first."""
        if is_graded:
            return [_BLUE if self.is_better else _ORANGE] * self.number
        won = round(self.number * self.mean)
        return [_BLUE] * won + [_ORANGE] * (self.number - won)

    def ended(self, *, is_graded: bool) -> str:
        """Return how they ended, in words."""
        if is_graded:
            return f"earned {self.mean:.3g}"
        return f"{round(self.number * self.mean)} of {self.number} won"


def why_picture(
    store: AnyStore,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    report: WhyReport | None = None,
) -> str:
    """Return the SVG of the first single decision of a report, which is the surest.

    Args:
        store: A store with credit by `reach`, or its path.
        run_id: Only this run.
        iteration: Only this iteration.
        report: What `why_in` returned, if it was asked before.

    Raises:
        InputError: No decision can be compared.
        SchemaError: A file cannot be read.
    """
    opened = open_store(store)
    told = report or with_views(opened, partial(why_in, most=1), run_id=run_id, iteration=iteration)
    if not told.ranked.decisions:
        raise InputError(
            f"{opened.root} must have a decision to draw: none can be compared; `graphcredit why` "
            "says why"
        )
    decision = told.ranked.decisions[0]
    below = [f"Difference{doubt(decision)}; ± two standard errors"]
    if decision.choice is not None:
        pooled = pooled_counts(told.pooled[decision.choice]).replace("`", "")
        below = [*wrap(pooled, _LINE), *below]
    return _drawn(opened, decision, below)


def _drawn(store: Store, decision: ComparedDecision, below: list[str]) -> str:
    """Return the SVG of a decision that others can be compared with, with lines below."""
    assert decision.others is not None, "there are others"
    others, is_loss = decision.others, decision.took < decision.others
    took = _Side(
        words=told_apart(decision.action, decision.instead, _WORDS),
        number=decision.num_took,
        mean=decision.took,
        y=_DOWN if is_loss else _UP,
        is_better=not is_loss,
    )
    rest = _Side(
        words=told_apart(decision.instead or "", decision.action, _WORDS),
        number=decision.num_others,
        mean=others,
        y=_UP if is_loss else _DOWN,
        is_better=is_loss,
    )
    before, after = _ways(store, decision)
    up, down = (rest, took) if is_loss else (took, rest)
    height = _HEIGHT + 18 * len(below)
    is_sure = decision.choice is not None or not decision.is_chance
    title = f"where losers left winners{'' if is_sure else ', which may be chance'}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="DejaVu Sans, Verdana, sans-serif">',
        f"<title>{in_html(named(decision.task_id))}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 36, f"{one_line(decision.task_id)}: {title}", 20, weight="bold"),
        *_strips(up, down, is_graded=decision.is_graded),
        *_labels(decision, up, down, is_loss=is_loss),
        *_listed(f"before, {one_line(decision.trajectory_id)}:", before, _LEFT, _MIDDLE + 80),
        *_listed("and then, the best of them:", after, _FORK + 150, _UP + 52),
        *(_text(_LEFT, _HEIGHT + 18 * at, line, 12, _PALE) for at, line in enumerate(below)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ways(store: Store, decision: ComparedDecision) -> tuple[list[str], list[str]]:
    """Return the last actions before the step, and those of the best other one after the state."""
    place = decision.run_id, decision.iteration, decision.task_id

    def read() -> list[Any]:
        run_id, iteration, _ = place
        asked = [*place, decision.state, decision.is_graded]
        with connect(store, run_id=run_id, iteration=iteration, sql=_WAYS) as connection:
            return connection.execute(_WAYS, asked).fetchall()

    rows = unchanged(store, read, run_id=decision.run_id, iteration=decision.iteration)
    before = [
        action
        for name, index, action, _, _ in rows
        if name == decision.trajectory_id and index < decision.step_index
    ]
    did = {name for name, _, action, there, _ in rows if there and action == decision.action}
    is_loss = decision.took < (decision.others or 0)
    best = next((name for name, _, _, there, _ in rows if there and (name in did) != is_loss), None)
    start = next((i for name, i, _, there, _ in rows if there and name == best), 0)
    after = [action for name, index, action, _, _ in rows if name == best and index > start]
    return before[-_STEPS:], after[:_STEPS]


def _strips(up: _Side, down: _Side, *, is_graded: bool) -> Iterator[str]:
    """Yield the strips: together up to the fork, then each side by itself."""
    size = min(_BAND / (up.number + down.number), _MOST_OF_ONE)
    at = _MIDDLE - size * (up.number + down.number) / 2
    for side in (up, down):
        to = side.y - size * side.number / 2
        for colour in side.strips(is_graded=is_graded):
            y, end = at + size / 2, to + size / 2
            yield (
                f'<path d="M{_LEFT} {y:.1f} H{_FORK} C{_FORK + 80} {y:.1f} {_FORK + 70} {end:.1f} '
                f'{_FORK + 150} {end:.1f} H{_END}" fill="none" stroke="{colour}" '
                f'stroke-width="{size * 0.86:.2f}"/>'
            )
            at, to = at + size, to + size


def _labels(decision: ComparedDecision, up: _Side, down: _Side, *, is_loss: bool) -> Iterator[str]:
    number = up.number + down.number
    yield _text(_LEFT, _MIDDLE - 82, f"{number} rollouts were in this state:", 13, _PALE)
    yield _text(_LEFT, _MIDDLE - 62, one_line(decision.state, 48), 13, mono=True)
    for side, colour in ((up, _BLUE), (down, _ORANGE)):
        ended = side.ended(is_graded=decision.is_graded)
        yield _text(_END + 16, side.y + 7, ended, 20, colour, weight="bold")
    is_most = " something else, most often" if is_loss else ""
    yield _text(_FORK + 150, _UP - 62, f"{up.number} did{is_most}", 13, _PALE)
    yield _text(_FORK + 150, _UP - 42, one_line(up.words, _WORDS), 15, mono=True)
    is_most = "" if is_loss else " something else, most often"
    top = _DOWN + 62
    yield _text(_FORK, top, f"{down.number} did{is_most}", 15, _PALE)
    for line, words in enumerate(wrap(down.words[:200], 44, max_lines=2, placeholder=" …")):
        yield _text(
            _FORK, top + 34 + 32 * line, one_line(words), 24, _ORANGE, weight="bold", mono=True
        )


def _listed(title: str, actions: list[str], x: int, y: int) -> Iterator[str]:
    """Yield actions, one under the other."""
    if actions:
        yield _text(x, y, title, 12, _PALE)
    for number, action in enumerate(actions, start=1):
        yield _text(x, y + 18 * number, one_line(action, 46), 12, mono=True)


def _text(
    x: float,
    y: float,
    words: str,
    size: int,
    colour: str = _INK,
    *,
    weight: str = "normal",
    mono: bool = False,
) -> str:
    family = ' font-family="DejaVu Sans Mono, Menlo, monospace"' if mono else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" '
        f'fill="{colour}"{family}>{in_html(words)}</text>'
    )
