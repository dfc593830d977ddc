"""Check that the files that steps name as their images are there."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.violations import SHOWN_ROWS, Violation
from graphcredit.store.images import is_image_path
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet


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
