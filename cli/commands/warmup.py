"""`graphcredit warmup`: a tiny language model that acts as an environment allows."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from graphcredit.cli.output.console import PLAIN, interruptible, out, progress


def warmup(
    directory: Annotated[Path, typer.Argument(help="Where the model and all else goes: OUT.")],
    env: Annotated[str, typer.Option(help="What to learn from: textworld, search.")],
    games: Annotated[
        str | None,
        typer.Option(help="custom-r5o5q5b1n1, 2hop, …, by commas; all kinds if not given."),
    ] = None,
    tasks: Annotated[int, typer.Option(help="Tasks to play.", min=1)] = 12,
    episodes: Annotated[int, typer.Option(help="Random plays of each task.", min=1)] = 100,
    max_steps: Annotated[int, typer.Option(help="Steps of a play, at most.", min=1)] = 20,
    vocabulary: Annotated[
        int,
        typer.Option(help="Tokens of the tokenizer, at most; 257 know no words.", min=257),
    ] = 1024,
    steps: Annotated[int, typer.Option(help="Optimizer steps of the cloning.", min=1)] = 400,
    template: Annotated[
        str, typer.Option(help="The model's prompts: tiny, or a TOML file.")
    ] = "tiny",
    seed: Annotated[int, typer.Option(help="Decides games, plays and weights.", min=0)] = 0,
    workers: Annotated[
        int, typer.Option(help="Processes that play; 0 plays in this one.", min=0)
    ] = 2,
    games_dir: Annotated[
        Path | None, typer.Option(help="Where games are kept; the user's cache if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Make a tiny language model that acts validly and wins seldom: a policy to start from.

    It stands in for a pretrained model where none can be downloaded: 0.7 million weights (with the
    1,024 tokens of the default) and a tokenizer of the environment's own words, cloned from random
    play. The same command goes on where it was interrupted. OUT/model is the result,
    OUT/warmup.json what it came to. Example:

        graphcredit warmup OUT --env textworld --games custom-r5o5q5b1n1 --tasks 12
    """
    from graphcredit.loop.warmup import Warmup, run_warmup

    plan = Warmup(
        directory=directory,
        environment=env,
        games=games,
        num_tasks=tasks,
        num_episodes=episodes,
        max_steps=max_steps,
        num_tokens=vocabulary,
        num_updates=steps,
        template=template,
        seed=seed,
        num_workers=workers,
        games_dir=games_dir,
    )
    with interruptible("the same command goes on"), progress("warmup") as show:
        figures = run_warmup(plan, on_progress=show)
    if as_json:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
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
        out.print(line, **PLAIN)
