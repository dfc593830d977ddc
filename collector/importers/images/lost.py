"""Images of a log that are not kept, and why."""

from dataclasses import dataclass

ELSEWHERE = "image at an address that is not fetched"
MISSING = "image that is missing"
NOT_FOLLOWED = "image in a file that may not be read"
BROKEN = "image that is damaged or too large"
UNKNOWN = "image that is no PNG, JPEG, GIF or WebP"


@dataclass(frozen=True, kw_only=True, slots=True)
class LostImage:
    """An image that is not kept."""

    reason: str
    """One of those above, by which images are counted."""
    detail: str
    """What must hold, and what was found."""


class ImageError(Exception):
    """An image cannot be kept."""

    def __init__(self, reason: str, detail: str) -> None:
        """Say why, as `LostImage` does."""
        super().__init__(detail)
        self.lost = LostImage(reason=reason, detail=detail)
