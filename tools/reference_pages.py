"""The reference of the site that follows from the code: commands, columns, Python functions.

python -m tools.reference_pages writes docs/fields.md.
"""

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

import graphcredit
from graphcredit.cli.output.help import sections_of
from graphcredit.cli.table import COMMANDS, load
from graphcredit.collector.importers.formats import chat_rows, row_messages, row_verdicts
from graphcredit.collector.importers.rules import scores, verdicts
from graphcredit.loop.config import CollectTable, CreditTable, EvaluateTable, LoopConfig
from graphcredit.store import schema
from graphcredit.store.options import help_texts
from tools.derived_columns import DERIVED_COLUMNS

_TABLES = {
    "steps": (schema.STEP_COLUMNS, "A row for each step."),
    "states": (schema.STATES_COLUMNS, "States by a rule, row for row beside the steps."),
    "credit": (schema.CREDIT_COLUMNS, "Row for row beside the steps, with `<estimator>_<part>`."),
    "nodes": (schema.NODE_COLUMNS, "States of a group's graph."),
    "edges": (schema.EDGE_COLUMNS, "Transitions of a group's graph."),
    "state_scores": (schema.STATE_SCORE_COLUMNS, "Visits and successes of a run's states."),
    "training": (schema.TRAINING_COLUMNS, "Metrics of a training, by optimizer step."),
    "er_graph/entities": (schema.ENTITY_COLUMNS, "Entities of tasks; no view."),
    "er_graph/relations": (schema.RELATION_COLUMNS, "Their relations; no view."),
}


def reference_pages() -> dict[str, str]:
    """Return the path of each page, below reference/, and its Markdown."""
    commands = {f"commands/{name}.md": _command(name) for name in COMMANDS}
    rows = [(f"[`{name}`]({name}.md)", sentence) for name, sentence in COMMANDS.items()]
    commands["commands/index.md"] = (
        f"# Commands\n\n{markdown_table(('command', 'what it does'), rows)}\n"
    )
    commands["loop.md"] = loop_page()
    return commands | {"columns.md": columns_page(), "python.md": _python()}


def _command(name: str) -> str:
    command = load(name)
    context = command.make_context(name, [], resilient_parsing=True)
    paragraphs = inspect.cleandoc(command.help or "").replace("Example:", "Example:\n")
    parts = [f"# graphcredit {name}\n\n{paragraphs}"]
    for title, records in sections_of(command, context).items():
        named = [(f"`{name}`", text) for name, text in records]
        parts.append(f"## {title}\n\n{markdown_table(('option', 'meaning'), named)}")
    if further := getattr(command.callback, "help_section", None):
        title, rows = further
        parts.append(
            f"## {title}\n\n{markdown_table(('', ''), [(f'`{key}`', text) for key, text in rows])}"
        )
    return "\n\n".join(parts) + "\n"


def loop_page() -> str:
    """Return the options of a loop's file, as Markdown."""
    parts = ["# Options of the loop", "Of the file that [`graphcredit loop`](../loop.md) reads."]
    tables = {
        "": LoopConfig,
        "collect": CollectTable,
        "credit": CreditTable,
        "evaluate": EvaluateTable,
    }
    for name, table in tables.items():
        rows = [
            (f"`{key}`", _shown(field.default), help_texts(table)[key])
            for key, field in table.model_fields.items()
            if key not in {*tables, "train"}
        ]
        parts.append(f"## {f'[{name}]' if name else 'At the top'}")
        parts.append(markdown_table(("option", "default", "meaning"), rows))
    parts.append(
        "## [train]\n\nThe options of [`graphcredit train`](commands/train.md), with underscores."
    )
    return "\n\n".join(parts) + "\n"


def _shown(default: Any) -> str:
    if default is PydanticUndefined or default is None:
        return ""
    if isinstance(default, tuple):
        return ", ".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)


def columns_page() -> str:
    """Return the tables of all columns, as Markdown."""
    parts = ["# Columns", "The views of SQL, and the files below them ([the store](../store.md))."]
    derived = {
        name: (columns, "Computed from the steps.") for name, columns in DERIVED_COLUMNS.items()
    }
    for name, (columns, what) in (_TABLES | derived).items():
        rows = [
            (f"`{c.name}`", str(c.type), "yes" if c.nullable else "no", c.meaning) for c in columns
        ]
        parts.append(
            f"## {name}\n\n{what}\n\n" + markdown_table(("column", "type", "null", "meaning"), rows)
        )
    return "\n\n".join(parts) + "\n"


def fields_page() -> str:
    """Return the names of fields that an import reads, as Markdown; docs/fields.md is this."""
    of_steps = [(c.name, (c.name, *c.in_logs)) for c in schema.STEP_COLUMNS if c.in_logs]
    tables = {
        "Of a rollout": [
            ("its messages", row_messages.LISTS),
            ("its prompt, where messages are not in a list", row_messages.PROMPTS),
            ("the answer to that", row_messages.ANSWERS),
            ("its task: rollouts that share it form a group", chat_rows.GROUPS),
            ("its reward", row_verdicts.REWARDS),
            ("whether it succeeded", row_verdicts.SUCCESSES),
            ("the same, if it is true or false", row_verdicts.IF_BOOL),
            ("of several scores, the one of the whole", row_verdicts.TOTALS),
            ("a list with the reward of each turn", chat_rows.TURN_REWARDS),
            ("a list with a score after each turn", scores.LISTS),
            ("why it stopped", chat_rows.STOPS),
        ],
        "Of a file of verdicts": [
            ("what a verdict is about", verdicts.IDS),
            ("the verdict, or a score", verdicts.SCORES),
        ],
        "Of a step, where a log has rows of steps": of_steps,
    }
    parts = [
        "# Names of fields that are read",
        "The surest first; capitals and `camelCase` do not matter. A field of another name is "
        "named by an option: `--columns PART=FIELD`, `--group`, `--success`, `--reward`. Formats "
        "with names of their own ([formats](formats.md)) read those as well.",
    ]
    for title, rows in tables.items():
        shown = [(what, ", ".join(f"`{name}`" for name in names)) for what, names in rows]
        parts.append(f"## {title}\n\n{markdown_table(('what', 'fields'), shown)}")
    return "\n\n".join(parts) + "\n"


def _python() -> str:
    parts = [
        "# Python",
        "All that `import graphcredit` has; [a guide](../python.md) shows it at work.",
    ]
    for name in sorted(set(graphcredit.__all__) - {"__version__"}, key=str.lower):
        thing = getattr(graphcredit, name)
        head = f"{name}{inspect.signature(thing)}"
        text = inspect.getdoc(thing) or ""
        parts.append(f"## {name}\n\n```python\n{head}\n```\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def markdown_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(titles)]
    lines += [
        ["---"] * len(lines[0]),
        *([cell.replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "fields.md").write_text(fields_page(), encoding="utf-8")
