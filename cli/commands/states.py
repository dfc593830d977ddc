"""`graphcredit states`: show what became one state in a task."""

import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphcredit.cli.output.console import PLAIN, interruptible, out
from graphcredit.cli.output.escape import plain_text
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.credit.audit.states import NearStates, StatesOfTask, TextsOfState
    from graphcredit.store import Store


def states(
    store: Annotated[Path, typer.Argument(help="The store.")],
    task: Annotated[
        str | None, typer.Option(help="The task; --draft looks at several without it.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="The run; needed if there are several.")] = None,
    iteration: Annotated[
        int | None, typer.Option(help="The iteration; needed if there are several.")
    ] = None,
    most: Annotated[
        int, typer.Option(min=0, help="Most states, texts of a state, and pairs to show.")
    ] = 5,
    draft: Annotated[
        bool,
        typer.Option(
            "--draft",
            help="Write a first draft of states.toml into the store: rules that overrule the "
            "merge, all of them still comments.",
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --draft: in place of the rules there are.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show which texts of a task became one state, and which states are nearly alike.

    What differs between two texts stands word by word below them: where a merge united them, it
    took that for noise; where it did not, that keeps them apart.

    Example: graphcredit states STORE --task t0 --run games --iteration 3

    To overrule it, edit the draft of rules that this writes, and run `graphcredit credit` again:

        graphcredit states STORE --draft
    """
    from graphcredit.credit.audit.states import states_of_task
    from graphcredit.store.errors import OptionError
    from graphcredit.store.layout import open_store

    opened = open_store(store)
    run_id, number = opened.one_iteration(run, iteration)
    if draft:
        if as_json:
            raise OptionError("--draft writes a file: --json does not go with it")
        _write_draft(opened, run_id, number, task, may_replace=replace)
        return
    if replace:
        raise OptionError("--replace goes with --draft")
    if task is None:
        raise OptionError("--task must name the task to show; --draft does without")
    with interruptible("this changes nothing"):
        found = states_of_task(opened, task, run_id=run_id, iteration=number, num_near=most)
    if as_json:
        content = json.dumps(found.as_json(), indent=2, ensure_ascii=False)
        sys.stdout.write(content + "\n")
    else:
        _show(found, most)


def _write_draft(
    store: "Store", run_id: str, iteration: int, task: str | None, *, may_replace: bool
) -> None:
    from graphcredit.credit.audit.draft import draft_rules, write_draft

    with interruptible("the rules stay as they are"):
        found = draft_rules(store, run_id=run_id, iteration=iteration, task_id=task)
        write_draft(store, found, may_replace=may_replace)
    _print(
        f"wrote {store.state_rules_path}, from {found.num_tasks:,} of "
        f"{counted(found.num_tasks_in_all, 'task')}: {counted(found.num_noise, 'rule')} to keep "
        f"what was taken for noise, {found.num_near:,} to make one of states that are nearly "
        "alike. All are comments: edit it, then run `graphcredit credit` again"
    )
    if found.num_unsaid:
        _print(f"{counted(found.num_unsaid, 'difference')} can be said by no simple rule")


def _show(found: "StatesOfTask", most: int) -> None:
    _print(
        f"{found.task_id} ({found.run_id}, iteration {found.iteration}): "
        f"{counted(found.num_texts, 'text')}, {counted(len(found.states), 'state')} but the goal, "
        f"{len(found.merged):,} of them with several texts"
    )
    for state in found.merged[:most]:
        _show_state(state, most)
    if len(found.merged) > most:
        _print(f"\nand {counted(len(found.merged) - most, 'state')} more with several texts")
    if found.near:
        _print("\nmost alike, and kept apart:")
    for pair in found.near:
        _show_pair(pair)
    if found.num_compared < len(found.states):
        _print(f"\nonly pairs of the {found.num_compared:,} most visited states were compared")


def _show_state(state: "TextsOfState", most: int) -> None:
    times, texts = counted(state.visits, "visit"), counted(len(state.texts), "text")
    _print(f"\nstate {state.state_id}: {times}, {texts}. The most frequent one:")
    _indented(state.texts[0].text)
    for difference in islice(state.differences(), most):
        _print("  in another one:")
        _indented(difference.lines or "  (white space)")
    if len(state.texts) - 1 > most:
        _print(f"  and {counted(len(state.texts) - 1 - most, 'text')} more")


def _show_pair(pair: "NearStates") -> None:
    why = "; their admissible actions differ" if pair.has_other_actions else ""
    _print(f"\nstates {pair.first} and {pair.second}: {pair.ratio:.0%} of the words alike{why}")
    _indented(pair.lines or "  (white space)")


def _indented(text: str) -> None:
    for line in text.splitlines():
        _print(f"    {line}")


def _print(line: str) -> None:
    out.print("\n".join(map(plain_text, line.split("\n"))), **PLAIN)
