"""What each process of `run_ranks` has at its start: it is a copy of one that loaded this."""

import gc
from importlib import import_module

from transformers.conversion_mapping import get_checkpoint_conversion_mapping

WORK = ("context_worker", "loading_worker", "nodes_worker", "rank_worker", "shard_worker")
USED_LATER = (
    *(f"transformers.models.{kind}.modeling_{kind}" for kind in ("llama", "mixtral", "qwen2")),
    *("pandas", "pyarrow.dataset", "pyarrow.pandas_compat"),
)
"""What transformers and pyarrow import where they first use it."""

for name in (*(f"tests.trainer.{name}" for name in WORK), *USED_LATER):
    import_module(name)
get_checkpoint_conversion_mapping("qwen2")
# Collecting garbage would look at all of it again in each process, and so copy it.
gc.collect()
gc.freeze()
