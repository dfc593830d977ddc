"""A tokenizer made of an environment's text: what it learns, and what it is when opened."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, Qwen2Config

from graphcredit.collector.policies.train_tokenizer import (
    NUM_LETTERS,
    recorded_texts,
    train_tokenizer,
)
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
    num_tokens = train_tokenizer(tmp_path / "plain", TEXTS, num_tokens=300)
    train_tokenizer(tmp_path / "model", TEXTS, num_tokens=300)
    Qwen2Config().save_pretrained(tmp_path / "model")
    plain, beside = (AutoTokenizer.from_pretrained(tmp_path / n) for n in ("plain", "model"))
    assert len(plain) == len(beside) == num_tokens
    assert plain.get_vocab() == beside.get_vocab()
    for text in (*TEXTS, "don't 12 ÀÉ\t\n\n日本 ", "<|endoftext|>"):
        assert plain(text)["input_ids"] == beside(text)["input_ids"]


def test_without_texts_there_is_a_token_for_each_byte_and_one_for_the_end(tmp_path: Path):
    assert train_tokenizer(tmp_path / "t", (), num_tokens=NUM_LETTERS) == NUM_LETTERS == 257
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
    texts = list(recorded_texts(store, "text", tmp_path / "t"))
    assert sorted(texts) == ["go", "here\n", "stay", "there\n"]
