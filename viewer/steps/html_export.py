"""Export a trajectory as one HTML file that needs no server, script or network."""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa

from graphcredit.store.log_text import in_html, named, one_line, visible
from graphcredit.store.plural import counted
from graphcredit.viewer.chat.transcript import ShownMessage, transcript
from graphcredit.viewer.steps import facts
from graphcredit.viewer.steps.why_of_task import Why

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
pre { unicode-bidi: plaintext; white-space: pre-wrap; overflow-wrap: anywhere;
      margin: .3rem 0; padding: .5rem .7rem;
      border-radius: .3rem; background: #7f879220; max-height: 24rem; overflow: auto }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; overflow-wrap: anywhere }
h3 { font-size: .8rem; margin: .6rem 0 0; opacity: .8; font-weight: 500 }
nav.course { display: flex; height: 120px; gap: 1px; margin: 1rem 0 }
nav.course a { position: relative; flex: 1; background: #7f879214; text-decoration: none }
nav.course a:hover { background: #7f879240 }
nav.course i { position: absolute; left: 12%; right: 12%;
  top: calc(50% - max(0, var(--v)) * .5%); height: calc(max(var(--v), 0 - var(--v)) * .5%) }
table { border-collapse: collapse; font-size: .85rem }
td { padding: .05rem .5rem; font-variant-numeric: tabular-nums }
td:nth-child(2) { width: 18rem; position: relative; padding: 0; border: solid #7f879240;
  border-width: 0 1px; background: linear-gradient(#7f8792 0 0) 50% / 1px 100% no-repeat }
td:nth-child(2) i { position: absolute; top: 15%; bottom: 15%;
  left: calc(50% + min(0, var(--v)) * .5%); width: calc(max(var(--v), 0 - var(--v)) * .5%) }
td:nth-child(n+4) { opacity: .8 }
i { background: #1b5ea8 }
i.n { background: #c04f15 }
@media (prefers-color-scheme: dark) { i { background: #7db4ea } i.n { background: #e58a55 } }
"""

_LONGEST_HEADING = 400
"""Most characters of an action in a heading."""


def trajectory_page(
    table: pa.Table,
    *,
    title: str,
    estimator: str | None = None,
    above: str = "",
    is_brief: bool = False,
    why: Why | None = None,
) -> str:
    """Return the page.

    Args:
        table: The steps of one trajectory with their credit, from `queries.trajectory.steps`.
        title: Text before the names of task and trajectory.
        estimator: Estimator of the overview's advantages; the first one by default.
        above: HTML before the heading.
        is_brief: Draw bars for that estimator only, and give the numbers of the others in a line:
            a third of the size.
        why: The words for the steps; the numbers then stand behind a click.
    """
    names = facts.estimators(table)
    shown = estimator or (names[0] if names else None)
    names.sort(key=lambda name: name != shown)
    ids = (named(table[name][0].as_py()) for name in ("task_id", "trajectory_id"))
    heading = ", ".join([title, *ids])
    rewards = facts.total(table)
    summary = (
        f"The rollout {facts.ending(table)} after {counted(table.num_rows, 'step')} "
        f"with return {rewards}. "
        "Steps have reward 0 and cost 1 unless they say otherwise."
    )
    steps = _steps(table, names, 1 if is_brief else len(names), why)
    body = "\n".join(filter(None, steps))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{in_html(heading)}</title><style>{_STYLE}</style></head><body>
{above}
<h1>{in_html(heading)}</h1>
<p>{summary}</p>
{_overview(table, shown) if shown else "<p>No credit was assigned to it.</p>"}
{body}
</body></html>
"""


def _overview(table: pa.Table, estimator: str) -> str:
    limit = facts.largest(table, [estimator]) or 1.0
    bars = "".join(
        f'<a href="#step-{index}" title="{in_html(one_line(f"{index}: {action}"))}">'
        f"{_bar(value or 0.0, limit)}</a>"
        for index, action, value in zip(
            table["step_index"].to_pylist(),
            table["action"].to_pylist(),
            table[f"{estimator}_advantage"].to_pylist(),
            strict=True,
        )
    )
    return (
        f"<p>Advantage of each step by {in_html(estimator)}, from {-limit:.3g} to {limit:.3g}:</p>"
        f'<nav class="course">{bars}</nav>'
    )


def _steps(table: pa.Table, names: list[str], num_drawn: int, why: Why | None) -> Iterator[str]:
    """Yield the steps; the first estimators get bars, the others a line."""
    limit = facts.largest(table, names) or 1.0
    told = _Told(table)
    # Times may be beyond Python's dates.
    for index, row in enumerate(table.drop_columns(["logged_at"]).to_pylist()):
        said = facts.shown_values(row)
        if not row["is_action_valid"]:
            said.append("refused by the environment")
        is_usual = said == ["reward 0", "cost 1"]
        words = ", ".join(said)
        earned = f"<p>{in_html(words[0].upper() + words[1:])}.</p>"
        yield (
            f'<section id="step-{row["step_index"]}"><h2>Step {row["step_index"]}: '
            f"{in_html(one_line(row['action'], _LONGEST_HEADING))}</h2>{'' if is_usual else earned}"
        )
        words = None if why is None else why.sentences.get(row["step_index"])
        if words is not None and why is not None:
            formula = f"<p>{in_html(why.formula)}</p>" if why.formula else ""
            yield f"<p>{in_html(words)}</p><details><summary>Numbers</summary>{formula}"
        if bars := facts.bars(table, index, names[:num_drawn]):
            yield f"<table>{''.join(_rows(bars, limit))}</table>"
        if bars := facts.bars(table, index, names[num_drawn:]):
            yield f"<p>{'; '.join(_words(bars))}</p>"
        if words is not None:
            yield "</details>"
        for message in told.before[index]:
            yield from _parts(message)
        yield from _parts(told.own[index], row["action"])
        yield "</section>"
    for message in told.after:
        yield from _parts(message)


class _Told:
    """The messages of a trajectory: before each step, of each step, after the last one."""

    def __init__(self, table: pa.Table) -> None:
        self.before: defaultdict[int, list[ShownMessage]] = defaultdict(list)
        self.own: dict[int, ShownMessage] = {}
        self.after: list[ShownMessage] = []
        for message in transcript(table):
            if message.is_step:
                self.own[message.step] = message
            elif message.step in self.own:
                self.after.append(message)
            else:
                self.before[message.step].append(message)


def _parts(message: ShownMessage, action: str | None = None) -> Iterator[str]:
    """Yield the parts of a message; an action that is whole in the heading is left out."""
    for part in message.parts:
        if part.text != action or one_line(action, _LONGEST_HEADING) != action:
            title = f"{part.title or message.speaker}{', an error' if message.is_error else ''}"
            text = in_html(visible(part.text))
            yield f"<h3>{in_html(title)}</h3><pre>{text}</pre>" if text else ""


def _rows(bars: list[facts.Bar], limit: float) -> Iterator[str]:
    """Yield a row for each advantage, with its parts beside it."""
    for total, parts in facts.with_parts(bars):
        beside = "".join(f"<td>{in_html(part.part)} {part.value:+.3f}</td>" for part in parts)
        yield (
            f"<tr><td>{in_html(total.name)}</td><td>{_bar(total.value, limit)}</td>"
            f"<td>{total.value:+.3f}</td>{beside}</tr>"
        )


def _words(bars: list[facts.Bar]) -> Iterator[str]:
    """Yield each advantage, with its parts in parentheses."""
    for total, parts in facts.with_parts(bars):
        inside = ", ".join(f"{in_html(part.part)} {part.value:+.3f}" for part in parts)
        yield f"{in_html(total.name)} {total.value:+.3f}" + (f" ({inside})" if inside else "")


def _bar(value: float, limit: float) -> str:
    """Return a bar around zero; its style knows the value in percents of the limit."""
    kind = ' class="n"' if value < 0 else ""
    return f'<i{kind} style="--v:{100 * max(-1.0, min(1.0, value / limit)):.0f}"></i>'
