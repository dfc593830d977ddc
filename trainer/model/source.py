"""The directory that a model is loaded from: where it is, its configuration, its tokenizer."""

from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.model.vision import ImageReader, has_vision

_TOKENIZER_FILES = (
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "*.tiktoken",
    "*.model",
    "*processor_config.json",
)


def find_model(name: str) -> Path:
    """Return the directory of a model that is on this machine.

    Raises:
        InputError: It is neither a directory nor a name in the local Hugging Face cache.
    """
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError) as error:
        raise InputError(
            f"the model must be a directory or a name in the local Hugging Face cache, but {name} "
            f"is neither. Nothing is downloaded while training: `hf download {name}` does it before"
        ) from error


def source_rule(directory: Path) -> str:
    """Return the rule for a model's directory, for errors of libraries that read it."""
    return f"{directory} must hold a causal LM that transformers knows, without code of its own"


def read_config(directory: Path) -> Any:
    """Return the configuration of a model; errors are those of transformers."""
    return AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)


def load_image_reader(name: str) -> ImageReader | None:
    """Return the reader of a model's images; None if its family is none that takes images.

    Raises:
        InputError: There is no such model.
    """
    directory = find_model(name)
    with library_errors(source_rule(directory)):
        config = read_config(directory)
    return ImageReader(directory, config) if has_vision(config) else None


def models_of(config: Any) -> Any:
    """Return the automatic class of transformers that loads a model."""
    return AutoModelForImageTextToText if has_vision(config) else AutoModelForCausalLM


def tokenizer_files(directory: Path) -> list[Path]:
    """Return the files of a model's directory that make its tokenizer, and its processor."""
    files = {path for pattern in _TOKENIZER_FILES for path in directory.glob(pattern)}
    return sorted(path for path in files if path.is_file())


def tokenizer_notices(directory: Path, num_rows: int) -> list[str]:
    """Return notices about a model's tokenizer, which training does not use.

    The tokenizer is read from its file, because transformers may add tokens when it opens one.
    """
    path = directory / "tokenizer.json"
    if not path.is_file():
        return []
    try:
        last = max(Tokenizer.from_file(str(path)).get_vocab().values(), default=-1)
    except Exception as error:  # tokenizers raises nothing narrower
        return [f"{path} is kept as it is, but cannot be read: {error}"]
    if last < num_rows:
        return []
    return [
        f"{path} has tokens up to {last}, and the model embeds only 0 to {num_rows - 1}: training "
        "uses the ids of the log alone, but who samples with this tokenizer may get others"
    ]
