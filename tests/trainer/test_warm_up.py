"""Examples that make a policy: its tokenizer, its model, and what three commands teach it."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoTokenizer, Qwen2Config

from examples.policy_from_gguf import convert
from examples.warm_up import (
    NUM_LETTERS,
    WarmUp,
    make_model,
    recorded_texts,
    train_tokenizer,
    warm_up,
)
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.store import open_store, read_steps
from graphcredit.trainer.model.loading import load_weights
from tests.cli.in_process import run
from tests.trainer.logs import episode, token_store, turn

TEXTS = [
    "-= Bedroom =-\nYou're in a bedroom.\n=\nopen door\ngo north\n>\n",
    "open door",
    "go north",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory):
    """Return the tokenizer as it is opened beside a model of the architecture."""
    directory = tmp_path_factory.mktemp("tokenizer") / "t"
    train_tokenizer(directory, TEXTS * 2, num_tokens=400)
    Qwen2Config().save_pretrained(directory)
    return AutoTokenizer.from_pretrained(directory)


def test_words_that_are_said_more_than_once_become_tokens(tokenizer):
    assert tokenizer.tokenize("open door\ngo north") == ["open", "Ġdoor", "Ċ", "go", "Ġnorth"]


def test_an_action_has_the_same_tokens_in_a_list_and_as_an_answer(tokenizer):
    prompt, answer = tokenizer(TEXTS[0])["input_ids"], tokenizer("open door")["input_ids"]
    pieces = [prompt[i : i + len(answer)] for i in range(len(prompt))]
    assert pieces.count(answer) == 1


@given(text=st.text())
def test_any_text_comes_back_as_it_was(tokenizer, text: str):
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)


def test_what_is_opened_has_the_ids_of_what_was_trained(tmp_path: Path):
    num_tokens = len(train_tokenizer(tmp_path / "plain", TEXTS, num_tokens=300))
    train_tokenizer(tmp_path / "model", TEXTS, num_tokens=300)
    Qwen2Config().save_pretrained(tmp_path / "model")
    plain, beside = (AutoTokenizer.from_pretrained(tmp_path / n) for n in ("plain", "model"))
    assert len(plain) == len(beside) == num_tokens
    assert plain.get_vocab() == beside.get_vocab()
    for text in (*TEXTS, "don't 12 ÀÉ\t\n\n日本 ", "<|endoftext|>"):
        assert plain(text)["input_ids"] == beside(text)["input_ids"]


def test_without_texts_there_is_a_token_for_each_byte_and_one_for_the_end(tmp_path: Path):
    assert len(train_tokenizer(tmp_path / "t", (), num_tokens=NUM_LETTERS)) == NUM_LETTERS == 257
    letters = AutoTokenizer.from_pretrained(tmp_path / "t")
    assert len(letters("go né")["input_ids"]) == 6
    assert letters.eos_token_id == letters.pad_token_id == 0


def test_recorded_texts_are_the_different_prompts_and_answers_of_a_run(tmp_path: Path):
    train_tokenizer(tmp_path / "t", (), num_tokens=NUM_LETTERS)
    letters = AutoTokenizer.from_pretrained(tmp_path / "t")

    def said(prompt: str, answer: str):
        end = letters.eos_token_id
        return turn(letters(prompt)["input_ids"], [*letters(answer)["input_ids"], end])

    trajectory = episode("a", said("here\n", "go"), said("there\n", "go"), said("here\n", "stay"))
    store = token_store(tmp_path / "s", [trajectory], run_id="text")
    texts = list(recorded_texts(store, tmp_path / "t"))
    assert sorted(texts) == ["go", "here\n", "stay", "there\n"]


def test_a_model_has_the_tokens_of_its_texts_and_the_weights_of_its_seed(tmp_path: Path):
    before = torch.random.get_rng_state()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_model(tmp_path / name, TEXTS, num_tokens=300, seed=seed)
    assert torch.equal(torch.random.get_rng_state(), before)
    a, b, c = (load_weights(tmp_path / name).state_dict() for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["lm_head.weight"], c["lm_head.weight"])
    config, words = (kind.from_pretrained(tmp_path / "a") for kind in (AutoConfig, AutoTokenizer))
    # vLLM on a CPU needs a head size of 32 or more, and keeps an old head where weights are tied.
    assert config.hidden_size // config.num_attention_heads == 32
    assert not config.tie_word_embeddings
    assert (config.vocab_size, config.eos_token_id) == (len(words), words.eos_token_id)


@pytest.mark.slow
def test_a_policy_from_nothing_acts_as_the_environment_allows(tmp_path: Path):
    plan = WarmUp(
        directory=tmp_path, env="search", tasks=2, episodes=16, max_steps=6, updates=30, workers=0
    )
    model = warm_up(plan)
    weights = (model / "model.safetensors").read_bytes()
    assert warm_up(plan) == model
    assert (model / "model.safetensors").read_bytes() == weights
    options = CollectOptions(
        policy=f"hf:{model}", template="tiny", group_size=6, max_steps=6, workers=0, run="own"
    )
    tasks = environment_kind("search").list_tasks(None, num_tasks=2, seed=0)
    collect(tmp_path / "store", tasks, options)
    steps = read_steps(open_store(tmp_path / "store"), columns=["is_action_valid"], run_id="own")
    valid = [each for table in steps for each in table["is_action_valid"].to_pylist()]
    assert sum(valid) > 0.8 * len(valid)


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "language-model.md"


@pytest.mark.slow
def test_three_commands_teach_a_model_what_did_better(
    tmp_path: Path, games_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))
    make_model(Path("MODEL"), ["take key from table", "go north"], num_tokens=300, seed=0)
    commands = re.findall(r"^    graphcredit (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["collect", "credit", "train"]
    smaller = ("--tasks 32 --group-size 32", "--tasks 2 --group-size 12 --workers 0")
    for command in commands:
        ended = run(*command.replace(*smaller).split())
        assert ended.exit_code == 0, ended.err
    result = json.loads(Path("lm/taught/result.json").read_text(encoding="utf-8"))
    assert result["num_updates"] >= 1
    assert Path("lm/taught/model/model.safetensors").is_file()


def test_what_cannot_be_a_policy_is_refused(tmp_path: Path):
    with pytest.raises(SystemExit, match="there is no file"):
        convert(tmp_path / "none.gguf", tmp_path / "out")
    (tmp_path / "model.gguf").touch()
    with pytest.raises(SystemExit, match="must be new"):
        convert(tmp_path / "model.gguf", tmp_path)
