"""What the vLLM engine asks of vLLM, and makes of a model's files; vLLM itself is a double."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphcredit.collector.policies.engines.base import Request, Sampling
from graphcredit.collector.policies.tokens import decode_answer, load_tokenizer
from graphcredit.store.errors import InputError
from tests.collector.talkers import save_talker

_ENGINE = "graphcredit.collector.policies.engines.vllm"
_SAMPLING = Sampling(temperature=1.0, max_new_tokens=8)


class _Llm:
    """What the engine uses of `vllm.LLM`: its files are those of the model it was opened with."""

    def __init__(self, *, model: str, **options: Any) -> None:
        self.model = model
        self.options = options
        self.loaded = [model]
        self.asked: list[dict[str, Any]] = []
        self.num_resets = 0
        found = json.loads((Path(model) / "generation_config.json").read_text())
        self.model_config = SimpleNamespace(
            max_model_len=20, try_get_generation_config=lambda: found
        )

    def get_tokenizer(self) -> Any:
        return load_tokenizer(self.model)

    def collective_rpc(self, method: str, *, kwargs: dict[str, str]) -> None:
        assert method == "reload_weights"
        self.loaded.append(kwargs["weights_path"])

    def apply_model(self, function: Any) -> None:
        pass

    def reset_prefix_cache(self) -> None:
        self.num_resets += 1

    def generate(self, prompts: list[Any], asked: list[dict[str, Any]], **_: Any) -> list[Any]:
        self.asked = asked
        said = SimpleNamespace(token_ids=[7], logprobs=[{7: SimpleNamespace(logprob=-0.5)}])
        return [SimpleNamespace(outputs=[said]) for _ in prompts]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TORCHDYNAMO_DISABLE": "1",
    }.items():
        monkeypatch.setenv(name, value)  # which importing the engine would set for good
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=_Llm, SamplingParams=dict))
    known = sys.modules.pop(_ENGINE, None)
    yield import_module(_ENGINE).VllmEngine()
    del sys.modules[_ENGINE]
    if known is not None:
        sys.modules[_ENGINE] = known


def _edit(path: str, name: str, **values: Any) -> None:
    file = Path(path) / name
    found = json.loads(file.read_text())
    kept = {key: value for key, value in (found | values).items() if value != "absent"}
    file.write_text(json.dumps(kept))


def test_an_end_that_only_the_generation_config_has_is_no_text(engine: Any, tmp_path: Path):
    path = save_talker(tmp_path / "p-0")
    _edit(path, "generation_config.json", eos_token_id=[0, 9])
    engine.load(path)
    assert engine.tokenizer.eos_token_id == 0
    assert engine.end_ids == {0, 9}
    said = engine.tokenizer("east")["input_ids"]
    assert decode_answer(engine.tokenizer, [*said, 9], engine.end_ids) == "east"


def test_without_a_generation_config_the_ends_are_those_of_the_config(engine: Any, tmp_path: Path):
    path = save_talker(tmp_path / "p-0", eos_token_id=[3, 4])
    engine.load(path)
    (Path(path) / "generation_config.json").unlink()
    engine.load(path)
    assert engine.end_ids == {0, 3, 4}


def test_a_config_that_says_the_same_in_other_words_is_the_same(engine: Any, tmp_path: Path):
    first, second = (save_talker(tmp_path / f"p-{seed}", seed=seed) for seed in range(2))
    # As transformers 4 wrote it.
    _edit(
        first,
        "config.json",
        dtype="absent",
        torch_dtype="bfloat16",
        transformers_version="4.43.1",
        rope_parameters="absent",
        rope_theta=10000.0,
        layer_types="absent",
        sliding_window=32768,
        use_sliding_window=False,
        _name_or_path="somewhere/else",
    )
    engine.load(first)
    engine.load(second)
    assert engine._llm.loaded == [first, second]


def test_another_shape_is_refused_with_what_differs(engine: Any, tmp_path: Path):
    engine.load(save_talker(tmp_path / "p-0"))
    with pytest.raises(
        InputError, match=r"same config\.json: .*p-1 differs .* intermediate_size\."
    ):
        engine.load(save_talker(tmp_path / "p-1", intermediate_size=64))


def test_models_of_one_process_compute_in_the_same_type(engine: Any, tmp_path: Path):
    first, second = (save_talker(tmp_path / f"p-{seed}", seed=seed) for seed in range(2))
    engine.load(first, "bfloat16")
    assert engine._llm.options["dtype"] == "bfloat16"
    with pytest.raises(InputError, match="requested in float32, and the one before in bfloat16"):
        engine.load(second, "float32")
    engine.load(second, "bfloat16")
    assert engine._llm.loaded == [first, second]


def test_the_second_model_has_its_own_tokenizer_and_ends(engine: Any, tmp_path: Path):
    first = save_talker(tmp_path / "p-0")
    second = save_talker(tmp_path / "p-1", ("other words entirely, said for the other one",))
    _edit(first, "generation_config.json", eos_token_id=[0, 9])
    _edit(second, "generation_config.json", eos_token_id=11)
    vocabularies = [load_tokenizer(path).get_vocab() for path in (first, second)]
    assert vocabularies[0] != vocabularies[1]
    for path in (first, second):
        _edit(path, "config.json", vocab_size=400)
        engine.load(path)
    assert engine.tokenizer.get_vocab() == vocabularies[1]
    assert engine.end_ids == {0, 11}
    engine.generate([Request(prompt_ids=(5,), seed=1)], _SAMPLING)
    # What vLLM read of the first one's files ends no answer.
    (asked,) = engine._llm.asked
    assert (asked["ignore_eos"], asked["stop_token_ids"]) == (True, [0, 11])


def test_an_answer_is_cut_off_where_the_models_room_ends(engine: Any, tmp_path: Path):
    engine.load(save_talker(tmp_path / "p-0"))
    assert engine.room == 20
    engine.generate([Request(prompt_ids=(5,) * n, seed=n) for n in (19, 15, 3)], _SAMPLING)
    assert [asked["max_tokens"] for asked in engine._llm.asked] == [1, 5, 8]


def test_what_was_asked_before_is_forgotten(engine: Any, tmp_path: Path):
    engine.load(save_talker(tmp_path / "model"))
    before = engine._llm.num_resets
    engine.forget()
    assert engine._llm.num_resets == before + 1


def test_weights_other_than_safetensors_are_never_opened(engine: Any, tmp_path: Path):
    model = save_talker(tmp_path / "model")
    engine.load(model)
    options = engine._llm.options
    assert (options["load_format"], options["trust_remote_code"]) == ("safetensors", False)
    other = save_talker(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(tmp_path / "other" / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"as \*\.safetensors, but .*other has none"):
        engine.load(other)
    assert engine._llm.loaded == [model]
