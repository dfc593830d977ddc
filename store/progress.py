"""Progress of a long piece of work: one convention for all who report it."""

from typing import Protocol


class OnProgress(Protocol):
    """Called with the progress of some work."""

    def __call__(self, what: str, done: float = 0, total: int = 0, note: str = "", /) -> None:
        """Take note of the progress.

        Args:
            what: The stage; its clock starts with the first call that names it.
            done: Units of the stage that are done.
            total: Units of the stage; 0 if unknown, 1 if `done` is a share.
            note: Text beside the stage, for example the latest loss.
        """
        ...


def silent(what: str, done: float = 0, total: int = 0, note: str = "", /) -> None:
    """Ignore the progress."""
