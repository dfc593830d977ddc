"""Draw the figure of each page of docs/research from the kept results.

python -m experiments.figures docs/research
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

import polars as pl

from experiments.credit_quality.report import averages as quality
from experiments.credit_truth.averages import CREDIT, averages
from experiments.credit_truth.believe_report import reliability
from experiments.credit_truth.report import CHIEF
from experiments.credit_truth.states.report import orders
from experiments.markdown import number
from experiments.means import Mean, mean
from experiments.report import RESULTS
from experiments.textworld.report import ends_of

Bars = Sequence[tuple[str, Mean]]

_ROW, _LEFT, _WIDTH, _RIGHT, _TOP = 22, 250, 380, 60, 34


def bars(title: str, rows: Bars) -> str:
    """Return a picture of means and their intervals, as SVG.

    Args:
        title: What the numbers are.
        rows: Labels and means, from top to bottom.
    """
    ends = [0.0, *(end for _, each in rows for end in (each.low, each.high))]
    least, scale = min(ends), _WIDTH / (max(ends) - min(ends))

    def x(value: float) -> str:
        return f"{_LEFT + (value - least) * scale:.1f}"

    parts = [f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>']
    for place, (label, each) in enumerate(rows):
        top = _TOP + place * _ROW
        middle = top + _ROW // 2 - 3
        begin, end = sorted((0.0, each.value))
        size = f'width="{(end - begin) * scale:.1f}" height="{_ROW - 6}"'
        parts += [
            f'<text x="{_LEFT - 8}" y="{middle + 5}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{x(begin)}" y="{top}" {size} fill="#8fb8de"/>',
            f'<path d="M{x(each.low)} {middle}H{x(each.high)}" stroke="#1b3a57"/>',
            f'<text x="{_LEFT + _WIDTH + 8}" y="{middle + 5}">{number(each.value)}</text>',
        ]
    size = f'width="{_LEFT + _WIDTH + _RIGHT}" height="{_TOP + len(rows) * _ROW + 6}"'
    font = 'font-family="sans-serif" font-size="13"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _truth() -> str:
    rows = _kept("credit-truth").filter(num_groups=1)
    means = {key: of["fraction"] for key, of in averages(rows, ["fraction"], CREDIT).items()}
    chief = [(" ".join(map(str, key)), each) for key, each in means.items() if key in CHIEF]
    return bars("Share of the true gain, from one group of eight", _best_first(chief))


def _quality() -> str:
    means = quality(_kept("credit-quality").filter(environment="textworld"), "over_all")
    steps = [(key[0], each) for key, each in means.items() if key[1:] == ("step", "exact")]
    return bars("TextWorld: rank correlation of step credit with progress", _best_first(steps))


def _evidence() -> str:
    rows = [("eleven exact worlds", mean(orders("evidence", "reach 1", _kept("states"))))]
    for of in _kept("games").unique("world", keep="first", maintain_order=True).rows(named=True):
        value, low, high = (of[f"agreement{end}"] for end in ("", "_low", "_high"))
        rows.append((of["world"], Mean(value=value, low=low, high=high)))
    return bars("Does evidence rank states as their worth does? (Spearman)", rows)


def _learning() -> str:
    by_arm = ends_of(_kept("unseen")).group_by("arm", maintain_order=True)
    rows = [(str(arm), mean(of["end"].to_list())) for (arm,), of in by_arm]
    return bars("Success on games never learnt from", _best_first(rows))


def _turns() -> str:
    kinds = {"turn_rloo": "returns", "turn_rloo, gamma 0.5": "next changes"}
    rows = _kept("turns").filter(pl.col("credit").is_in(list(kinds)), num_groups=1)
    means = averages(rows, ["fraction"], ["judge", "credit"])
    named = [(f"{key[0]}, {kinds[str(key[1])]}", of["fraction"]) for key, of in means.items()]
    return bars("Share of the true gain, from one group, by who judges and what counts", named)


def _reliability() -> str:
    """Return a picture of what values say and what is true, as SVG; 1 is 300 pixels."""
    known = reliability(_kept("believe"))
    corners = zip(known["value"].to_list(), known["exact V"].to_list(), strict=True)
    points = [(60 + 300 * said, 340 - 300 * true) for said, true in corners]
    text = 'text-anchor="middle"'
    marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1b3a57"/>' for x, y in points)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" width="390" height="390" '
            'font-family="sans-serif" font-size="13">',
            '<rect width="100%" height="100%" fill="white"/>',
            '<text x="8" y="20" font-weight="bold">True chance to win, by the value</text>',
            '<path d="M60 340V40M60 340H360M60 340L360 40" stroke="#bbb" fill="none"/>',
            f'<polyline points="{line}" stroke="#8fb8de" stroke-width="3" fill="none"/>',
            marks,
            *(f'<text x="{60 + 300 * at}" y="358" {text}>{at}</text>' for at in (0, 0.5, 1)),
            *(f'<text x="40" y="{345 - 300 * at}" {text}>{at}</text>' for at in (0, 0.5, 1)),
            f'<text x="210" y="380" {text}>value</text>',
            "</svg>",
            "",
        ]
    )


FIGURES: Mapping[str, Callable[[], str]] = {
    "credit-truth": _truth,
    "credit-truth-reliability": _reliability,
    "credit-quality": _quality,
    "evidence": _evidence,
    "learning": _learning,
    "turns": _turns,
}
"""Figures, each of the page whose name it begins with."""


def _kept(name: str) -> pl.DataFrame:
    return pl.read_parquet(RESULTS / f"{name}.parquet")


def _best_first(rows: Bars) -> Bars:
    return sorted(rows, key=lambda row: -row[1].value)


def main() -> None:
    for page, draw in FIGURES.items():
        (Path(sys.argv[1]) / f"{page}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
