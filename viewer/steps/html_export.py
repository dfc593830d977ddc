"""Export a trajectory as one HTML file that needs no server, script or network."""

from collections.abc import Iterator
from html import escape

import pyarrow as pa

from graphcredit.store.plural import counted
from graphcredit.viewer.steps import facts
from graphcredit.viewer.widgets.colours import diverging
from graphcredit.viewer.widgets.text import one_line, visible

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; padding: .5rem .7rem;
      border-radius: .3rem; background: #7f879220; max-height: 24rem; overflow: auto }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; overflow-wrap: anywhere }
h3 { font-size: .8rem; margin: .6rem 0 0; opacity: .8; font-weight: 500 }
nav { display: flex; height: 120px; gap: 1px; margin: 1rem 0 }
nav a { position: relative; flex: 1; background: #7f879214; text-decoration: none }
nav a:hover { background: #7f879240 }
nav i { position: absolute; left: 12%; right: 12% }
table { border-collapse: collapse; font-size: .85rem }
td { padding: .05rem .5rem; font-variant-numeric: tabular-nums }
td.bar { width: 18rem; position: relative; padding: 0; border: solid #7f879240; border-width: 0 1px;
         background: linear-gradient(#7f8792 0 0) 50% / 1px 100% no-repeat }
td.bar i { position: absolute; top: 15%; bottom: 15% }
tr.part td:not(.bar) { opacity: .8 }
tr.part td.bar i { top: 32%; bottom: 32% }
"""


def trajectory_page(table: pa.Table, *, title: str, estimator: str | None = None) -> str:
    """Return the page.

    Args:
        table: The steps of one trajectory with their credit, from `queries.trajectory.steps`.
        title: Text before the names of task and trajectory.
        estimator: Estimator of the overview's advantages; the first one by default.
    """
    names = facts.estimators(table)
    shown = estimator or (names[0] if names else None)
    names.sort(key=lambda name: name != shown)
    heading = f"{title}, {table['task_id'][0].as_py()}, {table['trajectory_id'][0].as_py()}"
    ending = facts.outcome(table["success"][-1].as_py())
    rewards = facts.total(table)
    summary = (
        f"The trajectory {ending} after {counted(table.num_rows, 'step')} with return {rewards}."
    )
    body = "\n".join(_steps(table, names))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{_text(one_line(heading))}</title><style>{_STYLE}</style></head><body>
<h1>{_text(one_line(heading, 400))}</h1>
<p>{summary}</p>
{_overview(table, shown) if shown else "<p>No credit was assigned to it.</p>"}
{body}
</body></html>
"""


def _overview(table: pa.Table, estimator: str) -> str:
    limit = facts.largest(table, [estimator]) or 1.0
    bars = "".join(
        f'<a href="#step-{index}" title="{_text(one_line(f"step {index}: {action}"))}">'
        f"{_upright(value or 0.0, limit)}</a>"
        for index, action, value in zip(
            table["step_index"].to_pylist(),
            table["action"].to_pylist(),
            table[f"{estimator}_advantage"].to_pylist(),
            strict=True,
        )
    )
    return (
        f"<p>Advantage of each step by {_text(estimator)}, from {-limit:.3g} to {limit:.3g}:</p>"
        f"<nav>{bars}</nav>"
    )


def _steps(table: pa.Table, names: list[str]) -> Iterator[str]:
    limit, number = facts.largest(table, names) or 1.0, facts.number
    for index, row in enumerate(table.to_pylist()):
        refused = "" if row["is_action_valid"] else ", refused by the environment"
        yield (
            f'<section id="step-{row["step_index"]}"><h2>Step {row["step_index"]}: '
            f"{_text(one_line(row['action'], 400))}</h2>"
            f"<p>Reward {number(row['reward'])}, cost {number(row['cost'])}{refused}.</p>"
        )
        if bars := facts.bars(table, index, names):
            yield "<table>" + "".join(_row(bar, limit) for bar in bars) + "</table>"
        yield _block("Thought", row["thought"])
        yield _block("Observation", row["observation"] or row["state"])
        yield "</section>"
    yield _block("Last state", table["next_state"][-1].as_py())


def _block(title: str, text: str | None) -> str:
    return f"<h3>{title}</h3><pre>{_text(visible(text))}</pre>" if text else ""


def _row(bar: facts.Bar, limit: float) -> str:
    width = 50 * min(abs(bar.value) / limit, 1.0)
    left = 50 - width if bar.value < 0 else 50
    style = f"left:{left:.2f}%;width:{width:.2f}%;background:{diverging(bar.value, limit)}"
    kind = "" if bar.is_total else ' class="part"'
    return (
        f'<tr{kind}><td>{_text(bar.name)}</td><td class="bar"><i style="{style}"></i></td>'
        f"<td>{bar.value:+.3f}</td></tr>"
    )


def _upright(value: float, limit: float) -> str:
    height = 50 * min(abs(value) / limit, 1.0)
    top = 50 - height if value > 0 else 50
    return (
        f'<i style="top:{top:.2f}%;height:{height:.2f}%;background:{diverging(value, limit)}"></i>'
    )


def _text(text: str) -> str:
    return escape(visible(text))
