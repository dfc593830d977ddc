"""The rules of the merge `segments`, one by one, and how texts are read."""

import html
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.noise.disturb import Disturb, VisitRandom, disturb_steps
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.merging.candidates import Candidates
from graphcredit.credit.merging.merger import MergeReport, open_merger
from graphcredit.credit.merging.segments.learn import learn
from graphcredit.credit.merging.segments.merge import SegmentMerge
from graphcredit.credit.merging.segments.observations import observe
from graphcredit.credit.merging.segments.parse import parse
from graphcredit.credit.merging.segments.rules import RULES, NoiseRule, always
from graphcredit.credit.merging.segments.sample import take_sample
from graphcredit.credit.merging.segments.statistics import agreement, dependence
from graphcredit.credit.merging.segments.tokens import kind_of, split
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.batches import plan_batches
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.credit.steps.nodes import Nodes, exact_nodes
from tests.credit.lamp_world import lamp_world
from tests.worlds import step_table, trajectory, write_store


def merged(rows: list[dict[str, Any]], **settings: Any) -> tuple[Nodes, MergeReport]:
    """Return the nodes of some steps, merged by segments learned from the same steps."""
    table = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments", **settings)).learn([table])
    steps, _ = complete_trajectories(table)
    nodes = merger.nodes(steps, table)
    return nodes.nodes, nodes.report()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("date", ["2025-01-02", "2025-01-02T10:11:12.5Z", "Wed 11 Mar 2026", "March 11th, 2026"]),
        ("date", ["03.03.2026", "3/12/2026", "06/Mar/2026:10:11:12 +0000", "Nov  2 10:31:22"]),
        ("time", ["12:03", "12:03:04", "12:03:04,123", "1:03 PM"]),
        ("ago", ["3 minutes ago", "an hour ago", "just now"]),
        ("number", ["7", "-2.50", "3,217", "214 ms", "0.31s", "12.3 MB", "5%", "40°C", "68hp"]),
        ("identifier", ["83ab12", "0x7f3a99", "10.0.3.4:8080", "call_5f3a", "/tmp/tmpabc_d/x"]),
        ("identifier", ["2f1c9f6e-1111-4222-8333-944444444444", "shop-wfdpxflsb-gqwhk", "facade"]),
        ("identifier", ["dGhpcyBpcyBhIHRva2VuIQ=="]),
        ("bar", ["[###-----]", "=======", "⠋"]),
    ],
)
def test_a_typed_token_is_one_token_of_its_kind(kind: str, values: list[str]):
    for value in values:
        line = split("", f"it is {value}, so")
        assert (line.pieces, line.values) == (("it is ", ", so"), (value,))
        assert kind_of(value) == kind


@pytest.mark.parametrize("text", ["a key", "# @ #", "Joe's v", "well-known", "(x)", "crypt", ""])
def test_words_and_signs_have_no_type(text: str):
    assert split("", text).values == ()


def test_blanks_beside_a_value_go_with_it_and_others_stay():
    line = split("", "a  b  7   root")
    assert line.without(frozenset({0})) == "a  b◊root"
    assert line.text == "a  b  7   root"


def shown(text: str) -> list[str]:
    """Return the lines of a text, each with its address."""
    return [f"{line.address}|{line.text}" for line in parse(text)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("A hall. A door!\n\nA key", ["|A hall. A door!", "|A key"]),
        ('{"b": {"t": 1}, "a": "Hi.\\nYo."}', [".a|Hi.", ".a|Yo.", ".b.t|1"]),
        ('Result: [{"a": null}] ok', ["|Result: ", "[].a|null", "| ok"]),
        ('{"83ab12": "x", "73cd": "y"}', [".◊|83ab12", ".◊|x", ".◊|73cd", ".◊|y"]),
        (
            '<p id="x7" class=y>A &amp; B</p><hr>C',
            ["<p> @class|y", "<p> @id|x7", "<p>|A & B", "<hr>|", "|C"],
        ),
        ("<b></b>", ["<b>|"]),
        ("<socket fd=7> a {b} < c", ["|<socket fd=7> a {b} < c"]),
        ("\x1b[31mred\x1b[0m hat", ["|red hat", " colours|0[31m 3[0m"]),
        ("7: a\nx\n8: b\n11: c", [" #|7: a", "|x", " #|8: b", "|11: c"]),
        ('{"a": ', ['|{"a": ']),
    ],
)
def test_structures_are_parsed(text: str, lines: list[str]):
    assert shown(text) == lines


@pytest.mark.parametrize(
    ("opened", "closed"), [("<a>", "</b>"), ("<a x=", "")], ids=["never closed", "never ended"]
)
def test_many_tags_that_do_not_match_are_text(opened: str, closed: str):
    """Each took the time of all before it: minutes, for one text."""
    assert shown(opened * 50_000 + closed * 50_000) == [f"|{opened * 50_000}"]


@given(st.text())
def test_any_text_can_be_parsed_and_keeps_its_letters(text: str):
    if not set(text) & set("{[<&\x1b"):
        kept = [line for line in text.splitlines() if line and not line.isspace()]
        assert [line.text for line in parse(text)] == kept
    else:
        parse(text)


def classes(*rows: list[dict[str, Any]]) -> list[int]:
    """Return the class of each observation, numbered in order of first appearance."""
    steps, _ = complete_trajectories(step_table([step for row in rows for step in row]))
    nodes = exact_nodes(steps)
    of = observe(steps, nodes, np.full(len(nodes.text_of_node), UNKNOWN))
    order: dict[int, int] = {}
    return [order.setdefault(code, len(order)) for code in of.equivalence.tolist()]


def test_the_same_actions_from_the_start_lead_to_one_state():
    # x: start, after a, after a b; y: start, after a, after a c; then the ends of x and y.
    rows = trajectory("x", "A a B b C"), trajectory("y", "A2 a B2 c D")
    assert classes(*rows) == [0, 1, 0, 1, 2, 3]


def test_groups_share_no_state_and_a_success_ends_in_no_observation():
    rows = trajectory("x", "A a B", task_id="t0"), trajectory("y", "A a B", task_id="t1")
    assert classes(*rows) == [0, 1, 2, 3]
    assert classes(trajectory("x", "A a B", success=True), trajectory("y", "A a B")) == [0, 0, 1]


def test_a_short_trajectory_shares_no_class_with_the_end_of_a_long_one():
    rows = trajectory("x", "A a B"), trajectory("y", "A b B a C"), trajectory("z", "A b B b C")
    assert classes(*rows) == [0, 0, 1, 0, 1, 2, 3, 4]


_PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=12)


@given(_PAIRS)
def test_pairs_are_counted_as_one_by_one(rows: list[tuple[int, int, int]]):
    place, cell, value = np.array(rows, np.int64).reshape(-1, 3).T
    agreeing, pairs = agreement(place, cell, value, 3)
    for wanted in range(3):
        own = [row for row in rows if row[0] == wanted]
        of = [(a, b) for i, a in enumerate(own) for b in own[:i] if a[1] == b[1]]
        assert pairs[wanted] == len(of)
        assert agreeing[wanted] == sum(a[2] == b[2] for a, b in of)


def test_a_label_depends_on_a_value_that_sorts_it():
    place = np.repeat([0, 1], 40)
    value = np.concatenate([np.arange(40), np.arange(40)]).astype(np.float64)
    label = np.concatenate([np.arange(40) >= 20, np.arange(40) % 2]).astype(np.int64)
    excess = dependence(place, np.zeros(80, np.int64), value, label, 2)
    assert excess[0] > 5 > 0 > excess[1]


def _coloured(text: str, rng: VisitRandom, index: int) -> str:
    return "\n".join(f"\x1b[{rng.randrange(31, 37)}m{line}\x1b[0m" for line in text.splitlines())


def _classed(text: str, rng: VisitRandom, index: int) -> str:
    name = "".join(rng.choices("aeioulmnr", k=6))
    return "".join(f'<p class="{name}">{html.escape(line)}</p>' for line in text.splitlines())


def _lined(text: str, rng: VisitRandom, index: int) -> str:
    start = rng.randrange(1, 99)
    return "\n".join(f"{at}: {line}" for at, line in enumerate(text.splitlines(), start))


def _total(text: str, rng: VisitRandom, index: int) -> str:
    steps = random.Random(rng.rollout.random()).choices((1, 2, 5), k=index + 1)
    return f"{text}\nSent: {sum(steps)}"


_BANNERS = ("Our shop has a sale.", "News: rain is near.", "Buy one hat, get two.", "Vote soon.")


def _bannered(text: str, rng: VisitRandom, index: int) -> str:
    lines = text.splitlines()
    for banner in rng.sample(_BANNERS, rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), banner)
    return "\n".join(lines)


def _wandering(text: str, rng: VisitRandom, index: int) -> str:
    walk = random.Random(rng.rollout.random())
    start = walk.randrange(5, 17)
    return f"HP {start + sum(walk.choices((-1, 0, 0, 1), k=index + 1))} of 20\n{text}"


NOISES: dict[str, dict[str, Disturb]] = {
    "prints": {
        "colours": _coloured,
        "attributes": _classed,
        "identifiers": lambda text, rng, index: f"{text}\nref {rng.getrandbits(32):08x}",
        "dates": lambda text, rng, index: f"2025-01-{rng.randrange(1, 29):02}\n{text}",
        "times": lambda text, rng, index: (
            f"It is {rng.randrange(24)}:{rng.randrange(60):02}\n{text}"
        ),
        "line numbers": _lined,
    },
    "counters": {"steps": lambda text, rng, index: f"Step {index} of 30\n{text}"},
    "gauges": {
        "totals": _total,
        "names": lambda text, rng, index: f"Guest {rng.rollout.randrange(1000, 9999)}\n{text}",
        "loads": lambda text, rng, index: f"{text}\nLoad: {rng.randrange(1, 99)}",
        "levels": _wandering,
    },
    "lines": {"banners": _bannered},
}
"""Noise that the rule of the name leaves out, and no other one."""
IDENTIFIERS = NOISES["prints"]["identifiers"]


def num_states(rows: list[dict[str, Any]], noise: Disturb, rules: Sequence[NoiseRule]) -> int:
    """Return how many states the merge finds with some rules."""
    table = disturb_steps(step_table(rows), noise, 0)
    steps, _ = complete_trajectories(table)
    candidates = Candidates.after_rules(steps, np.full(len(steps.row), UNKNOWN), [])
    merge = SegmentMerge(irrelevant=learn(take_sample([candidates]), rules))
    return len(np.unique(merge.unite(candidates).nodes.state_of_step))


def test_each_rule_has_a_noise():
    assert list(NOISES) == [rule.name for rule in RULES]


@pytest.mark.parametrize(
    ("name", "noise"), [(name, noise) for name, noises in NOISES.items() for noise in noises]
)
def test_a_noise_is_left_out_by_its_rule_alone(name: str, noise: str):
    rows, states = lamp_world()
    assert num_states(rows, NOISES[name][noise], RULES) == len(set(states))
    others = [rule for rule in RULES if rule.name != name]
    assert num_states(rows, NOISES[name][noise], others) > 1.2 * len(set(states))


def test_that_a_date_is_never_state_is_a_row_more():
    def dated(text: str, rng: VisitRandom, index: int) -> str:
        return f"2025-01-0{1 + ('lamp is on' in text)}\n{text.replace('lamp is on', 'lamp is off')}"

    rows, states = lamp_world()
    never = NoiseRule(name="dates", kinds=frozenset({"date"}), evidence=(always,), vetoes=())
    assert num_states(rows, dated, RULES) == len(set(states))
    without = {state.replace("lamp is on", "lamp is off") for state in states}
    assert num_states(rows, dated, [never, *RULES]) == len(without)


def test_what_an_action_names_is_no_noise():
    """Each look shows a code; it says nothing of the room, but `enter` needs it."""
    rows: list[dict[str, Any]] = []
    for task in range(8):
        for number in range(8):
            rng = random.Random(f"{task} {number}")
            path = [f"A hall with a lock.\nCode {rng.randrange(10**6):06}"]
            for _ in range(4):
                path += [
                    f"enter {path[-1][-6:]}",
                    f"A hall with a lock.\nCode {rng.randrange(10**6):06}",
                ]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}")
    _, report = merged(rows)
    assert report.num_states == report.num_texts


def test_the_guard_holds_for_segments_too():
    rows, states = lamp_world()
    for row, state in zip(rows, states, strict=True):
        lit = "lamp is on" in state
        row["admissible_actions"] = ["door", "off" if lit else "on"]
        row["state"] = row["state"].replace("lamp is on", "lamp is off")
        row["next_state"] = row["next_state"].replace("lamp is on", "lamp is off")
    table = disturb_steps(step_table(rows), IDENTIFIERS, 0)
    steps, _ = complete_trajectories(table)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    nodes = merger.nodes(steps, table).nodes.state_of_step.tolist()
    names = [states[row] for row in steps.row.tolist()]
    assert len(set(zip(nodes, names, strict=True))) == len(set(nodes)) == len(set(states))


def test_a_log_without_noise_has_the_exact_states():
    rows, _ = lamp_world()
    nodes, report = merged(rows)
    assert report.num_states == report.num_texts
    steps, _ = complete_trajectories(step_table(rows))
    assert nodes.state_of_step.tolist() == exact_nodes(steps).state_of_step.tolist()


def test_the_stage_learns_from_the_whole_iteration_before_it_merges(tmp_path: Path):
    rows, states = lamp_world(num_tasks=5)
    noisy = disturb_steps(step_table(rows), IDENTIFIERS, 0).to_pylist()
    store = write_store(tmp_path / "s", noisy)
    assert len(plan_batches(store.shards(), 200).shards_of_batch) > 1
    wanted: dict[str, Any] = {
        "estimators": configure(["graphgpo"]),
        "merge": MergeSettings(merge="segments"),
    }
    tables: list[Any] = []
    for batch_rows in (200, 10_000):
        assign_credit(store, CreditSettings(**wanted, batch_rows=batch_rows))
        tables.append(pq.ParquetFile(store.shards()[0].credit_path).read())
    assert tables[0].equals(tables[1])
    assert len(set(zip(tables[0]["state_id"].to_pylist(), states, strict=True))) == len(set(states))
