"""What is done to a segment with what was learned."""

from dataclasses import dataclass

from graphcredit.credit.merging.segments.noise.idle.claims import Reduction
from graphcredit.credit.merging.segments.noise.idle.echoes import EchoRules
from graphcredit.credit.merging.segments.text.parse import Segment


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleRules:
    """What is left out, and what might be."""

    reductions: tuple[Reduction, ...] = ()
    """Applied one after the other."""
    open: frozenset[Segment] = frozenset()
    """What is left of segments that may be idle, but of which too little was seen."""

    @property
    def drops_echoes(self) -> bool:
        """Whether there are echoes of actions, and they are left out."""
        return any(isinstance(own, EchoRules) and own.frames.all for own in self.reductions)

    def apply(self, part: Segment) -> Segment:
        """Return a segment without what is idle."""
        for reduction in self.reductions:
            part = reduction.apply(part)
        return part

    def then(self, later: "IdleRules") -> "IdleRules":
        """Return these rules, and others after them."""
        return IdleRules(
            reductions=(*self.reductions, *later.reductions),
            open=frozenset(map(later.apply, self.open)) | later.open,
        )

    def is_open(self, part: Segment) -> bool:
        """Return whether a segment that these rules have left may be idle."""
        return part in self.open
