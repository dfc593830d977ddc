"""`graphcredit er-graph`: draw the entities and relations that `sapo` needs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, say
from graphcredit.cli.parameters import Option
from graphcredit.collector.importers.logs.records import sound_records
from graphcredit.collector.importers.messages.values import as_text, fields_of
from graphcredit.credit.inputs.entities.drawn import COLUMNS, Triple, draw_graph
from graphcredit.store.errors import InputError
from graphcredit.store.layout import open_store
from graphcredit.store.parquet.er_graph import ErGraph, merge_er_graph
from graphcredit.store.parquet.shards import read_steps
from graphcredit.store.plural import counted


def er_graph(
    store: StorePath,
    answers: Annotated[
        Path | None,
        Option(help="Rows with `task_id` and `answer`; by default what won rollouts say."),
    ] = None,
    triples: Annotated[
        Path | None,
        Option(help="Rows with `head`, `relation` and `tail`, in place of shared sentences."),
    ] = None,
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
) -> None:
    """Draw the entities and relations that `sapo` needs from the texts of a store.

    Entities are the capitalised phrases of questions and of what rollouts retrieved. Two are
    related if a sentence names both, or if one heads the passage of the other. They replace earlier
    ones of these tasks.

    Example: graphcredit er-graph STORE --answers gold.jsonl
    """
    opened = open_store(store)
    with interruptible("the entities stay as they are"):
        graph = draw_graph(
            read_steps(opened, columns=COLUMNS, run_id=run, iteration=iteration),
            answers=None if answers is None else _answers_of(answers),
            triples=None if triples is None else _triples_of(triples),
        )
        merge_er_graph(opened, graph)
    report = _report(graph)
    if as_json:
        print_json(report)
    else:
        say(
            f"{counted(report['entities'], 'entity')} and "
            f"{counted(report['relations'], 'relation')} of {counted(report['tasks'], 'task')}, "
            f"{report['tasks_with_answer']:,} with an answer"
        )


def _rows_of(path: Path, option: str, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield some fields of the rows of a file: JSON, JSONL, CSV or a table.

    Raises:
        PathError: There is no such file.
        InputError: A row cannot be read, or lacks a field.
    """
    for record in sound_records(path, option):
        row = fields_of(record.value)
        fields = [as_text(row.get(name)) for name in names]
        if not all(fields):
            raise InputError(
                f"{record.where}: a row must have {', '.join(names)}: it has "
                f"{', '.join(row) or 'no fields'}"
            )
        yield tuple(field or "" for field in fields)


def _answers_of(path: Path) -> Mapping[str, list[str]]:
    answers: defaultdict[str, list[str]] = defaultdict(list)
    for task, answer in _rows_of(path, "--answers", "task_id", "answer"):
        answers[task].append(answer)
    return answers


def _triples_of(path: Path) -> list[Triple]:
    rows = _rows_of(path, "--triples", "head", "relation", "tail")
    return [(row[0], row[1], row[2]) for row in rows]


def _report(graph: ErGraph) -> dict[str, int]:
    answered = graph.entities.filter(graph.entities["is_answer"])["task_id"]
    return {
        "tasks": len(graph.entities["task_id"].unique()),
        "tasks_with_answer": len(answered.unique()),
        "entities": graph.entities.num_rows,
        "relations": graph.relations.num_rows,
    }
