"""Shared prefixes: each distinct token once, and the numbers of samples that go one by one."""

import tempfile
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.bin_packing import cut
from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample, pack_samples
from graphcredit.trainer.batching.plan import make_plan
from graphcredit.trainer.batching.reader import BatchReader, read_prefix_order
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data import step_index as index_module
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.prefix_order import PrefixOrder, sort_by_prefix
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import StepIndex, read_index
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model import packed_attention as attention
from graphcredit.trainer.model.flops import training_flops
from graphcredit.trainer.model.layers import model_shape
from graphcredit.trainer.model.loading import load_model
from graphcredit.trainer.model.logprobs import Scorer, scorer_arguments
from graphcredit.trainer.model.packed_attention import register_attention
from graphcredit.trainer.preview import preview
from tests.examples import examples
from tests.trainer.logs import Row, episode, random_episodes, token_store, turn
from tests.trainer.models import save_tiny_model, tiny_model
from tests.trainer.plain import FAMILIES, gradients, one_by_one, packed

Tokens = list[int]

alike = st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=9), min_size=1, max_size=12)
"""Sequences of two tokens only, so that many begin alike, continue each other or are equal."""


def _prefixes(sequences: list[Tokens]) -> set[tuple[int, ...]]:
    """Return the nodes of the tree of the sequences: every distinct beginning."""
    return {tuple(s[:n]) for s in sequences for n in range(1, len(s) + 1)}


def _common(one: Tokens, other: Tokens) -> int:
    return len(_prefixes([one]) & _prefixes([other]))


def _arrays(sequences: list[Tokens]) -> list[Any]:
    return [np.array(sequence, np.int32) for sequence in sequences]


def _order(sequences: list[Tokens]) -> PrefixOrder:
    order, shared = sort_by_prefix(_arrays(sequences))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return PrefixOrder(rank=rank, shared=shared, length=np.array([len(s) for s in sequences]))


def test_sequences_are_sorted_as_worked_by_hand():
    """What continues another comes before it; ids of several bytes are numbers, not text."""
    sequences = [[1], [1, 2, 3], [1, 2], [256, 1], [255, 9], [1, 2, 3]]
    order, shared = sort_by_prefix(_arrays(sequences))
    assert order.tolist() == [3, 4, 1, 5, 2, 0]
    assert shared.tolist() == [0, 0, 0, 3, 2, 1]


@given(sequences=alike, data=st.data())
def test_any_steps_have_as_many_new_tokens_as_their_tree_has_nodes(
    sequences: list[Tokens], data: st.DataObject
):
    chosen = data.draw(st.sets(st.sampled_from(range(len(sequences))), min_size=1))
    steps = np.array(sorted(chosen))
    runs = _order(sequences).runs(steps)
    members = [sequences[step] for step in steps]
    assert runs.new.sum() == len(_prefixes(members))
    in_order = [members[position] for position in runs.order]
    assert runs.length.tolist() == [len(each) for each in in_order]
    expected = [_common(one, other) for one, other in pairwise(in_order)]
    assert runs.shared.tolist() == [0, *expected]


@settings(max_examples=examples(100))
@given(sequences=alike, capacity=st.integers(9, 30))
def test_a_cut_keeps_to_the_cap_and_makes_as_little_twice_as_any(
    sequences: list[Tokens], capacity: int
):
    runs = _order(sequences).runs(np.arange(len(sequences)))
    ordered = [sequences[position] for position in runs.order]
    pieces = cut(runs.length, runs.shared, capacity)
    assert list(chain(*pieces)) == list(range(len(sequences)))
    sizes = [len(_prefixes([ordered[n] for n in piece])) for piece in pieces]
    assert max(sizes) <= capacity
    free = [n for n in range(1, len(ordered)) if runs.shared[n] == 0]
    assert {*free} <= {piece.start for piece in pieces}
    if len(sequences) <= 8:
        assert sum(sizes) == min(
            sum(each)
            for count in range(len(sequences))
            for places in combinations(range(1, len(sequences)), count)
            if max(each := _sizes(ordered, places)) <= capacity
        )


def _sizes(ordered: list[Tokens], places: tuple[int, ...]) -> list[int]:
    ends = [0, *places, len(ordered)]
    return [len(_prefixes(ordered[a:b])) for a, b in pairwise(ends)]


def _samples(sequences: list[Tokens], borders: list[int]) -> list[Sample]:
    return [
        Sample(array[:border], array[border:], -np.ones(len(array) - border, np.float32), 1.0)
        for array, border in zip(_arrays(sequences), borders, strict=True)
    ]


def _pack(samples: list[Sample], *, shares_prefixes: bool = True) -> PackedBatch:
    count = len(samples)
    return pack_samples(
        samples,
        advantage=np.arange(count) + 1.0,
        weight=np.ones(count) / count,
        steps=np.arange(count),
        shares_prefixes=shares_prefixes,
    )


@st.composite
def _drawn(draw: st.DrawFn) -> list[Sample]:
    sequences = draw(alike)
    return _samples(sequences, [draw(st.integers(1, len(s) - 1)) for s in sequences])


@given(samples=_drawn())
def test_a_batch_has_each_distinct_token_once_and_every_sequence_whole(samples: list[Sample]):
    batch = _pack(samples)
    sequences = [sample.tokens.tolist() for sample in samples]
    assert len(batch.input_ids) == len(_prefixes(sequences))
    # Where no run begins within another one, each attends to itself.
    positions = np.arange(len(batch.input_ids)) if batch.keys is None else batch.keys.positions
    ends = batch.cu_seqlens if batch.keys is None else batch.keys.cu_seqlens
    paths = [positions[a:b] for a, b in pairwise(ends)]
    of_token = {int(p): path[: n + 1] for path in paths for n, p in enumerate(path)}
    for first, last, path in zip(batch.cu_seqlens, batch.cu_seqlens[1:], paths, strict=False):
        assert path[len(path) - (last - first) :].tolist() == list(range(first, last))
        assert batch.position_ids[path].tolist() == list(range(len(path)))
    for number, sample in enumerate(samples):
        predictor = batch.predictor[batch.segment == number]
        for k, place in enumerate(predictor.tolist()):
            seen = batch.input_ids[of_token[place]].tolist()
            assert seen == sequences[number][: len(sample.prompt) + k]
    plain = _pack(samples, shares_prefixes=False)
    for name in ("token_ids", "advantage", "weight", "segment", "temperature", "is_scored"):
        assert getattr(batch, name).tolist() == getattr(plain, name).tolist()
    assert batch.max_length == plain.max_length


TREE = [[5, 6, 7, 8, 9], [5, 6, 7, 1], [5, 6, 2, 3, 4, 1], [9, 9], [5, 6, 7, 8]]
"""Runs of 2, 3, 1, 4 and 0 tokens of their own, in some order."""


@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("window", [None, 1, 2, 3, 5, 100])
def test_a_token_sees_its_ancestors_and_no_others(num_kv_heads: int, window: int | None):
    """The definition: a softmax over all tokens, masked by the tree."""
    batch = _pack(_samples(TREE, [1] * len(TREE)))
    sees = _ancestors(batch, window)
    generator = torch.Generator().manual_seed(0)
    heads = (4, num_kv_heads, num_kv_heads)
    parts = [torch.randn(1, n, len(sees), 8, generator=generator).requires_grad_() for n in heads]
    segments = scorer_arguments(batch, torch.tensor, want_entropy=False)[2]
    found, _ = attention.packed_attention(
        nn.Identity(), *parts, None, sliding_window=window, **segments.arguments()
    )
    query, key, value = parts
    key, value = (x.repeat_interleave(4 // num_kv_heads, dim=1) for x in (key, value))
    scores = (query @ key.mT * 8**-0.5).masked_fill(~sees, -torch.inf)
    expected = (scores.softmax(-1) @ value).transpose(1, 2)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    direction = torch.randn(expected.shape, generator=generator)
    torch.testing.assert_close(
        torch.autograd.grad((found * direction).sum(), parts),
        torch.autograd.grad((expected * direction).sum(), parts),
        atol=1e-5,
        rtol=1e-5,
    )


def _ancestors(batch: PackedBatch, window: int | None) -> Tensor:
    """Return [T, T] whether a token's own beginning, the last tokens of it, holds another."""
    assert batch.keys is not None
    sees = torch.zeros(len(batch.input_ids), len(batch.input_ids), dtype=torch.bool)
    ends = batch.keys.cu_seqlens
    for first, last in pairwise(ends):
        path = batch.keys.positions[first:last]
        for n, place in enumerate(path):
            sees[place, path[max(0, n + 1 - (window or n + 1)) : n + 1]] = True
    return sees


@pytest.mark.parametrize("kind", FAMILIES)
@settings(max_examples=examples(8))
@given(samples=_drawn())
def test_numbers_and_gradients_are_those_of_samples_one_by_one(kind: str, samples: list[Sample]):
    shared, plain = (tiny_model(kind, **FAMILIES[kind]) for _ in range(2))
    batch = _pack(samples)
    scored, expected = packed(shared, batch), one_by_one(plain, samples)
    torch.testing.assert_close(scored, expected, atol=1e-5, rtol=0)
    weight = torch.tensor(batch.weight * batch.advantage)
    ours, theirs = gradients(shared, weight, scored), gradients(plain, weight, expected)
    # What is rounded in one weight's gradient has the size of what passes through all of them.
    whole = torch.stack([each.norm() for each in theirs]).norm()
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).norm() <= 1e-5 * (1 + whole)


def _growing(num_trajectories: int, num_steps: int, *, seed: int = 0) -> list[list[Row]]:
    """Return trajectories of a task whose prompts are all that was said before."""
    random = np.random.default_rng(seed)
    opening = random.integers(0, 90, 6).tolist()
    trajectories: list[list[Row]] = []
    for number in range(num_trajectories):
        prompt, turns = list(opening), list[Row]()
        for _ in range(num_steps):
            answer, seen = (random.integers(0, 90, n).tolist() for n in (3, 2))
            turns.append(turn(prompt, answer, advantage=float(random.normal())))
            prompt = [*prompt, *answer, *seen]
        trajectories.append(episode(f"e{number}", *turns))
    return trajectories


def _index(root: Path, trajectories: list[list[Row]]) -> StepIndex:
    store = token_store(root, trajectories, num_shards=2, row_group_rows=5)
    filters = Filters(max_tokens=100)
    return read_index([RunIteration(store, "r0", 0)], column="reach_advantage", filters=filters)[0]


def _rows(trajectories: list[list[Row]]) -> list[Row]:
    rows = chain.from_iterable(trajectories)
    return sorted(rows, key=lambda row: (row["task_id"], row["trajectory_id"], row["step_index"]))


def _tokens(row: Row) -> Tokens:
    return [*row["prompt_ids"], *row["response_ids"]]


def test_the_order_of_a_store_is_that_of_its_tokens_within_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trajectories = random_episodes(0, 12, vocabulary=2)
    index, rows = _index(tmp_path / "s", trajectories), _rows(trajectories)
    every = np.arange(len(index))
    tokens = [_tokens(row) for row in rows]
    assert read_prefix_order(index).runs(every).new.sum() == len(_prefixes(tokens))
    monkeypatch.setattr(index_module, "WINDOW_TOKENS", 60)
    window = index_module.windows(index.length)
    assert window[-1] > 2
    parts = [[tokens[n] for n in np.flatnonzero(window == w)] for w in range(window[-1] + 1)]
    found = read_prefix_order(index).runs(every).new.sum()
    assert found == sum(len(_prefixes(part)) for part in parts)


def _plan(index: StepIndex, *, max_tokens: int, order: PrefixOrder | None = None) -> Any:
    return make_plan(
        index,
        seed=0,
        epochs=1,
        batch_size=1000,
        max_tokens=max_tokens,
        aggregation="token-mean",
        prefixes=order,
    )


@pytest.mark.parametrize("max_tokens", [40, 75, 1000])
def test_the_gradient_of_a_store_is_that_of_a_plain_loop_over_its_rows(
    tmp_path: Path, max_tokens: int
):
    trajectories = _growing(4, 4)
    index, rows = _index(tmp_path / "s", trajectories), _rows(trajectories)
    plan = _plan(index, max_tokens=max_tokens, order=read_prefix_order(index))
    name = save_tiny_model(tmp_path / "m")
    engine = open_engine(name, TrainConfig(store=Path(), out=Path(), model=name, device="cpu"))
    reader = BatchReader(index)
    (micros,) = plan.micro_batches(0, 1)
    forwarded = 0
    for micro in micros:
        batch = reader.read(micro)
        assert len(batch.input_ids) <= max_tokens
        forwarded += len(batch.input_ids)
        logprob = engine.score(batch).logprob
        weight = torch.tensor(batch.weight * batch.advantage)
        engine.backward(-(weight * logprob).sum())
    assert forwarded == plan.statistics(0, 1).num_tokens
    assert forwarded < 0.7 * index.length.sum()
    if max_tokens == 1000:
        assert forwarded == len(_prefixes([_tokens(row) for row in rows]))
    plain = tiny_model()
    num_scored = sum(len(row["response_ids"]) for row in rows)
    for row in rows:
        sample = _samples([_tokens(row)], [len(row["prompt_ids"])])
        logprob, _ = one_by_one(plain, sample)
        (-row["advantage"] * logprob.sum() / num_scored).backward()
    for ours, theirs in zip(engine._scorer.model.parameters(), plain.parameters(), strict=True):
        assert (ours.grad - theirs.grad).norm() <= 1e-5 * theirs.grad.norm() + 1e-7


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 999), max_tokens=st.integers(18, 60), world_size=st.integers(1, 3))
def test_a_plan_has_each_step_once_keeps_to_the_cap_and_knows_what_will_be_packed(
    seed: int, max_tokens: int, world_size: int
):
    with tempfile.TemporaryDirectory() as folder:
        index = _index(Path(folder, "s"), random_episodes(seed, 6, vocabulary=2))
        plan = _plan(index, max_tokens=max_tokens, order=read_prefix_order(index))
        reader = BatchReader(index)
        ranks = plan.micro_batches(0, world_size)
        real = [micro for rank in ranks for micro in rank if not micro.is_dummy]
        assert sorted(np.concatenate([m.steps for m in real])) == list(range(len(index)))
        batches = [reader.read(micro) for micro in real]
    sizes = [len(batch.input_ids) for batch in batches]
    assert max(sizes) <= max_tokens
    assert plan.statistics(0, world_size).num_tokens == sum(sizes)
    keys = [len(b.input_ids if b.keys is None else b.keys.positions) for b in batches]
    responses = [len(batch.predictor) for batch in batches]
    assert plan.sizes() == {*zip(sizes, responses, keys, strict=True)}


def test_attention_across_runs_counts_as_that_of_the_whole_sequence(tmp_path: Path):
    """Two sequences of 6 that share 4: 8 tokens, and 6² / 2 pairs and 2 · 6 - 2² / 2."""
    batch = _pack(_samples([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 7, 8]], [5, 5]))
    shape = model_shape(Scorer(tiny_model()))
    alone = _pack(_samples([[1, 2, 3, 4, 5, 6]], [5]))
    pairs = 12.0 * shape.num_layers * shape.attention_width
    more = 6.0 * shape.num_body * 2 + 6.0 * shape.num_head + pairs * (2 * 6 - 2)
    assert training_flops(shape, batch) == training_flops(shape, alone) + more


def _load(tmp_path: Path) -> None:
    name = save_tiny_model(tmp_path)
    load_model(name, TrainConfig(store=Path(), out=Path(), model=name, share_prefixes=True))


def test_a_model_whose_tokens_see_more_than_their_ancestors_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    causal = attention._causal

    def wrong(query: Tensor, key: Tensor, window: int | None) -> dict[str, Any]:
        if query.shape == key.shape[:1] + query.shape[1:2] + key.shape[2:]:
            return causal(query, key, window)
        return {}

    monkeypatch.setattr(attention, "_causal", wrong)
    with pytest.raises(InputError, match=r"share prefixes must be .* without share_prefixes"):
        _load(tmp_path)


def test_a_model_that_keeps_the_shared_keys_to_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    register_attention()
    real = attention.packed_attention

    def without(*args: Any, key_positions: Tensor | None = None, **others: Any) -> Any:
        return real(*args, **others)

    monkeypatch.setattr("graphcredit.trainer.model.packed_attention.packed_attention", without)
    try:
        with pytest.raises(InputError, match="does not hand key_positions on"):
            _load(tmp_path)
    finally:
        monkeypatch.undo()
        register_attention()


def test_the_dry_run_says_what_sharing_would_save_and_saves(tmp_path: Path):
    trajectories = _growing(3, 4)
    token_store(tmp_path / "s", trajectories)
    tokens = [_tokens(row) for row in _rows(trajectories)]
    config = TrainConfig(
        store=tmp_path / "s",
        out=tmp_path / "out",
        model=save_tiny_model(tmp_path / "m"),
        device="cpu",
    )
    without, shared = (
        preview(config.changed(share_prefixes=flag), num_processes=1)["plan"]
        for flag in (False, True)
    )
    logged, distinct = sum(map(len, tokens)), len(_prefixes(tokens))
    assert (without["num_tokens"], without["num_distinct_tokens"]) == (logged, distinct)
    assert (shared["num_tokens"], shared["num_distinct_tokens"]) == (distinct, distinct)
    assert shared["num_logged_tokens"] == without["num_logged_tokens"] == logged
