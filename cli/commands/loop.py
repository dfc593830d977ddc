"""`graphcredit loop`: collect, assign credit, train, and again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphcredit.cli.options import AsJson
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell


def loop(
    config: Annotated[Path, typer.Argument(help="A TOML file; docs/loop.md has its options.")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE or TABLE.NAME=VALUE, over the file's; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Improve a policy: play, assign credit, train, and again with the better policy.

    A loop that was killed goes on where it was: give the same command again. Example:

        graphcredit loop examples/textworld-loop.toml --set collect.seed=1 --set out=loop-1
    """
    from graphcredit.loop.config import read_loop_config
    from graphcredit.loop.run import run_loop

    effective = read_loop_config(config, setting or ())
    with interruptible("the same command goes on"), progress("loop") as show:
        lines = run_loop(effective, on_progress=show, on_notice=_tell)
        if as_json:
            for line in lines:
                print_json(line, indent=None)
        else:
            _show(lines)


def _tell(notice: str) -> None:
    tell(f"notice: {notice}")


def _show(lines: Iterator[Mapping[str, Any]]) -> None:
    say(" ".join(f"{column.title:>{column.width}}" for column in _COLUMNS))
    for line in lines:
        cells = [f"{column.show(line):>{column.width}}" for column in _COLUMNS]
        more = [*_left_out(line), *_nothing_learnt(line), *_evaluations(line)]
        say(" ".join([*cells, *more]))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    title: str
    width: int
    show: Callable[[Mapping[str, Any]], str]


def _metric(title: str, name: str, form: str, width: int = 7) -> _Column:
    def show(line: Mapping[str, Any]) -> str:
        value = line.get(name)
        return "" if value is None else format(value, form)

    return _Column(title=title, width=max(width, len(title)), show=show)


def _seconds(line: Mapping[str, Any]) -> str:
    stages = ("evaluate", "collect", "credit", "train")
    return "+".join(f"{line.get(f'{stage}_seconds', 0):.1f}" for stage in stages)


_COLUMNS = (
    _metric("iteration", "iteration", "d"),
    _metric("env steps", "env_steps", ",d", 10),
    _metric("success", "success_rate", ".3f"),
    _metric("return", "mean_return", ".3f"),
    _metric("length", "mean_length", ".2f"),
    _metric("valid", "valid_share", ".3f"),
    _metric("updates", "num_updates", ",d"),
    _metric("kept", "num_kept", ",d"),
    _metric("entropy", "entropy", ".3f"),
    _metric("kl", "kl", ".4f"),
    _metric("norm", "grad_norm", ".3f"),
    _Column(title="evaluate+collect+credit+train s", width=31, show=_seconds),
)


def _left_out(line: Mapping[str, Any]) -> list[str]:
    """Return how many steps were not trained on, and why, if there were any."""
    counts = ", ".join(f"{count:,} {why}" for why, count in line.get("dropped", {}).items())
    return [f" left out {counts}"] if counts else []


def _nothing_learnt(line: Mapping[str, Any]) -> list[str]:
    """Return why nothing was learnt, and how many groups could have taught nothing, if so."""
    if "nothing_learnt" not in line:
        return []
    groups = f"{line['num_degenerate_groups']:,} of {line['num_groups']:,} groups"
    return [f" nothing learnt: {line['nothing_learnt']} (all returns are equal in {groups})"]


def _evaluations(line: Mapping[str, Any]) -> list[str]:
    """Return what a line has of an evaluation, if there was one."""
    ending = "_success_rate"
    return [
        f" {name.removesuffix(ending).replace('_', ' ')} {value:.3f}"
        for name, value in line.items()
        if name.endswith(ending)
    ]
