"""Save a trained model as a Hugging Face directory, including the tokenizer."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor

from graphcredit.store.files.atomic import atomic_directory
from graphcredit.trainer.model.loading import load_weights, quiet_peft, tokenizer_files

ADAPTER = "adapter"
"""Directory within the model's own that holds the LoRA adapter, as peft loads it."""


def save_model(
    out: Path, model: Any, weights: Mapping[str, Tensor], source: Path, *, dtype: str
) -> None:
    """Write a directory that `from_pretrained` and vLLM load; it appears whole or not at all.

    With adapters it holds the merged model, and the adapter alone in `adapter/`.

    Args:
        out: The directory; replaced if it is there.
        model: The transformers model, or the peft model, whose configuration counts; its own
            weights do not.
        weights: Name in `model` to value: all of them, or those of the adapter.
        source: The model it was made from: its tokenizer's files are copied, an adapter is merged
            into its weights.
        dtype: Of the weights on disk, float32 or bfloat16.
    """
    with atomic_directory(out) as directory:
        if isinstance(model, PeftModel):
            adapter = directory / ADAPTER
            model.save_pretrained(str(adapter), state_dict=dict(weights))
            model = _merged(source, adapter)
            weights = model.state_dict(keep_vars=True)
        _write(model, weights, directory, dtype)
        for path in tokenizer_files(source):
            shutil.copyfile(path, directory / path.name)


def _merged(source: Path, adapter: Path) -> Any:
    with quiet_peft():
        adapted: Any = PeftModel.from_pretrained(load_weights(source), str(adapter))
    return adapted.merge_and_unload()


def _write(model: Any, weights: Mapping[str, Tensor], directory: Path, dtype: str) -> None:
    kind: torch.dtype = getattr(torch, dtype)
    converted: dict[int, Tensor] = {}
    for tensor in weights.values():
        # Tied names share one tensor, and must still do so afterwards.
        whole = tensor.detach()
        converted[id(tensor)] = whole.to(kind) if whole.is_floating_point() else whole
    named = {name: converted[id(tensor)] for name, tensor in weights.items()}
    model.save_pretrained(directory, state_dict=named)
    path = directory / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "dtype": dtype}, indent=2) + "\n", encoding="utf-8")
