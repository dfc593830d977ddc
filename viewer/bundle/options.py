"""The options of a bundle. The flags of `graphcredit view` are made from them."""

from typing import ClassVar

from graphcredit.store.options import Count, Options, Texts


class BundleChoice(Options):
    """What to put into a bundle."""

    owner: ClassVar[str] = "view"

    run_id: str | None = None
    """The run; by default the last by name."""
    iteration: Count | None = None
    """Only this iteration; by default all of the run."""
    estimator: str | None = None
    """Whose credit to draw and rank; by default the most telling of each iteration. Every page has
    that of all."""
    tasks: Texts = ()
    """Only this task."""
    find: str | None = None
    """Only tasks whose names contain this text, in any case."""
    show: str = "all"
    """Only such tasks: mixed outcomes, never solved, always solved, degenerate, or credit out of
    date."""

    def words(self) -> str:
        """Return what of a run was chosen; empty for everything."""
        parts = (
            f"iteration {self.iteration}" if self.iteration is not None else "",
            f"tasks {', '.join(self.tasks)}" if self.tasks else "",
            f"names that contain {self.find!r}" if self.find else "",
            f"tasks of the kind {self.show!r}" if self.show != "all" else "",
        )
        return ", ".join(filter(None, parts))
