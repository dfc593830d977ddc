"""Which steps have an answer that a limit cut, by what an import has noted in `extra`."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from graphcredit.store.files.parse import parse_object
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.trainer.data.ragged import Bools

_COLUMNS = ("trajectory_id", "extra")


def cut_steps(paths: Sequence[Path], rule: Literal["keep", "mask", "drop"]) -> Mapping[Path, Bools]:
    """Return of each row of some shards whether it is left out.

    Args:
        paths: The step shards.
        rule: Keep leaves out none, mask the answers that were cut, drop their whole trajectories.

    Raises:
        SchemaError: A shard cannot be read.
    """
    if rule == "keep":
        return {}
    trajectories: dict[Path, list[str]] = {}
    cut: dict[Path, Bools] = {}
    for path in paths:
        with open_parquet(path) as file:
            present = [name for name in _COLUMNS if name in file.schema_arrow.names]
            table = conform(file.read(columns=present), step_columns(_COLUMNS), where=str(path))
        trajectories[path] = table["trajectory_id"].to_pylist()
        # A text that has the words is parsed, to tell its own field from one of a message.
        may_be = numpy_of(pc.match_substring(table["extra"], '"cut":true'))
        cut[path] = np.array(may_be)
        for row in np.flatnonzero(may_be).tolist():
            cut[path][row] = parse_object(table["extra"][row].as_py()).get("cut") is True
    if rule == "mask":
        return cut
    of = {trajectories[path][row] for path in paths for row in np.flatnonzero(cut[path]).tolist()}
    return {path: np.array([name in of for name in names]) for path, names in trajectories.items()}
