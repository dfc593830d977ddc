"""`graphcredit estimators`: list the estimators, each with formula, options and paper."""

import inspect
from dataclasses import asdict
from typing import Annotated, Any

from graphcredit.cli.options import AsJson
from graphcredit.cli.output.console import print_json, say
from graphcredit.cli.parameters import Argument
from graphcredit.credit.estimators.table import Estimator, all_estimators, estimator_named
from graphcredit.store.options import described


def estimators(
    name: Annotated[str | None, Argument(help="One of them, in full.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the estimators, or show one: its formula, its options, its columns and its paper.

    Example: graphcredit estimators reach
    """
    if as_json:
        rows = [estimator_named(name)] if name else all_estimators().values()
        print_json([_as_json(row) for row in rows])
        return
    lines = _in_full(estimator_named(name)) if name else map(_in_short, all_estimators().values())
    for line in "\n".join(lines).split("\n"):
        say(line)


def _as_json(row: Estimator) -> dict[str, Any]:
    return {
        "name": row.name,
        "made_of": row.matter,
        "specification": _specification(row),
        "columns": list(row.columns),
        "needs": [each.name for each in row.inputs],
        "paper": row.paper,
        "options": [asdict(option) for option in described(row.options)],
    }


def _in_short(row: Estimator) -> str:
    idea = _specification(row).partition("\n")[0]
    return f"{row.name:<12}{idea}\n{'':<12}made of {row.matter}"


def _in_full(row: Estimator) -> list[str]:
    needs = ", ".join(each.name for each in row.inputs) or "nothing beyond the steps of its group"
    lines = [_specification(row), "", f"columns: {', '.join(row.columns)}"]
    lines += [f"made of: {row.matter}", *_blind(row), f"needs: {needs}"]
    lines += [f"paper: {row.paper}", "", f"options, as --set {row.name}.NAME=VALUE:"]
    for option in described(row.options):
        lines += [f"  {option.name} = {_shown(option.default)}", f"      {option.text}"]
    return lines


def _blind(row: Estimator) -> list[str]:
    parts = ", ".join(f"{row.name}_{part}" for part in row.by_wins(row.options()))
    return [f"knows who won, and no returns: {parts}"] if parts else []


def _specification(row: Estimator) -> str:
    return inspect.getdoc(row.options) or ""


def _shown(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)
