"""The trainer: enriched shards in, a better policy out. Only this folder imports torch.

`train`, which needs torch, is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from graphcredit.trainer.config import TrainConfig

if TYPE_CHECKING:
    from graphcredit.trainer.training import train

__all__ = ["TrainConfig", "train"]


def __getattr__(name: str) -> Any:
    if name == "train":
        from graphcredit.trainer.training import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
