"""`graphcredit er-graph`: draw the entities and relations that `sapo` needs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, say
from graphcredit.cli.parameters import Option
from graphcredit.collector.importers.logs.records import sound_records
from graphcredit.collector.importers.messages.values import as_text, fields_of
from graphcredit.credit.inputs.entities.drawn import COLUMNS, Triple, draw_graph
from graphcredit.credit.inputs.entities.premise import Premise, premise_of
from graphcredit.credit.steps.complete import COLUMNS as STEP_COLUMNS
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store, open_store
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
    ones of these tasks. The report says whether rollouts that came nearer an answer won.

    Example: graphcredit er-graph STORE --answers gold.jsonl
    """
    opened = open_store(store)
    with interruptible("the entities stay as they are"):
        graph = draw_graph(
            read_steps(opened, columns=COLUMNS, run_id=run, iteration=iteration),
            answers=None if answers is None else _answers_of(answers),
            triples=None if triples is None else _triples_of(triples),
        )
        premise = premise_of(graph, _iterations(opened, run, iteration))
        merge_er_graph(opened, graph)
    report = _report(graph, premise)
    if as_json:
        print_json(report)
    else:
        _print(report)


def _iterations(store: Store, run: str | None, iteration: int | None) -> Iterator[pa.Table]:
    for run_id in store.runs() if run is None else [run]:
        for number in store.iterations(run_id) if iteration is None else [iteration]:
            columns = (*STEP_COLUMNS, "thought")
            yield pa.concat_tables(
                read_steps(store, columns=columns, run_id=run_id, iteration=number)
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


def _report(graph: ErGraph, premise: Premise) -> dict[str, Any]:
    answered = graph.entities.filter(graph.entities["is_answer"])["task_id"]
    is_known = len(premise.pairs) > 0
    low, high = premise.interval if is_known else (None, None)
    return {
        "tasks": len(graph.entities["task_id"].unique()),
        "tasks_with_answer": len(answered.unique()),
        "entities": graph.entities.num_rows,
        "relations": graph.relations.num_rows,
        "groups_compared": len(premise.pairs),
        "pairs": int(premise.pairs.sum()),
        "tied_pairs": int(premise.tied.sum()),
        "nearer_is_better": premise.share if is_known else None,
        "nearer_is_better_low": low,
        "nearer_is_better_high": high,
    }


def _print(report: Mapping[str, Any]) -> None:
    say(
        f"{counted(report['entities'], 'entity')} and {counted(report['relations'], 'relation')} "
        f"of {counted(report['tasks'], 'task')}, {report['tasks_with_answer']:,} with an answer"
    )
    if report["nearer_is_better"] is None:
        say("no group with an answer has a won and a lost rollout: nothing tells whether it helps")
        return
    share, low, high = (report[f"nearer_is_better{end}"] for end in ("", "_low", "_high"))
    say(
        f"of {counted(report['pairs'], 'pair')} of a won and a lost rollout of one task, the won "
        f"one came nearer the answer in {share:.0%} (95 %: {low:.0%} to {high:.0%}; ties, "
        f"{report['tied_pairs']:,}, count half)"
    )
    verdict = "has something to go on" if low > 0.5 else "has little to go on: 50 % is chance"
    say(f"the step part of sapo, which credits what is near the answer, {verdict}")
