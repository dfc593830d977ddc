"""A model made from nothing: its shape, its tokenizer, its seed."""

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer

from graphcredit.collector.policies.train_tokenizer import train_tokenizer
from graphcredit.trainer.cloning.tiny_model import save_random_model
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.loading import load_model, load_weights


@pytest.fixture
def words(tmp_path: Path) -> Path:
    train_tokenizer(tmp_path / "words", ["open door", "go north"] * 2, num_tokens=260)
    return tmp_path / "words"


def test_it_has_the_shape_that_samplers_on_a_cpu_need(tmp_path: Path, words: Path):
    num_weights = save_random_model(tmp_path / "m", words, seed=0)
    config = AutoConfig.from_pretrained(tmp_path / "m")
    assert config.hidden_size // config.num_attention_heads == 32
    assert not config.tie_word_embeddings
    assert (config.vocab_size, config.eos_token_id, config.pad_token_id) == (260, 0, 0)
    # Embeddings and head; 3 layers of queries, keys and values with biases, the output, the gated
    # feed-forward and two norms; the last norm.
    attention = 128 * 128 + 128 + 2 * (128 * 64 + 64) + 128 * 128
    layer = attention + 3 * 128 * 256 + 2 * 128
    assert num_weights == 2 * 260 * 128 + 3 * layer + 128


def test_the_trainer_takes_it_and_its_tokenizer_is_beside_it(tmp_path: Path, words: Path):
    save_random_model(tmp_path / "m", words, seed=0)
    config = TrainConfig(store=tmp_path, out=tmp_path, model=str(tmp_path / "m"))
    scorer = load_model(config.model, config)
    assert scorer.causal_lm.config.model_type == "qwen2"
    opened, given = (AutoTokenizer.from_pretrained(path) for path in (tmp_path / "m", words))
    assert opened.get_vocab() == given.get_vocab()


def test_the_seed_decides_the_weights_and_nothing_else_is_random(tmp_path: Path, words: Path):
    before = torch.random.get_rng_state()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        save_random_model(tmp_path / name, words, seed=seed)
    a, b, c = (load_weights(tmp_path / name).state_dict() for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["lm_head.weight"], c["lm_head.weight"])
    assert torch.equal(torch.random.get_rng_state(), before)
