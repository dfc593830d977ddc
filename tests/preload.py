"""The modules that each process of `FORKS` has at its start: it is a copy of one with them."""

import gc
from importlib import import_module

from transformers.conversion_mapping import get_checkpoint_conversion_mapping

RANKS = ("loading_worker", "shard_worker")
WORK = (
    *(f"tests.trainer.{name}" for name in RANKS),
    *("tests.collector.crash_worker", "tests.cli.loop_worlds"),
    *("tests.mixed_kills", "tests.resumed_kills"),
)
"""Where the functions are that the processes run."""
USED_LATER = (
    *(f"transformers.models.{kind}.modeling_{kind}" for kind in ("llama", "mixtral", "qwen2")),
    *("pandas", "pyarrow.dataset", "pyarrow.pandas_compat"),
    *("graphcredit.trainer.training",),
)
"""What they import where they first use it."""

for name in (*WORK, *USED_LATER):
    import_module(name)
get_checkpoint_conversion_mapping("qwen2")
# Collecting garbage would look at all of it again in each process, and so copy it.
gc.collect()
gc.freeze()
