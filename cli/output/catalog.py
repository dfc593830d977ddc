"""Bring a store's catalog up to date after a command that wrote credit."""

from graphcredit.cli.output.console import tell
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.sql.catalog import rebuild_catalog


def rebuild(store: Store) -> None:
    """Bring the catalog up to date, or say why it cannot be."""
    try:
        rebuild_catalog(store)
    except InputError as error:
        tell(f"notice: the credit is written, the catalog is not rebuilt: {error}")
