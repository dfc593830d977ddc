"""What is judged: definitions of a state."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store.layout import LOGGED_STATE


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """A definition of a state: which text it has, and which texts are one."""

    name: str
    state: str = LOGGED_STATE
    """Which states of the store it takes."""
    merge: MergeSettings = field(default_factory=MergeSettings)
    columns: tuple[str, ...] = ()
    """Step columns that its texts are made of, besides those of every credit run."""
    read: Callable[[pa.Table], Any] = bool
    """What it makes of the steps first; done once for all definitions that have the same."""
    restate: Callable[..., pa.Table] = lambda steps, **_: steps
    """Returns the steps of whole groups with its texts as `state` and `next_state`; `read` is what
    they were made."""
    is_default: bool = False
    """Whether it is taken where the log does not tell."""
    omit_alike: bool = False
    """Whether it is left out where its states are those of the first definition."""
