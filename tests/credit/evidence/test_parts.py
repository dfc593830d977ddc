"""Which parts a state keeps, on logs in which one part decides; and what chance makes of it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import graphcredit
from graphcredit.credit.evidence import parts as module
from graphcredit.credit.evidence.judge import evidence
from graphcredit.credit.evidence.knowledge import knowledge_of
from graphcredit.credit.evidence.parts import Parts, kept_parts, knowledge_of_parts
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.evidence.visits import Rollouts
from graphcredit.loop.evidence_states import definitions_of
from graphcredit.store.layout import open_store
from tests.cli.in_process import run


def drawn(num_groups: int, *, seed: int = 0, told: bool = True) -> tuple[Rollouts, Parts]:
    """Return groups of 8 rollouts of 3 steps: the page that was read decides, and a dice nothing.

    Without `told`, the page decides nothing either.
    """
    rng = np.random.default_rng(seed)
    size = num_groups * 8
    page = rng.integers(2, size=size)
    decides = page if told else rng.integers(2, size=size)
    outcome = (rng.random(size) < np.where(decides == 1, 0.9, 0.1)).astype(float)
    group = np.repeat(np.arange(num_groups), 8)
    rollouts = Rollouts(group=group, length=np.full(size, 3), outcome=outcome)
    read = np.stack([0 * page, page + 1, page + 1], axis=1).ravel()
    dice = np.stack([rng.integers(8, size=size)] * 3, axis=1).ravel()
    return rollouts, Parts(base=np.repeat(group, 3), of={"read": read, "dice": dice})


def test_the_part_that_decides_stays_and_the_dice_goes():
    rollouts, parts = drawn(24)
    kept, known = knowledge_of_parts(rollouts, parts)
    assert kept == kept_parts(rollouts, parts) == ("read",)
    assert known.sums.tolist() == knowledge_of(rollouts, parts.node(kept)).sums.tolist()
    assert known.beyond_chance().is_positive
    whole = knowledge_of(rollouts, parts.node(("read", "dice")))
    assert known.evidence().value > whole.evidence().value + 0.2


def test_nodes_are_equal_where_the_base_and_all_kept_parts_are():
    parts = Parts(
        base=np.array([7, 7, 7, 9]), of={"a": np.array([5, 5, 6, 5]), "b": np.array([1, 2, 2, 1])}
    )
    assert parts.node(()).tolist() == [0, 0, 0, 1]
    assert parts.node(("a",)).tolist() == [0, 0, 1, 2]
    assert len(set(parts.node(("a", "b")).tolist())) == 4


def test_what_chance_may_choose_too_is_no_evidence():
    """With nothing to learn, the choice finds something, and the swaps that choose find as much."""
    made = [knowledge_of_parts(*drawn(12, seed=seed, told=False))[1] for seed in range(20)]
    assert np.mean([known.evidence().value for known in made]) > 0.1
    assert abs(np.mean([known.beyond_chance().value for known in made])) < 0.08
    assert np.mean([known.beyond_chance().is_positive for known in made]) <= 0.1


def test_of_many_steps_the_first_whole_groups_choose(monkeypatch: pytest.MonkeyPatch):
    rollouts, parts = drawn(24)
    noise = np.random.default_rng(1).permutation(24 * 24)
    late = np.arange(24 * 24) >= 12 * 24
    spoilt = Parts(
        base=parts.base, of={**parts.of, "read": np.where(late, noise, parts.of["read"])}
    )
    monkeypatch.setattr(module, "MOST_STEPS", 12 * 24 + 5)
    first = Rollouts(
        group=rollouts.group[:96], length=rollouts.length[:96], outcome=rollouts.outcome[:96]
    )
    assert kept_parts(rollouts, spoilt) == kept_parts(first, parts.at(~late)) == ("read",)


def test_the_command_names_the_reads_and_the_store_takes_the_rule(tmp_path: Path):
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for group in range(16):
        for rollout in range(8):
            page, dice = (int(each) for each in rng.integers((2, 4)))
            won = rng.random() < (0.9 if page else 0.1)
            calls = [f'roll({{"n": {dice}}})', f'read({{"page": {page}}})']
            if rollout % 2:
                calls.reverse()
            ids = rng.integers(1 << 30, size=2).tolist()
            answers = [
                {"of": call, "request_id": f"r{n}"} for call, n in zip(calls, ids, strict=True)
            ]
            texts = ["begin", *map(json.dumps, answers), '{"closed": true}']
            for step, action in enumerate([*calls, "finish({})"]):
                is_last = step == 2
                row: dict[str, object] = {"task": f"t{group}", "episode": f"{group}-{rollout}"}
                row |= {"t": step, "action": action, "reward": float(won & is_last)}
                row |= {"state": texts[step], "next_state": texts[step + 1], "done": is_last}
                rows.append(row | {"success": bool(won) if is_last else None})
    store = tmp_path / "store"
    graphcredit.record(pl.DataFrame(rows), store)
    told = _judged(store)
    best = "--set effects+calls:read"
    assert told.best == next(iter(told.knowledge)) == best
    run("states", store, "--set", "effects+calls:read")
    again = _judged(store).knowledge["--state effects.calls"]
    assert again.num_states == told.knowledge[best].num_states
    assert again.evidence() == told.knowledge[best].evidence()
    assert again.beyond_chance().value > told.knowledge[best].beyond_chance().value


def _judged(store: Path) -> EvidenceReport:
    names = ("--set calls", "--set effects", "--state effects.calls")
    definitions = definitions_of(open_store(store), None)
    return evidence(store, [each for each in definitions if each.name in names])
