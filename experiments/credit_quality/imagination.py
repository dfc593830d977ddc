r"""What imagined ways and the search for what is new are worth to the step part of `reach`.

    names() { python -c "from experiments.credit_quality.games import DEVELOPMENT as d; \
        print(','.join(d))"; }
    graphcredit collect log/textworld --env textworld --games "$(names)" --tasks 120 \
        --max-steps 25 --policy oracle:0.85 --oracle
    graphcredit collect log/alfworld --env alfworld --games valid_train --tasks 90 \
        --max-steps 50 --policy oracle:0.7 --oracle
    boards() { echo {6x6b1,7x7b2}-s{{5000..5019},{6000..6059}} | tr ' ' ,; }
    graphcredit collect log/sokoban --env sokoban --games "$(boards)" --tasks 160 \
        --max-steps 40 --policy oracle:0.7 --oracle
    python -m experiments.credit_quality.imagination log/*

None of these games judges estimators. A number is the mean over games of Spearman's rank
correlation with true progress (`graphcredit.credit.audit.agreement`): with the logged lists, and
without any. In brackets it is over the games that nobody won.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa

from graphcredit.credit.audit.agreement import agreements
from graphcredit.credit.estimators import progress as module
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.inputs.table import ANALOGIES
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store import open_store
from graphcredit.store.sql.catalog import connect

VARIANTS: Mapping[str, Mapping[str, float]] = {
    "always imagined": {"AGREEMENT": 0.0},
    "… where half of the known steps agree": {"AGREEMENT": 0.5},
    "… 0.6": {"AGREEMENT": 0.6},
    "**… 0.7: reach**": {},
    "… 0.8": {"AGREEMENT": 0.8},
    "… 0.9": {"AGREEMENT": 0.9},
    "never imagined": {"AGREEMENT": 2.0},
    "reach, C = 1": {"SEARCH": 1.0},
    "reach, C = 10": {"SEARCH": 10.0},
    "reach, C = 100": {"SEARCH": 100.0},
}
"""Title to constants of `credit/estimators/progress.py`."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", type=Path, nargs="+")
    options = parser.parse_args()
    columns: dict[str, dict[str, str]] = {}
    for path in options.stores:
        with connect(open_store(path)) as connection:
            steps = connection.sql("SELECT * FROM steps").to_arrow_table()
        place = steps.schema.get_field_index("admissible_actions")
        nothing = pa.nulls(len(steps), steps.schema.field(place).type)
        columns[path.name] = judge(steps)
        columns[f"{path.name}, no lists"] = judge(
            steps.set_column(place, steps.field(place), nothing)
        )
    print(f"| step part | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for name in next(iter(columns.values())):
        print(f"| {name} | {' | '.join(found[name] for found in columns.values())} |")


def judge(steps: pa.Table) -> dict[str, str]:
    """Return a cell for each variant."""
    assembly = assemble(steps, inputs=[ANALOGIES])
    batch = assembly.batch
    parts = {"GraphGPO": GraphGpo().assign(batch)["step_advantage"]}
    for name, constants in VARIANTS.items():
        with patch.dict(vars(module), constants):
            parts[name] = Reach().assign(batch)["step_advantage"]
    return agreement(steps.take(pa.array(assembly.steps.row)), parts)


def agreement(judged: pa.Table, parts: Mapping[str, Floats]) -> dict[str, str]:
    """Return how each credit agrees with true progress.

    Args:
        judged: Steps.
        parts: Name to [num_steps] values.
    """
    for number, part in enumerate(parts.values()):
        judged = judged.append_column(f"v{number}", pa.array(part.astype(np.float32)))
    with duckdb.connect() as connection:
        connection.register("enriched", judged)
        connection.execute(
            "CREATE VIEW trajectories AS SELECT run_id, iteration, trajectory_id, true AS "
            "is_complete, bool_or(success) AS success FROM enriched GROUP BY ALL"
        )
        won = connection.sql("SELECT DISTINCT task_id FROM enriched WHERE success").fetchall()
        tasks = {task for (task,) in won}
        cells: dict[str, str] = {}
        for number, name in enumerate(parts):
            found = [
                (own.task_id, own.over_all)
                for own in agreements(connection, f"v{number}")
                if own.over_all is not None
            ]
            lost = [value for task, value in found if task not in tasks]
            mean = np.mean([value for _, value in found])
            cells[name] = f"{mean:.2f} ({np.mean(lost):.2f})" if lost else f"{mean:.2f}"
        return cells


if __name__ == "__main__":
    main()
