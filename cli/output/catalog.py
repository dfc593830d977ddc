"""Bring a store's catalog up to date after a command that wrote credit."""

from typing import TYPE_CHECKING

from graphcredit.cli.output.console import PLAIN, talk

if TYPE_CHECKING:
    from graphcredit.store import Store


def rebuild(store: "Store") -> None:
    """Bring the catalog up to date, or say why it cannot be."""
    from graphcredit.store.errors import InputError
    from graphcredit.store.sql.catalog import rebuild_catalog

    try:
        rebuild_catalog(store)
    except InputError as error:
        talk.print(f"notice: the credit is written, the catalog is not rebuilt: {error}", **PLAIN)
