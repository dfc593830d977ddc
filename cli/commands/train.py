"""`graphcredit train`: a better policy from the steps of an iteration and their credit."""

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from graphcredit.cli.output.console import PLAIN, interruptible, out, progress, talk
from graphcredit.cli.output.escape import plain_text
from graphcredit.store.errors import OptionError
from graphcredit.store.options import help_of
from graphcredit.trainer.config import read_config
from graphcredit.trainer.options import GROUPS

_OWN_PARAMETERS = ("store", "objective_options")
"""Fields that are not flags of their name."""


def train(
    store: Annotated[Path | None, typer.Argument(help="The store; may stand in --config.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of these options.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, an option of the objective; may be repeated."),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Begin anew where no checkpoint of an interrupted training is whole."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    **flags: Any,
) -> None:
    """Improve a policy on the steps of an iteration, weighed by one advantage column.

    A run that was killed goes on where its last checkpoint is: give the same command again.
    Under torchrun the same command uses all processes (FSDP2). Example:

        graphcredit train STORE --model ./policy --advantage graphgpo --run r --out ./policy-1

    On four GPUs, with options from a file:

        torchrun --nproc-per-node 4 -m graphcredit.cli.main train STORE --config train.toml
    """
    given = {name: value for name, value in flags.items() if value is not None}
    if store is not None:
        given["store"] = store
    if setting:
        given["objective_options"] = dict(map(_pair, setting))
    effective = read_config(config, given)
    # Only now: it takes torch's seconds to import.
    from graphcredit.trainer.train import train as run_training

    remedy = "the same command goes on from the last checkpoint"
    with interruptible(remedy), progress("train") as show:
        result = run_training(
            effective,
            restart=restart,
            on_progress=lambda what, done, total, metrics: show(what, done, total, _note(metrics)),
            on_notice=_tell,
        )
    if result is None:
        return
    if as_json:
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    else:
        _show(result)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise OptionError(f"--set takes NAME=VALUE: got {text!r}")
    return name, value


def _note(metrics: Mapping[str, Any]) -> str:
    shown = [
        f"{label} {metrics[name]:.3g}"
        for name, label in (
            ("loss", "loss"),
            ("grad_norm", "norm"),
            ("approx_kl", "kl"),
            ("tokens_per_second", "tokens/s"),
        )
        if metrics.get(name) is not None
    ]
    return " ".join(shown)


def _tell(notice: str) -> None:
    talk.print(f"note: {plain_text(notice)}", **PLAIN)


def _show(result: Mapping[str, Any]) -> None:
    lines = [
        f"{result['num_updates']} optimizer steps on {result['num_kept']:,} of "
        f"{result['num_steps']:,} steps with {result['column']}: the policy is in {result['model']}"
    ]
    lines += [f"{count:>10,} steps left out: {why}" for why, count in result["dropped"].items()]
    if result["num_masked_tokens"]:
        lines.append(f"{result['num_masked_tokens']:>10,} tokens without a finite log-probability")
    lines += [f"{name:>24} {value:.4g}" for name, value in result["last"].items()]
    for line in lines:
        out.print(line, **PLAIN)


def _flags() -> list[inspect.Parameter]:
    """Return one optional flag for each field of the configuration, in the panel of its group."""
    return [
        _flag(field, panel, help_of(group)[field.name], get_type_hints(group)[field.name])
        for panel, group in GROUPS.items()
        for field in fields(group)
        if field.name not in _OWN_PARAMETERS
    ]


def _flag(field: Field[Any], panel: str, text: str, hint: Any) -> inspect.Parameter:
    option = typer.Option(help=_explained(text, hint, field), rich_help_panel=panel)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[_flag_type(hint) | None, option],
    )


def _flag_type(hint: Any) -> type:
    """Return what a flag is read as; ranges and choices are the configuration's to check."""
    kinds = {bool, int, float, Path} & {hint, *get_args(hint)}
    return kinds.pop() if kinds else str


def _explained(text: str, hint: Any, field: Field[Any]) -> str:
    """Return the help of a field with its choices and its default."""
    literal = next((h for h in (hint, *get_args(hint)) if get_origin(h) is Literal), None)
    choices = f" One of {', '.join(get_args(literal))}." if literal else ""
    has_default = field.default is not MISSING and field.default is not None
    return f"{text}{choices}" + (f" (default: {field.default})" if has_default else "")


def _take_flags() -> None:
    own = inspect.signature(train).parameters.values()
    fixed = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.kind is not p.VAR_KEYWORD]
    parameters = [*fixed, *_flags()]
    train.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    train.__annotations__ = {p.name: p.annotation for p in parameters}


_take_flags()
