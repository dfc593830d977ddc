"""Token ids as text, by a tokenizer that is on this machine."""

from pathlib import Path

import pytest

from graphcredit.store import create_store
from graphcredit.store.errors import InputError
from graphcredit.viewer.chat.tokenizer import (
    find_tokenizer,
    model_of,
    read_tokenizer,
    token_texts,
)
from graphcredit.viewer.chat.tokens import band, drawn_tokens
from graphcredit.viewer.config import TOKENIZER_VARIABLE
from tests.viewer.browser import boxes, component, markdown_of, open_page
from tests.viewer.stores import credited
from tests.worlds import trajectory

pytest.importorskip("tokenizers")


def byte_tokenizer(folder: Path) -> Path:
    """Write a tokenizer whose tokens are bytes; return its folder."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    vocabulary = {char: number for number, char in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = Decoder()
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_each_token_has_the_text_that_it_adds(tmp_path: Path):
    tokenizer = read_tokenizer(byte_tokenizer(tmp_path / "t") / "tokenizer.json")
    text = "go ⟨é⟩ 日\n"
    ids = tokenizer.encode(text).ids
    texts = token_texts(tokenizer, ids)
    assert len(texts) == len(ids) == len(text.encode())
    assert "".join(texts) == text
    assert texts[:3] == ["g", "o", " "]
    assert [part for part in texts if part] == list(text)


def test_half_a_character_at_the_end_is_not_lost(tmp_path: Path):
    tokenizer = read_tokenizer(byte_tokenizer(tmp_path / "t") / "tokenizer.json")
    texts = token_texts(tokenizer, tokenizer.encode("a日").ids[:-1])
    assert "".join(texts) == "a\N{REPLACEMENT CHARACTER}"


def test_an_id_beyond_the_vocabulary_is_refused(tmp_path: Path):
    tokenizer = read_tokenizer(byte_tokenizer(tmp_path / "t") / "tokenizer.json")
    with pytest.raises(InputError, match="below the tokenizer's 256: found 300"):
        token_texts(tokenizer, [1, 300])


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="must be a tokenizer"):
        read_tokenizer(path)


def test_the_tokenizer_is_looked_for_where_models_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = create_store(tmp_path / "loop" / "store")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_tokenizer(store, ["policy-000001", "org/small"]) is None
    cached = byte_tokenizer(tmp_path / "hub" / "models--org--small" / "snapshots" / "abc")
    found = cached / "tokenizer.json"
    assert find_tokenizer(store, [None, "org/small"]) == found
    assert find_tokenizer(store, ["small", None]) == found
    byte_tokenizer(tmp_path / "hub" / "models--other--small" / "snapshots" / "abc")
    assert find_tokenizer(store, ["small", None]) is None
    own = byte_tokenizer(tmp_path / "loop" / "policies" / "policy-000001" / "model")
    assert find_tokenizer(store, ["policy-000001", None]) == own / "tokenizer.json"
    monkeypatch.setenv(TOKENIZER_VARIABLE, str(cached))
    assert find_tokenizer(store, ["policy-000001", None]) == found


@pytest.mark.parametrize("name", ["../secret", "..", "/etc", "*", "a/b/c", "org/../x"])
def test_a_log_cannot_lead_elsewhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a log says is only a name below the two folders."""
    store = create_store(tmp_path / "loop" / "store")
    byte_tokenizer(tmp_path / "loop" / "secret")
    byte_tokenizer(tmp_path / "hub" / "models--one--model" / "snapshots" / "abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_tokenizer(store, [name, name]) is None


def test_an_imported_log_names_its_model_in_its_first_step():
    assert model_of('{"log": {"model": "org/small"}}') == "org/small"
    for extra in (None, "", "[1]", '{"log": 1}', '{"log": {"model": 1}}'):
        assert model_of(extra) is None


def test_tokens_are_marked_by_probability():
    assert [band(p) for p in (0.0, -0.5, -2.0, -4.0, -9.0, float("nan"))] == [0, 1, 2, 3, 4, 4]
    drawn = drawn_tokens(["a", "b"], [1, 2], [-0.01, -9.0])
    assert [token["band"] for token in drawn["tokens"]] == [0, 4]
    assert len(drawn["legend"]) == 5
    assert drawn_tokens(["a"], [1], None)["legend"] == []


def test_the_page_decodes_a_step_and_doubts_a_text_without_its_action(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = byte_tokenizer(tmp_path / "t")
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    tokens = {
        "prompt_ids": tokenizer.encode("Where to?").ids,
        "response_ids": tokenizer.encode("east").ids,
        "response_logprobs": [-0.1, -0.2, -0.3, -0.4],
    }
    steps = trajectory("x", "A east B west won", success=True, **tokens)
    store = credited(tmp_path / "s", steps)
    app = open_page(monkeypatch, store, "trajectory")
    assert "the tokenizer of the log's model was not found" in markdown_of(app)
    monkeypatch.setenv(TOKENIZER_VARIABLE, str(folder))
    app.run()
    assert not app.exception
    assert [token["text"] for token in component(app, "tokens")["tokens"]] == list("east")
    assert "Where to?" in boxes(app)
    assert any(element.value.startswith("Decoded with ") for element in app.text)
    (alone,) = app.warning
    assert alone.value.startswith("This task has one complete rollout")
    app.button(key="go_Next").click().run()
    assert "lacks the step's action" in app.warning[-1].value
