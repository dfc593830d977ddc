"""The HTML of a bundle's own pages, and the names of its files. All text goes through `text`.

So markup of a log has no effect. A task's own name may be no name for a file.
"""

from collections.abc import Iterable, Sequence
from html import escape

from graphcredit.store.log_text import in_html, named, one_line

LIBRARY, GRAPH_SCRIPT, GRAPH_STYLE = "cytoscape.min.js", "graph.js", "graph.css"
"""The files that the pages with a graph share, beside the index."""

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; overflow-wrap: anywhere }
"""

PARTS_STYLE = """
.scroll { overflow-x: auto }
table.list { border-collapse: collapse; font-size: .9rem }
table.list th { text-align: left; font-weight: 500; opacity: .75; padding: .2rem .9rem .2rem 0 }
table.list td { padding: .2rem .9rem .2rem 0; border-top: 1px solid #7f879240;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; vertical-align: bottom }
a { color: #1b5ea8 }
.share { display: inline-block; width: 5rem; height: .5rem; background: #7f879240 }
.share i { display: block; height: 100%; background: #7f8792 }
.bars { display: flex; align-items: flex-end; gap: 1px; height: 1.4rem; width: 6rem }
.bars i { flex: 1; background: #7f8792; min-height: 1px }
.bars i.n { background: #c04f15 }
.bars i.p { background: #1b5ea8 }
.warning { border-left: 4px solid #c04f15; padding-left: .7rem; white-space: pre-wrap;
  overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { a { color: #7db4ea } .bars i.p { background: #7db4ea }
  .bars i.n { background: #e58a55 } }
"""
"""The style of what stands around an exported graph, too."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, body: str) -> str:
    """Return a page without scripts."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{in_html(named(title))}</title><style>{_STYLE}{PARTS_STYLE}</style></head><body>
{body}
</body></html>
"""


def link(address: str, title: str, max_length: int = 80) -> str:
    """Return a link; the address is ours, the title may be a log's."""
    return f'<a href="{escape(address)}">{in_html(one_line(title, max_length))}</a>'


def navigation(links: Iterable[tuple[str, str]]) -> str:
    """Return a line of links: address and title of each."""
    return f"<nav>{' · '.join(link(*each) for each in links)}</nav>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are HTML."""
    head = "".join(f"<th>{in_html(title)}</th>" for title in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table class="list"><tr>{head}</tr>\n{body}</table></div>'


def warnings(lines: Iterable[str]) -> str:
    """Return a paragraph for each line, marked as a warning."""
    return "".join(f'<p class="warning">{in_html(line)}</p>' for line in lines)


def share(value: float | None) -> str:
    """Return a bar for a share, with its percents."""
    if value is None:
        return ""
    return f'<span class="share"><i style="width:{value:.0%}"></i></span> {value:.0%}'


def histogram(counts: Sequence[int] | None) -> str:
    """Return bars for the steps by advantage: blame on the left, 0 in the middle, then credit."""
    if not counts or not any(counts):
        return ""
    most, middle = max(counts), len(counts) // 2
    kinds = ["n" if bar < middle else "p" if bar > middle else "" for bar in range(len(counts))]
    bars = "".join(
        f'<i class="{kind}" style="height:{count / most:.0%}" title="{counted}"></i>'
        for kind, count in zip(kinds, counts, strict=True)
        for counted in [f"{count:,}"]
    )
    return f'<div class="bars">{bars}</div>'


def number(value: float | None, form: str = ".3g") -> str:
    """Return a number as text; nothing for null."""
    return "" if value is None else f"{value:{form}}"


def folder(iteration: int) -> str:
    """Return the folder of an iteration, beside the index."""
    return f"iteration-{iteration:06d}"


def task_file(number: int) -> str:
    """Return the file of a task, in the folder of its iteration."""
    return f"task-{number:05d}.html"


def trajectory_file(task: int, number: int) -> str:
    """Return the file of a trajectory, in the folder of its iteration."""
    return f"task-{task:05d}-{number:04d}.html"
