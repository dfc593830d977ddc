"""A policy folder of a model in one GGUF file, as packages and llama.cpp have them.

    pip install gguf
    python examples/policy_from_gguf.py SmolLM2-135M-Instruct.Q4_1.gguf smol

Quantised weights become bfloat16, so the folder is larger than the file. The tokenizer and the chat
template are those in the file; nothing is downloaded, and no code in it is run.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from graphcredit.store.files.atomic import atomic_directory


def convert(file: Path, out: Path) -> None:
    """Write the folder of a model, whole or not at all.

    Raises:
        SystemExit: There is no such file, it has no chat template, or the folder is there.
    """
    if not file.is_file():
        raise SystemExit(f"a model must be one GGUF file, but there is no file {file}")
    if out.exists():
        raise SystemExit(f"the folder must be new, but {out} exists")
    where: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    words = AutoTokenizer.from_pretrained(str(file.parent), **where)
    if not words.chat_template:
        raise SystemExit(f"the model must have a chat template, but {file} has none")
    model = AutoModelForCausalLM.from_pretrained(
        str(file.parent),
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        **where,
    )
    with atomic_directory(out, may_replace=False) as folder:
        words.save_pretrained(str(folder))
        model.save_pretrained(str(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    convert(**vars(parser.parse_args()))
