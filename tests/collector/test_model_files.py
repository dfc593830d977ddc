"""Which weights a directory holds."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.collection import CollectReport, collect
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.policies.model_files import digest_weights, digest_words, find_model
from graphcredit.collector.policies.registry import LanguageOptions, parse_policy
from graphcredit.store.errors import OptionError
from tests.collector.talkers import save_talker

MIB = 1 << 20


def _digest(directory: Path) -> str:
    return digest_weights(find_model(str(directory)))


def _write(directory: Path, **contents: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text("{}")
    for name, content in contents.items():
        (directory / f"{name}.safetensors").write_bytes(content)
    return directory


def test_a_digest_is_of_what_the_files_say_not_of_where_and_when(tmp_path: Path):
    first = _write(tmp_path / "a", model=b"weights")
    other = shutil.copytree(first, tmp_path / "b")
    for path in other.iterdir():
        os.utime(path, (0, 0))
    (other / "README.md").write_text("A model.")
    assert _digest(other) == _digest(first)
    assert _digest(_write(tmp_path / "c", model=b"weighty")) != _digest(first)
    assert _digest(_write(tmp_path / "d", model_1=b"wei", model_2=b"ghts")) != _digest(first)
    (other / "config.json").write_text("{ }")
    assert _digest(other) != _digest(first)


@pytest.mark.parametrize(
    "name",
    [
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json"),
        *("merges.txt", "tokenizer.model", "chat_template.jinja", "chat_templates/tool.jinja"),
        "generation_config.json",
    ],
)
def test_what_decides_the_tokens_of_a_prompt_and_the_end_of_an_answer_counts(
    tmp_path: Path, name: str
):
    model = find_model(str(_write(tmp_path, model=b"weights")))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    before = digest_words(model)
    path.write_text("{}")
    after = digest_words(model)
    path.write_text("{ }")
    assert len({before, after, digest_words(model)}) == 3
    (tmp_path / "README.md").write_text("A model.")
    path.write_text("{}")
    assert digest_words(model) == after


def test_every_byte_of_a_file_of_16_mib_counts(tmp_path: Path):
    content = bytearray(16 * MIB)
    found = {_digest(_write(tmp_path / "a", model=bytes(content)))}
    for place in (0, 7 * MIB + 1, 16 * MIB - 1):
        content[place] = 1
        found.add(_digest(_write(tmp_path / "a", model=bytes(content))))
    assert len(found) == 4


def test_of_a_larger_file_its_size_its_ends_and_whatever_is_long_count(tmp_path: Path):
    """Of 64 MiB and a block, blocks of 64 KiB at every (64 MiB / 255) = 263,173 bytes."""
    size = 64 * MIB + (1 << 16)

    def digest(start: int, length: int, size: int = size) -> str:
        path = _write(tmp_path / "a") / "model.safetensors"
        with path.open("wb") as file:
            file.truncate(size)
            file.seek(start)
            file.write(b"1" * length)
        return _digest(path.parent)

    nothing = digest(0, 0)
    changed = [(0, 1), (size - 1, 1), (30 * MIB, 263_173), (263_173, 1), (263_173 + 65_535, 1)]
    assert len({nothing, *(digest(*stretch) for stretch in changed)}) == 6
    assert digest(263_173 - 1, 1) == nothing
    assert digest(0, 0, size + 1) != nothing


def test_other_weights_under_the_same_name_do_not_go_on_with_a_group(tmp_path: Path):
    model = tmp_path / "policy-000001"
    save_talker(model)
    tasks = ENVIRONMENTS["search"].list_tasks("2hop", num_tasks=1, seed=0)

    def play(**options: Any) -> CollectReport:
        here: dict[str, Any] = {
            "workers": 0,
            "template": "tiny",
            "max_steps": 2,
            "max_new_tokens": 2,
        }
        return collect(
            tmp_path / "store", tasks, CollectOptions(policy=f"hf:{model}", **here, **options)
        )

    assert play(group_size=1).num_trajectories == 1
    save_talker(model)
    assert play(group_size=2).num_trajectories == 1
    before = parse_policy(f"hf:{model}", LanguageOptions(template="tiny")).settings
    assert before["engine"] == "hf"
    save_talker(model, seed=1)
    with pytest.raises(OptionError, match=rf"is in the store with .*{before['weights']}.*, asked"):
        play(group_size=3)
