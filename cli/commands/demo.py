"""`graphcredit demo`: play real games, assign credit, and show the result, by other commands."""

import shlex
from pathlib import Path
from typing import Annotated

from graphcredit.cli.commands.audit import audit
from graphcredit.cli.commands.collect import collect
from graphcredit.cli.commands.credit import credit
from graphcredit.cli.output.console import is_quiet, say
from graphcredit.cli.parameters import Option, command_of

_COMMANDS = {"collect": collect, "credit": credit, "audit": audit}
_SESSION = (
    "collect {store} --env textworld --tasks {games} --policy oracle:0.85 --oracle --run demo",
    "credit {store} -e grpo,rloo,gigpo,rewardflow,graphgpo",
    "audit {store}",
)


def demo(
    store: Annotated[Path, Option(help="Where to keep the rollouts.")] = Path("demo-store"),
    games: Annotated[int, Option(help="Games to play.", min=1)] = 16,
) -> None:
    """Play TextWorld games, credit every step, and judge the credit by what the games know.

    It shows the three commands that it runs. The policy takes the shortest path with probability
    0.15 and otherwise acts at random. The store is kept, for `graphcredit view` and all others.

    Example:
        graphcredit demo --store my-store --games 8
    """
    for line in _SESSION:
        command = line.format(store=shlex.quote(str(store)), games=games)
        say(f"$ graphcredit {command}")
        name, *arguments = shlex.split(command)
        run = command_of(_COMMANDS[name], name)
        run.main([*arguments, *["--quiet"] * is_quiet()], standalone_mode=False)
        say()
