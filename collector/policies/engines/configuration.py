"""Read a model's configuration and the tokens that end its answers, by transformers."""

from typing import Any

from transformers import AutoConfig, GenerationConfig

from graphcredit.store.errors import library_errors


def read_config(path: str) -> Any:
    """Return a model's configuration; transformers parses it, so equivalent files compare equal."""
    with library_errors(f"a policy must be a causal language model: {path}"):
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)


def generation_ends(path: str, config: Any) -> int | list[int] | None:
    """Return `eos_token_id` of generation_config.json, or of the configuration if there is none."""
    with library_errors(f"generation_config.json must be one of transformers: {path}"):
        try:
            found = GenerationConfig.from_pretrained(path, local_files_only=True)
        except OSError:  # the file does not exist
            found = GenerationConfig.from_model_config(config)
    return found.eos_token_id
