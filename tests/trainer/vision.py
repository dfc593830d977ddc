"""Tiny vision-language models and the images that they look at."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from tests.trainer.models import NUM_TOKENS, chat_tokenizer, tiny_tokenizer

IMAGE, VIDEO, BEGIN, END = 93, 94, 95, 96
"""Special tokens."""
PATCH, MERGE = 4, 2
SIDE = PATCH * MERGE
"""Pixels along a side of what one token stands for."""

_TEXT: dict[str, Any] = {
    "vocab_size": NUM_TOKENS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_VISION: dict[str, dict[str, Any]] = {
    "qwen2_5_vl": {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": 32,
        "window_size": 2 * SIDE,
        "fullatt_block_indexes": [1],
    },
    "qwen2_vl": {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2},
}
KINDS = tuple(_VISION)


def save_tiny_seer(
    directory: Path, kind: str = "qwen2_5_vl", *, seed: int = 0, **changes: Any
) -> str:
    """Write a tiny vision-language model, its tokenizer and its processor; return its path."""
    shape = {"patch_size": PATCH, "spatial_merge_size": MERGE, "initializer_range": 0.2}
    settings: dict[str, Any] = {
        "text_config": _TEXT,
        "vision_config": {**_VISION[kind], **shape},
        "image_token_id": IMAGE,
        "video_token_id": VIDEO,
        "vision_start_token_id": BEGIN,
        "vision_end_token_id": END,
    }
    config = AutoConfig.for_model(kind, **settings | changes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.model.visual.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape))
    model.save_pretrained(directory)
    tiny_tokenizer(NUM_TOKENS).save_pretrained(directory)
    size = {"shortest_edge": SIDE**2, "longest_edge": 64 * SIDE**2}
    processor = Qwen2VLImageProcessorPil(patch_size=PATCH, merge_size=MERGE, size=size)
    processor.save_pretrained(directory)
    return str(directory)


SEEN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for part in m.content %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% endif %}"
)
"""A chat template that shows images as Qwen2.5-VL's does."""
_NAMES = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")


def save_chat_seer(directory: Path, kind: str = "qwen2_5_vl", template: str = SEEN) -> str:
    """Write a tiny vision-language model whose tokenizer has a chat template; return its path."""
    tokenizer = chat_tokenizer(template)
    tokenizer.add_special_tokens({"additional_special_tokens": list(_NAMES)}, False)
    ids: Any = tokenizer.convert_tokens_to_ids(list(_NAMES))
    image, video, begin, end = ids
    tokens = {"image_token_id": image, "video_token_id": video}
    borders = {"vision_start_token_id": begin, "vision_end_token_id": end}
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 1024}
    save_tiny_seer(directory, kind, text_config=_TEXT | sizes, **tokens, **borders)
    tokenizer.save_pretrained(directory)
    return str(directory)


def picture(rows: int, columns: int, *, seed: int = 0, kind: str = "PNG") -> bytes:
    """Return an image file of rows and columns of tokens."""
    shape = (rows * SIDE, columns * SIDE, 3)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def prompt(*parts: Sequence[int] | tuple[int, int]) -> list[int]:
    """Return token ids: lists are text, tuples are rows and columns of an image."""
    ids: list[int] = []
    for part in parts:
        if isinstance(part, tuple):
            ids += [BEGIN, *[IMAGE] * (part[0] * part[1]), END]
        else:
            ids += part
    return ids
