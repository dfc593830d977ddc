"""`graphcredit warmup`: a tiny language model that acts as an environment allows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.loop.warmup import WarmupOptions, run_warmup


@takes({"Warm-up": WarmupOptions}, omit=("directory",))
def warmup(
    directory: Annotated[Path, typer.Argument(help="Where the model and all else goes: OUT.")],
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Make a tiny language model that acts validly and wins seldom: a policy to start from.

    It stands in for a pretrained model where none can be downloaded: 0.7 million weights (with the
    1,024 tokens of the default) and a tokenizer of the environment's own words, cloned from random
    play. The same command goes on where it was interrupted. OUT/model is the result,
    OUT/warmup.json what it came to. Example:

        graphcredit warmup OUT --env textworld --games custom-r5o5q5b1n1 --tasks 12
    """
    plan = WarmupOptions(directory=directory, **given(flags))
    with interruptible("the same command goes on"), progress("warmup") as show:
        figures = run_warmup(plan, on_progress=show)
    if as_json:
        print_json(figures)
    else:
        _show(directory, figures)


def _show(directory: Path, figures: Mapping[str, Mapping[str, Any]]) -> None:
    model, log, cloning, play = (figures[name] for name in ("init", "clone", "model", "warm"))
    lines = (
        f"{log['num_steps']:,} random steps of {log['num_trajectories']:,} plays, "
        f"{cloning['num_pairs']:,} different ones, {log['success_rate']:.1%} of the plays won",
        f"{model['num_weights']:,} weights, {model['num_tokens']:,} tokens; "
        f"loss per token {cloning['loss']:.3f}, {cloning['held_out_loss']:.3f} held out",
        f"the model's own play: {play['valid_share']:.1%} of its actions valid, "
        f"{play['success_rate']:.1%} of {play['num_trajectories']} plays won; "
        f"its longest answer has {cloning['longest_response']} tokens",
        "seconds: " + ", ".join(f"{name} {each['seconds']:.0f}" for name, each in figures.items()),
        f"The policy is in {directory / 'model'}",
    )
    for line in lines:
        say(line)
