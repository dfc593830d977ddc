"""The `graphcredit` command: one function per command, each in its own file."""

import sys

import typer

from graphcredit.cli.credit import credit
from graphcredit.store.errors import GraphcreditError

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


app.command("credit")(credit)


def main() -> None:
    """Run the command line; an error raised on purpose becomes one message and exit code 2."""
    try:
        app()
    except GraphcreditError as error:
        sys.stderr.write(f"graphcredit: {error}\n")
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
