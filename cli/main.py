"""The `graphcredit` command: one function per command, each in its own file."""

import sys

import typer

from graphcredit.cli.audit import audit
from graphcredit.cli.check import check
from graphcredit.cli.collect import collect
from graphcredit.cli.credit import credit
from graphcredit.cli.demo import demo
from graphcredit.cli.export import export
from graphcredit.cli.loop import loop
from graphcredit.cli.plain import plain_text
from graphcredit.cli.sql import sql
from graphcredit.cli.train import train
from graphcredit.cli.view import view
from graphcredit.cli.warmup import warmup
from graphcredit.store.errors import (
    GraphcreditError,
    InputError,
    MissingDependencyError,
    interrupts,
)

app = typer.Typer(
    name="graphcredit",
    help="Which steps of an agent's trajectories deserve the credit?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def _graphcredit() -> None:
    """Which steps of an agent's trajectories deserve the credit?"""


app.command("audit")(audit)
app.command("check")(check)
app.command("collect")(collect)
app.command("credit")(credit)
app.command("demo")(demo)
app.command("export")(export)
app.command("loop")(loop)
app.command("sql")(sql)
app.command("train")(train)
app.command("view")(view)
app.command("warmup")(warmup)


def main() -> None:
    """Run the command line; an error raised on purpose becomes one message.

    The exit code is 2 for wrong use, and 1 where the same command may go on.
    """
    try:
        with interrupts():
            app()
    except KeyboardInterrupt:
        sys.stderr.write("graphcredit: interrupted\n")
        raise SystemExit(1) from None
    except GraphcreditError as error:
        message = plain_text(str(error), keep="\n")
        sys.stderr.write(f"graphcredit: {message}\n")
        is_wrong_use = isinstance(error, InputError | MissingDependencyError)
        raise SystemExit(2 if is_wrong_use else 1) from error


if __name__ == "__main__":
    main()
