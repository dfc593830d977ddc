"""States by a rule beside those of a store: as an import makes them, and credit knows of which."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.run import import_log
from graphcredit.collector.states.restate import effects_in, restate
from graphcredit.credit.iteration.settings import settings_of
from graphcredit.credit.options import CreditOptions
from graphcredit.credit.stage import assign_credit
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.layout import Store, open_store
from graphcredit.store.parquet.states import STATES_SCHEMA
from graphcredit.store.provenance.freshness import credit_freshness
from tests.collector.importers.logs import called, said, write_lines

WORDS = [("Hello", "go on"), ("Good day", "please"), ("Hi", "yes, do"), ("Hey", "all right")]


def _chat(number: int) -> dict[str, object]:
    """Return a chat about an order, which half of them close; the user always says it anew."""
    hello, please = WORDS[number]
    does_close = number % 2 == 1
    look = [called("get", id=1), said("tool", f'{{"id": 1, "is": "open", "request_id": {number}}}')]
    look += [called("get", id=2), said("tool", '{"id": 2, "is": "open"}')]
    act = [called("close", id=1), said("tool", "closed")] if does_close else look
    end = f'{{"id": 1, "is": "{"closed" if does_close else "open"}"}}'
    messages = [said("user", hello), *look, said("assistant", "Shall I?"), said("user", please)]
    messages += [*act, called("get", id=1), said("tool", end), said("assistant", "Done.")]
    return {"task_id": "t", "reward": int(does_close), "messages": messages}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "log.jsonl", *map(_chat, range(4)))


def _imported(log: Path, name: str, state: str = "last") -> Store:
    store = log.parent / name
    import_log(log, store, ImportOptions(state=state))
    return open_store(store)


def _credit(store: Store, state: str = "logged") -> list[float]:
    options = CreditOptions(estimators=("graphgpo",), state=state)
    assign_credit(store, settings_of(options))
    (shard,) = store.shards()
    return pq.read_table(shard.credit_path)["graphgpo_advantage"].to_pylist()


def _freshness(store: Store) -> list[str]:
    return [each.state for each in credit_freshness(store)]


@pytest.mark.parametrize("rule", ["calls", "effects", "facts", "effects+last-tool", "results"])
def test_states_are_those_that_an_import_makes(log: Path, rule: str):
    store, other = _imported(log, "a"), _imported(log, "b", rule)
    (shard,), (its,) = store.shards(), other.shards()
    before = shard.path.read_bytes()
    (written,) = restate(store, rule)
    assert shard.path.read_bytes() == before
    (path,) = (store.root / "states").rglob("*.parquet")
    states, wanted = pq.read_table(path), pq.read_table(its.path)
    assert states.equals(wanted.select(STATES_SCHEMA.names).cast(states.schema))
    assert (written.num_steps, written.num_states) == (26, len(set(states["state"].to_pylist())))


def test_effects_say_how_they_are_known(log: Path):
    (written,) = restate(_imported(log, "a"), "effects")
    assert written.rule == "effects:close"
    assert written.effects is not None
    assert written.effects.unchanging == ("get",)
    # Nobody is alone: before the order is closed all are in one state, and behind it two.
    assert (written.num_states, written.num_alone) == (2, 0)


def test_credit_of_a_rule_is_that_of_a_store_imported_by_it(log: Path):
    store = _imported(log, "a")
    logged = _credit(store)
    restate(store, "effects")
    assert _credit(store, "effects") == _credit(_imported(log, "b", "effects")) != logged
    assert _credit(store) == logged


def test_credit_is_stale_when_its_states_are_others_and_only_then(log: Path):
    store = _imported(log, "a")
    restate(store, "effects")
    _credit(store, "effects")
    restate(store, "calls")
    restate(store, "effects:close")  # what was learned
    assert _freshness(store) == ["current"]
    restate(store, "effects:close,get")
    assert _freshness(store) == ["stale"]
    _credit(store, "effects:close,get")
    (path,) = (store.root / "states").rglob("calls.*.parquet")
    path.unlink()
    assert _freshness(store) == ["current"]
    (path,) = (store.root / "states").rglob("*.parquet")
    path.unlink()
    assert _freshness(store) == ["stale"]


def test_logged_credit_does_not_depend_on_states_by_rules(log: Path):
    store = _imported(log, "a")
    _credit(store)
    restate(store, "calls")
    assert _freshness(store) == ["current"]


def test_states_that_are_not_there_or_of_other_steps_are_refused(log: Path, tmp_path: Path):
    store = _imported(log, "a")
    with pytest.raises(InputError, match=r"must have states by 'calls'.*--set calls"):
        _credit(store, "calls")
    restate(store, "calls")
    other = _imported(write_lines(tmp_path / "more" / "log.jsonl", *map(_chat, (0, 1))), "b")
    (shard,), (its,) = (each.shards() for each in (store, other))
    target = its.with_state("calls").states_path
    target.parent.mkdir(parents=True)
    target.write_bytes(shard.with_state("calls").states_path.read_bytes())
    with pytest.raises(InputError, match="must have the steps of its shard"):
        _credit(other, "calls")


def test_what_counts_logged_states_refuses_others():
    with pytest.raises(OptionError, match="counts the logged states"):
        settings_of(CreditOptions(estimators=("spo3",), state="effects"))


def test_a_rule_that_is_none_writes_nothing(log: Path):
    store = _imported(log, "a")
    with pytest.raises(OptionError, match="a rule of states must be one of"):
        restate(store, "first")
    assert not (store.root / "states").exists()


def test_runs_with_the_same_names_are_kept_apart(log: Path):
    """The same chats in two runs say of the tools what they say in one."""
    for run in ("one", "two"):
        import_log(log, log.parent / "both", ImportOptions(run=run))
    assert effects_in(log.parent / "both") == effects_in(log.parent / "both", run_id="one")
    assert effects_in(log.parent / "both").tools == ("close",)
