"""`graphcredit loop`: collect, assign credit, train, and again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from graphcredit.cli.options import AsJson
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell
from graphcredit.cli.parameters import Argument, Option


def loop(
    config: Annotated[Path, Argument(help="A TOML file; docs/loop.md has its options.")],
    setting: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE or TABLE.NAME=VALUE, over the file's; repeatable."),
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
        lines = run_loop(
            effective, on_progress=show, on_notice=lambda notice: tell(f"notice: {notice}")
        )
        if as_json:
            for line in lines:
                print_json(line, indent=None)
        else:
            _show(lines)


def _show(lines: Iterator[Mapping[str, Any]]) -> None:
    say(" ".join([*(f"{title:>{width}}" for title, _, _, width in _NUMBERS), _SECONDS]))
    for line in lines:
        say(" ".join([*_cells(line), *_remarks(line)]))


_NUMBERS: tuple[tuple[str, str, str, int], ...] = (
    ("iteration", "iteration", "d", 9),
    ("env steps", "env_steps", ",d", 10),
    ("success", "success_rate", ".3f", 7),
    ("return", "mean_return", ".3f", 7),
    ("length", "mean_length", ".2f", 7),
    ("valid", "valid_share", ".3f", 7),
    ("updates", "num_updates", ",d", 7),
    ("kept", "num_kept", ",d", 7),
    ("entropy", "entropy", ".3f", 7),
    ("kl", "kl", ".4f", 7),
    ("norm", "grad_norm", ".3f", 7),
)
"""Title, field of a line, format and width."""

_SECONDS = "evaluate+collect+credit+train s"


def _cells(line: Mapping[str, Any]) -> Iterator[str]:
    for _, name, form, width in _NUMBERS:
        value = line.get(name)
        yield f"{'' if value is None else format(value, form):>{width}}"
    stages = ("evaluate", "collect", "credit", "train")
    seconds = "+".join(f"{line.get(f'{stage}_seconds', 0):.1f}" for stage in stages)
    yield f"{seconds:>{len(_SECONDS)}}"


def _remarks(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was not trained on, why nothing was learnt, and what an evaluation gave."""
    if counts := ", ".join(f"{count:,} {why}" for why, count in line.get("dropped", {}).items()):
        yield f" left out {counts}"
    if "nothing_learnt" in line:
        groups = f"{line['num_degenerate_groups']:,} of {line['num_groups']:,} groups"
        yield f" nothing learnt: {line['nothing_learnt']} (all returns are equal in {groups})"
    for name, value in line.items():
        if name.endswith("_success_rate"):
            yield f" {name.removesuffix('_success_rate').replace('_', ' ')} {value:.3f}"
