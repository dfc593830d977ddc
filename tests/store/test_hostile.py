"""A store made on purpose to harm neither hangs a command nor reaches out of its folder."""

import os
from pathlib import Path

import pytest

from graphcredit.store import Store, open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, OptionError, StoreFormatError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.files.parse import MAX_DEPTH, parse_json, parse_toml
from graphcredit.store.state_rules import read_state_rules
from graphcredit.store.tree import walk_tree
from tests.cli.in_process import run as graphcredit
from tests.store.whole_store import whole_store

ENDLESS = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return whole_store(tmp_path / "store")


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("name", ["store.json", "states.toml"])
def test_a_file_without_an_end_is_refused_by_name(store: Store, name: str, kind: str):
    (store.root / name).unlink(missing_ok=True)
    ENDLESS[kind](store.root / name)
    result = graphcredit("check", store.root)
    assert result.exit_code in (1, 2)
    told = result.out + result.err
    assert name in told
    assert "must be a regular file" in told


@pytest.mark.parametrize(
    "text",
    ["[" * 5_000 + "]" * 5_000, '{"a":' * 5_000 + "1" + "}" * 5_000, "1" * 5_000, '{"a": "\\ud8'],
    ids=["lists", "objects", "digits", "cut"],
)
def test_json_of_any_kind_is_a_value_or_a_value_error(store: Store, text: str):
    with pytest.raises(ValueError, match=r"at most|may have 4,300 digits|Expecting|escape"):
        parse_json(text)
    (store.root / "store.json").write_text(text)
    with pytest.raises(StoreFormatError, match="must be JSON"):
        open_store(store.root)


def test_depth_is_counted_whatever_holds_the_values():
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(deepest) == parse_json(deepest.encode())
    for text in (f"[{deepest}]", f'{{"a": {deepest}}}'):
        with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} deep"):
            parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'[' * 5_000}{']' * 5_000}",
        f"a = {'{b=' * 5_000}1{'}' * 5_000}",
        f"a = {'1' * 5_000}",
        f"a{'.a' * 50_000} = 1",
        f"[[ignore]]\ntext{' . text' * 50_000} = 1",
        f"[a{'.a' * 50_000}]",
        f"x = {{a{'.a' * 50_000} = 1}}",
    ],
    ids=["lists", "tables", "digits", "key", "key of an entry", "table name", "inline key"],
)
def test_toml_of_any_kind_is_a_value_or_a_value_error(store: Store, text: str):
    with pytest.raises(ValueError, match=r"at most 200 deep|may have 4,300 digits"):
        parse_toml(text)
    store.state_rules_path.write_text(text)
    with pytest.raises(OptionError, match="must be TOML"):
        read_state_rules(store)


def test_toml_keeps_long_texts_with_dots():
    text = f'a = "{"b.c" * 1_000}"\n[x]\n"k.{"d." * 300}" = 1\n# {"e." * 300}\n'
    assert parse_toml(text)["a"] == "b.c" * 1_000


def test_the_version_of_a_store_is_a_number(store: Store):
    (store.root / "store.json").write_text('{"format": "graphcredit-store", "version": true}')
    with pytest.raises(StoreFormatError, match="must hold"):
        open_store(store.root)


def test_a_lock_makes_no_file_behind_a_link(tmp_path: Path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(InputError, match="it is a link"), alone_in(tmp_path / "dir", "no"):
        pass
    assert not (tmp_path / "made").exists()


def test_links_round_in_a_store_end(store: Store):
    for folder in ("images", "embeddings", "steps/run_id=r0", "graph"):
        (store.root / folder).mkdir(parents=True, exist_ok=True)
        for number in range(8):
            (store.root / folder / f"run_id=l{number}").symlink_to(".")
    (store.root / "embeddings" / "all").symlink_to("/")
    (store.root / "quarantine").symlink_to("/")
    report = check_store(store)
    assert len(report.violations) < 50
    assert len(walk_tree(store.root).files) < 50


def test_a_foreign_folder_is_named_and_not_entered(store: Store):
    (store.root / "code" / "deep").mkdir(parents=True)
    for number in range(100):
        (store.root / "code" / "deep" / f"{number}.py").touch()
    named = [v.file for v in check_store(store).notices if v.rule.name == "unknown_file"]
    assert named == ["code"]
