"""`graphcredit train`: a better policy from the steps of an iteration and their credit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import be_quiet, interruptible, print_json, progress, say, tell
from graphcredit.cli.output.help import explains
from graphcredit.cli.output.preview import show_preview
from graphcredit.cli.parameters import Argument, Option
from graphcredit.store.errors import OptionError
from graphcredit.store.plural import counted
from graphcredit.trainer.config import read_config
from graphcredit.trainer.options import GROUPS, OBJECTIVE_OPTIONS


@explains("Options of each objective, by --set", OBJECTIVE_OPTIONS)
@takes(GROUPS, omit=("store", "objective_options"), from_file=True)
def train(
    store: Annotated[
        list[Path] | None, Argument(help="The store, or several; may stand in --config.")
    ] = None,
    config: Annotated[Path | None, Option(help="A TOML file of these options.")] = None,
    setting: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE, an option of the objective; may be repeated."),
    ] = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Say what would be done, and the memory it takes; write nothing."),
    ] = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Improve a policy on the steps of an iteration, weighed by one advantage column.

    A run that was killed goes on where its last checkpoint is: give the same command again.
    Under torchrun the same command uses all processes (FSDP2). Example:

        graphcredit train STORE --model ./policy --advantage reach --run r --out ./policy-1

    On four GPUs, with options from a file:

        torchrun --nproc-per-node 4 -m graphcredit.cli.main train STORE --config train.toml

    What they would do, and the memory of each: the same with --dry-run, on a machine without a GPU
    with the variable WORLD_SIZE=4 instead of torchrun.
    """
    options = given({**flags, "store": store and tuple(store)})
    if setting:
        options["objective_options"] = dict(map(_pair, setting))
    effective = read_config(config, options)
    if dry_run:
        # Only now: it takes torch's seconds to import.
        from graphcredit.trainer.engine.distributed import num_processes
        from graphcredit.trainer.preview import preview

        shown = preview(effective, num_processes=num_processes())
        print_json(shown) if as_json else show_preview(shown)
        return
    # See above.
    from graphcredit.trainer.engine.distributed import is_first_rank
    from graphcredit.trainer.training import train as run_training

    if not is_first_rank():
        # The bars of several processes would overwrite each other.
        be_quiet(is_quiet=True)
    remedy = "the same command goes on from the last checkpoint"
    with interruptible(remedy), progress("train") as show:
        result = run_training(
            effective, on_progress=show, on_notice=lambda notice: tell(f"note: {notice}")
        )
    if result is None:
        return
    if as_json:
        print_json(result)
    else:
        _show(result)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise OptionError(f"--set takes NAME=VALUE: got {text!r}")
    return name, value


def _show(result: Mapping[str, Any]) -> None:
    lines = [
        f"{counted(result['num_updates'], 'optimizer step')} on {result['num_kept']:,} of "
        f"{counted(result['num_steps'], 'step')} with {result['column']}: "
        f"the policy is in {result['model']}"
    ]
    lines += [f"{count:>10,} steps left out: {why}" for why, count in result["dropped"].items()]
    if result["num_masked_tokens"]:
        lines.append(f"{result['num_masked_tokens']:>10,} tokens without a finite log-probability")
    lines += [f"{name:>24} {value:.4g}" for name, value in result["last"].items()]
    for line in lines:
        say(line)
