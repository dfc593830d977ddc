"""Save a trained model as a Hugging Face directory, including the tokenizer."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion

from graphcredit.store.files.atomic import atomic_directory
from graphcredit.trainer.model.source import tokenizer_files

ADAPTER = "adapter"
"""Directory within the model's own that holds the LoRA adapter, as peft loads it."""

FILE_BYTES = 2 << 30
"""Bytes of a file of weights, at most, unless a layer is larger: so much is in memory at once."""

_LAYER = re.compile(r".*?\.\d+\.")
_LORA = re.compile(r"\.(?:base_layer|lora_[AB])\.")
_PREFIX = "base_model.model."
"""Before the names of a transformers model in a peft model."""

Named = Iterable[tuple[str, Tensor]]


def save_model(
    out: Path, model: Any, weights: Named, source: Path, chat_template: str | None = None
) -> None:
    """Write a directory that `from_pretrained` and vLLM load; it appears whole or not at all.

    With adapters it holds the merged model, and the adapter alone in `adapter/`.

    Args:
        out: The directory; replaced if it is there.
        model: The transformers model, or the peft model, whose configuration counts; its own
            weights do not.
        weights: Name in `model` and value of all of them, in the order of `distinct`, each asked
            for once and kept for one file.
        source: The model it was made from, whose tokenizer's files are copied.
        chat_template: The one that it was trained with in place of that of its tokenizer.
    """
    with atomic_directory(out) as directory:
        if hasattr(model, "get_base_model"):  # of peft, which is loaded with adapters alone
            adapter: dict[str, Tensor] = {}
            _write(model.get_base_model(), merged(model, weights, adapter), directory)
            model.save_pretrained(str(directory / ADAPTER), state_dict=adapter)
        else:
            _write(model, weights, directory)
        for path in tokenizer_files(source):
            shutil.copyfile(path, directory / path.name)
        if chat_template is not None:
            (directory / "chat_template.jinja").write_text(chat_template, encoding="utf-8")
        # Safetensors writes files that only their owner may read: a server may be another user.
        for path in directory.rglob("*.safetensors"):
            path.chmod(directory.stat().st_mode & 0o666)


def distinct(model: Any, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor once; of tied ones, under the name that transformers ties the others to."""
    tied: Mapping[str, str] = getattr(model, "all_tied_weights_keys", {})
    seen: set[int] = set()
    for name, tensor in tensors.items():
        is_copy = tensor is tensors.get(tied.get(name, ""))
        if not is_copy and id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def merged(model: Any, weights: Named, adapter: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a model with its LoRA adapter merged into them, one module at a time.

    Args:
        model: The peft model.
        weights: Name in it and value: those of a module one after the other.
        adapter: Gets the weights of the adapter.
    """
    for module, group in groupby(weights, key=lambda item: _LORA.split(item[0])[0]):
        tensors = dict(group)
        lora = {name: tensor for name, tensor in tensors.items() if ".lora_" in name}
        adapter |= lora
        for name, tensor in tensors.items():
            if name in lora:
                continue
            if lora and name.endswith(".weight"):
                tensor = tensor + _delta(model.get_submodule(module), lora)
            yield name.removeprefix(_PREFIX).replace(".base_layer.", "."), tensor


def _delta(layer: Any, lora: Mapping[str, Tensor]) -> Tensor:
    """Return the change of a weight by its LoRA layer, as peft computes it."""
    down, up = (next(t for n, t in lora.items() if f".lora_{which}." in n) for which in "AB")
    (scaling,) = layer.scaling.values()
    product = up @ down
    return (product.T if layer.fan_in_fan_out else product) * scaling


def _write(model: Any, weights: Named, directory: Path) -> None:
    ignored = {*(model._keys_to_ignore_on_save or ())}
    kept = ((name, tensor.detach()) for name, tensor in weights if name not in ignored)
    files: list[list[str]] = []
    for number, tensors in enumerate(_files(model, kept)):
        save_file(tensors, directory / f"part-{number}", metadata={"format": "pt"})
        files.append(list(tensors))
    _name_files(directory, files)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(directory)
    if model.can_generate():
        model.generation_config.save_pretrained(directory)
    path = directory / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "dtype": "float32"}, indent=2) + "\n", encoding="utf-8")


def _files(model: Any, weights: Named) -> Iterator[dict[str, Tensor]]:
    """Yield the tensors of each file, named and shaped as transformers has them on disk.

    A layer is in one file: some families split or join the tensors of a layer on disk.
    """
    file: dict[str, Tensor] = {}
    for _, layer in groupby(weights, key=lambda item: _unit(item[0])):
        whole = revert_weight_conversion(model, dict(layer))
        on_disk = {name: tensor.contiguous() for name, tensor in whole.items()}
        if file and _num_bytes(file) + _num_bytes(on_disk) > FILE_BYTES:
            yield file
            file = {}
        file |= on_disk
    yield file


def _unit(name: str) -> str:
    """Return the layer that a tensor is of, or its own name."""
    match = _LAYER.match(name)
    return match[0] if match else name


def _num_bytes(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())


def _name_files(directory: Path, names: list[list[str]]) -> None:
    """Give the files the names that transformers looks for, with an index if they are several."""
    if len(names) == 1:
        (directory / "part-0").rename(directory / "model.safetensors")
        return
    files: dict[str, str] = {}
    num_bytes = 0
    for number, of_file in enumerate(names):
        file = f"model-{number + 1:05d}-of-{len(names):05d}.safetensors"
        num_bytes += (directory / f"part-{number}").stat().st_size
        (directory / f"part-{number}").rename(directory / file)
        files |= dict.fromkeys(of_file, file)
    index = {"metadata": {"total_size": num_bytes}, "weight_map": files}
    text = json.dumps(index, indent=2) + "\n"
    (directory / "model.safetensors.index.json").write_text(text, encoding="utf-8")
