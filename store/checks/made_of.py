"""Check an iteration against what it is made of: its images, and the sources of its credit.

The credit must be neither stale nor mixed, and its summary not stale.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.violations import SHOWN_ROWS, Violation
from graphcredit.store.images import is_image_path
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.freshness import freshness_of
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.provenance.summary import summary_state

_RULES = {"stale": "stale_credit", "mixed": "mixed_credit"}


def check_age(
    store: Store, sources: Sources, steps: Sequence[TableFile], damaged: Collection[str]
) -> Iterable[Violation]:
    """Yield a violation for each estimator whose credit is stale or mixed.

    Credit is stale if its steps changed since, and mixed if a killed run replaced only some shards.
    The violation is about all credit shards of the iteration, so it names their folder.

    Args:
        store: The store.
        sources: The marks of the store's current data.
        steps: The readable step shards of one iteration.
        damaged: Files that cannot be read, relative to the store.
    """
    names = sorted(f"credit/{file.relative.partition('/')[2]}" for file in steps)
    # Look at the files now, not at the earlier list: credit may have been written meanwhile.
    paths = [None if name in damaged else store.root / name for name in names]
    there = [path for path in paths if path and path.exists()]
    if not there:
        return
    run_id, iteration = steps[0].run_id, steps[0].iteration
    assert run_id is not None, "it is in the path of a step shard"
    assert iteration is not None, "likewise"
    folders = sorted({path.parent.relative_to(store.root).as_posix() for path in there})
    for state in freshness_of(sources, run_id, iteration, paths):
        if state.state in _RULES:
            rule = FILE_RULES[_RULES[state.state]]
            why = f"credit by {state.estimator}: {state.reason}"
            yield from (Violation(rule=rule, file=folder, found=why) for folder in folders)


def stale_summary(store: Store, files: Sequence[TableFile]) -> list[TableFile]:
    """Return the tables of the summary of an iteration if it is not made of what there is.

    Args:
        store: The store.
        files: The readable files of one iteration.
    """
    shards = [
        Shard(
            run_id=file.run_id or "",
            iteration=file.iteration or 0,
            path=file.path,
            credit_path=store.root / "credit" / file.path.relative_to(store.root / "steps"),
        )
        for file in files
        if file.kind == "steps"
    ]
    if shards and summary_state(store, shards) == "current":
        return []
    return [file for file in files if file.kind.startswith("summary_")]


def stale_violations(tables: Iterable[TableFile]) -> list[Violation]:
    """Return the violation of a stale summary, which names the folder of its tables."""
    rule, why = FILE_RULES["stale_summary"], "its tables are of other shards, or one is missing"
    folders = sorted({file.relative.rpartition("/")[0] for file in tables})
    return [Violation(rule=rule, file=folder, found=why) for folder in folders]


def check_images(store: Store, file: TableFile) -> Iterator[Violation]:
    """Yield the violation of a step shard with images whose files are missing.

    Args:
        store: The store.
        file: A step shard that can be read. Paths that are none of images are left to another rule.
    """
    missing: dict[str, bool] = {}
    rows: list[int] = []
    first = 0
    with open_parquet(file.path) as parquet:
        leaf = _leaf(parquet)
        for group in range(parquet.num_row_groups if leaf else 0):
            column = parquet.read_row_group(group, columns=[leaf])["images"].combine_chunks()
            for row, path in _paths(column):
                if path not in missing:
                    missing[path] = is_image_path(path) and not (store.root / path).is_file()
                if missing[path] and first + row not in rows[-1:]:
                    rows.append(first + row)
            first += len(column)
    if rows:
        names = [path for path, is_missing in missing.items() if is_missing]
        yield Violation(
            rule=FILE_RULES["image_file"],
            file=file.relative,
            found=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            rows=tuple(rows[:SHOWN_ROWS]),
            num_rows=len(rows),
        )


def _leaf(parquet: pq.ParquetFile) -> str | None:
    """Return where Parquet has the paths of images, so that the bytes beside them are not read."""
    schema = parquet.schema
    names = (schema.column(number).path for number in range(len(schema.names)))
    return next((n for n in names if n.startswith("images.") and n.endswith(".path")), None)


def _paths(column: pa.ListArray) -> Iterator[tuple[int, str]]:
    """Yield the row and the path of each image that has one."""
    paths = column.flatten().field("path")
    if paths.null_count < len(paths):
        for row, path in zip(column.value_parent_indices().to_pylist(), paths, strict=True):
            if path.is_valid:
                yield row, path.as_py()
