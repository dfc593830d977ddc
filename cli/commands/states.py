"""`graphcredit states`: show what became one state in a task."""

from dataclasses import asdict
from itertools import islice
from typing import Annotated

from graphcredit.cli.options import AsJson, StorePath
from graphcredit.cli.output.console import interruptible, print_json, say
from graphcredit.cli.parameters import Option
from graphcredit.credit.audit.states import StatesOfTask, TextsOfState, states_of_task
from graphcredit.store.errors import OptionError
from graphcredit.store.layout import Store, open_store, states_name
from graphcredit.store.plural import counted


def states(
    store: StorePath,
    task: Annotated[str | None, Option(help="The task.")] = None,
    run: Annotated[str | None, Option(help="The run; needed if there are several.")] = None,
    iteration: Annotated[
        int | None, Option(help="The iteration; needed if there are several.")
    ] = None,
    most: Annotated[int, Option(min=0, help="Most states, and texts of a state, to show.")] = 5,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="RULE",
            help="Write states by a rule beside the logged ones: calls, effects, results, facts, "
            "worktree, last-tool, or several as effects+last-tool; all are in "
            "docs/choosing-a-state.md.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which texts of a task became one state.

    What differs between two texts stands word by word below them: the merge took that for noise.

    Example: graphcredit states STORE --task t0 --run games --iteration 3

    To overrule it, write rules into STORE/states.toml (docs/merging.md), and run `graphcredit
    credit` again.

    To take what an agent has done for its state, in place of what it saw last:

        graphcredit states STORE --set effects --set calls

        graphcredit credit STORE --state effects
    """
    opened = open_store(store)
    if set_:
        if task is not None or iteration is not None:
            raise OptionError("--set goes with --run and --json alone")
        _write_states(opened, set_, run, as_json=as_json)
        return
    run_id, number = opened.one_iteration(run, iteration)
    if task is None:
        raise OptionError("--task must name the task to show")
    with interruptible("this changes nothing"):
        shown = states_of_task(opened, task, run_id=run_id, iteration=number)
    if as_json:
        print_json(shown.as_json())
    else:
        _show(shown, most)


def _write_states(store: Store, rules: list[str], run: str | None, *, as_json: bool) -> None:
    from graphcredit.collector.states.restate import restate

    with interruptible("the step shards stay as they are; the same command goes on"):
        written = [each for rule in rules for each in restate(store, rule, run_id=run)]
    if as_json:
        print_json([asdict(each) for each in written])
        return
    for each in written:
        _print(
            f"{each.run_id}, {each.rule}: {counted(each.num_states, 'state')} for "
            f"{counted(each.num_steps, 'step')}; {each.num_alone / max(each.num_steps, 1):.0%} of "
            "the steps are alone in their state"
        )
        if (effects := each.effects) is not None:
            for said, tools in (
                ("change something", effects.changing),
                ("count too, since the log does not say", effects.unknown),
                ("only read", effects.unchanging),
            ):
                _print(f"  {said}: {', '.join(tools) or 'none'}")
    names = ", ".join(map(states_name, rules))
    _print(f"`graphcredit credit` takes them with --state: {names}")


def _show(task: StatesOfTask, most: int) -> None:
    _print(
        f"{task.task_id} ({task.run_id}, iteration {task.iteration}): "
        f"{counted(task.num_texts, 'text')}, {counted(len(task.states), 'state')} but the goal, "
        f"{len(task.merged):,} of them with several texts"
    )
    for state in task.merged[:most]:
        _show_state(state, most)
    if len(task.merged) > most:
        _print(f"\nand {counted(len(task.merged) - most, 'state')} more with several texts")


def _show_state(state: TextsOfState, most: int) -> None:
    times, texts = counted(state.visits, "visit"), counted(len(state.texts), "text")
    _print(f"\nstate {state.state_id}: {times}, {texts}. The most frequent one:")
    _indented(state.texts[0].text)
    for difference in islice(state.differences(), most):
        _print("  in another one:")
        _indented(difference.lines or "  (white space)")
    if len(state.texts) - 1 > most:
        _print(f"  and {counted(len(state.texts) - 1 - most, 'text')} more")


def _indented(text: str) -> None:
    for line in text.splitlines():
        _print(f"    {line}")


def _print(line: str) -> None:
    for plain_line in line.split("\n"):
        say(plain_line)
