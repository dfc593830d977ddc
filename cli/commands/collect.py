"""`graphcredit collect`: play tasks and record what happens."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphcredit.cli.output.console import interruptible, out, progress, talk

if TYPE_CHECKING:
    from graphcredit.collector.collect import CollectReport


def collect(
    store: Annotated[Path, typer.Argument(help="The store; made where there is none.")],
    env: Annotated[str, typer.Option(help="What to play: textworld, search.")],
    policy: Annotated[
        str,
        typer.Option(
            help="Who plays: random, oracle:EPSILON, or a language model: hf:PATH, vllm:PATH. "
            "tutor:PATH plays at random, in the model's tokens."
        ),
    ],
    games: Annotated[
        str | None,
        typer.Option(help="custom, coin-l205-s2, 2hop, …, by commas; all kinds if not given."),
    ] = None,
    tasks: Annotated[int, typer.Option(help="Tasks to play.")] = 16,
    group_size: Annotated[int, typer.Option(help="Trajectories of each task.")] = 8,
    max_steps: Annotated[int, typer.Option(help="Steps after which one is truncated.")] = 30,
    seed: Annotated[int, typer.Option(help="Decides games and actions.", min=0)] = 0,
    workers: Annotated[
        int, typer.Option(help="Processes; 0 plays in this one, as a model on a GPU should.")
    ] = 2,
    concurrency: Annotated[
        int | None,
        typer.Option(help="Trajectories a process plays at a time; 64 with a language model."),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help="A language model's prompts: textworld, search, tiny, or a TOML file."),
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="Of a language model; 0 takes the most probable token.")
    ] = 1.0,
    max_new_tokens: Annotated[
        int, typer.Option(help="Where an answer of a language model is cut off.")
    ] = 512,
    dtype: Annotated[
        str,
        typer.Option(
            help="What a language model computes in: float32, bfloat16, or auto: bfloat16 on a GPU."
        ),
    ] = "auto",
    run: Annotated[str, typer.Option(help="The run to record.")] = "r0",
    iteration: Annotated[int, typer.Option(help="The iteration to record.")] = 0,
    allocation: Annotated[
        str | None,
        typer.Option(help="spo3: branch where history/ says that a state is unresolved."),
    ] = None,
    resample_degenerate: Annotated[
        int,
        typer.Option(help="Groups to add to a task while all its returns are equal.", min=0),
    ] = 0,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Record the true remaining plan length; slower.")
    ] = False,
    games_dir: Annotated[
        Path | None, typer.Option(help="Where games are kept; the user's cache if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Play groups of trajectories and record them in a store.

    The same command again plays only what is missing, so it may be interrupted. Example:

        graphcredit collect STORE --env textworld --policy oracle:0.3 --tasks 16 --oracle
    """
    from graphcredit.collector import collect as rollout
    from graphcredit.collector.environments.registry import environment_kind

    chosen = environment_kind(env).list_tasks(games, num_tasks=tasks, seed=seed)
    with interruptible("the same command again goes on"), progress("collect") as show:
        report = rollout.collect(
            store,
            tasks=chosen,
            policy=policy,
            group_size=group_size,
            max_steps=max_steps,
            seed=seed,
            num_workers=workers,
            run_id=run,
            iteration=iteration,
            allocation=allocation,
            num_resamples=resample_degenerate,
            template=template,
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            dtype=dtype,
            concurrency=concurrency,
            record_oracle=oracle,
            cache_dir=games_dir,
            on_progress=lambda done, total: show("collect", done, total),
        )
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
    else:
        show_report(report)
    if report.casualties:
        talk.print("The same command again plays what is missing.")
        raise typer.Exit(1)


def show_report(report: "CollectReport") -> None:
    """Print what was played, then everything that was out of the ordinary."""
    for line in (*report.notes, *report.casualties):
        talk.print(line, markup=False, highlight=False, soft_wrap=True)
    if report.num_recovered_steps:
        talk.print(f"{report.num_recovered_steps} steps recovered from an interrupted collection")
    out.print(
        f"{report.num_trajectories:,} trajectories of {report.num_tasks:,} tasks played, "
        f"{report.num_already_complete:,} were there already"
    )
    if report.num_resampled:
        out.print(f"{report.num_resampled:,} groups added where all returns were equal")
    if report.num_trajectories:
        out.print(
            f"{report.num_success:,} succeeded, {report.num_lost:,} lost, "
            f"{report.num_truncated:,} truncated"
        )
        out.print(
            f"{report.num_steps:,} steps in {report.seconds:.1f} s, "
            f"{report.steps_per_second:,.0f} steps/s"
        )
