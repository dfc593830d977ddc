"""The commands of `graphcredit`: a table of all, each loaded only when it is called."""

import signal
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from graphcredit.cli.parameters import command_of

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "why": "Say what failures do that wins do not, which decisions mattered, what to distrust.",
        "import": "Make a store of the log of another program.",
        "credit": "Assign credit to every step of the complete rollouts and write it beside them.",
        "evidence": "Say which definition of a state tells how rollouts end, by the log alone.",
        "audit": "Check the groups and the credit of a store.",
        "sql": "Query a store's views with SQL.",
        "view": "Show in a browser on this machine which steps got credit, and why.",
        "export": "Write steps with their credit for other tools, or credit beside the ids of the "
        "log.",
    },
    "Train": {
        "train": "Improve a policy on the steps of an iteration, weighed by one advantage column.",
        "loop": "Improve a policy: play, assign credit, train, and again with the better policy.",
        "collect": "Play groups of rollouts and record them in a store.",
        "demo": "Play TextWorld games, credit every step, and judge the credit by what the games "
        "know.",
    },
    "Keep": {
        "check": "Check every rule of the store's format, and the digest of every file.",
        "states": "Show which texts of a task became one state.",
        "estimators": "List the estimators, or show one: its formula, its options, its columns and "
        "its paper.",
        "er-graph": "Draw the entities and relations that `sapo` needs from the texts of a store.",
    },
}
"""Title to the name and the first sentence of the help of each command. The function and its module
in `commands/` are called as the command, `import_` where Python has the word for itself, and `_`
stands for `-`."""

COMMANDS: Mapping[str, str] = {
    name: said for group in GROUPS.values() for name, said in group.items()
}
"""All of them."""


class LazyCommand(click.Command):
    """A command that is known by its name and its first sentence until it is called."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Load the command, and parse its arguments."""
        return load(self.name or "").make_context(*args, **settings)


class CommandTable(click.Group):
    """The group of all commands."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.commands = {
            name: LazyCommand(name, short_help=sentence) for name, sentence in COMMANDS.items()
        }

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the exit code after Ctrl-C is 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(128 + signal.SIGINT) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of their groups."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, each command with its whole first sentence."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), said) for name, said in commands.items()])


def load(name: str) -> click.Command:
    """Import a command, and return it with its parameters."""
    attribute = "import_" if name == "import" else name.replace("-", "_")
    module = import_module(f"graphcredit.cli.commands.{attribute}")
    return command_of(getattr(module, attribute), name)
