"""What is noise in texts of states, and what is not."""

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.noise.disturb import disturb_steps
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import MergeReport, open_merger
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.counts.tally import tally
from graphcredit.credit.merging.segments.looks.visits import Visits, visits_of
from graphcredit.credit.merging.segments.noise.typos import TypoRules, sort_of
from graphcredit.credit.merging.segments.noise.words import WordRules
from graphcredit.credit.merging.segments.text.parse import Segment, parse, without_layout
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, kind_of, shows_value, tokenise
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.batches import plan_batches
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.credit.steps.nodes import Nodes, exact_nodes
from tests.worlds import step_table, trajectory, write_store


def merged(rows: list[dict[str, Any]], **settings: Any) -> tuple[Nodes, MergeReport]:
    """Return the nodes of some steps, merged by segments learned from the same steps."""
    table = step_table(rows)
    merger = open_merger(MergeSettings(merge="segments", **settings)).learn([table])
    steps, _ = complete_trajectories(table)
    found = merger.nodes(steps, table)
    return found.nodes, found.report


def shown(text: str) -> list[str]:
    """Return the segments of a text, each with its address."""
    return [f"{part.address} {' '.join(part.tokens)}".strip() for part in parse(text)]


def test_tokens_are_words_punctuation_and_what_has_a_type():
    line = "[12:03] A cashew (#83ab12) costs 2.50 at Joe's, on 2025-01-02."
    assert tokenise(line) == (
        *("[", "12:03", "]", "a", "cashew", "(", "#", "83ab12", ")", "costs", "2.50", "at"),
        *("joe's", ",", "on", "2025-01-02", "."),
    )
    kinds = {token: kind_of(token) for token in ("12:03", "83ab12", "2.50", "7", "facade", "key")}
    assert kinds == {
        "12:03": "time",
        "83ab12": "hex6",
        "2.50": "decimal",
        "7": "integer",
        "facade": "hex6",
        "key": "",
    }


@pytest.mark.parametrize(
    "date",
    [
        *("Wed 11 Mar 2026", "Wednesday, 11th March 2026", "Mar 11, 2026", "06/Mar/2026"),
        *("03.03.2026", "3/12/2026", "03-03-2026", "2026/03/10", "2026年3月10日", "2026-03-10"),
    ],
)
def test_a_date_is_one_token_however_it_is_written(date: str):
    assert tokenise(f"on {date}, 18:05") == ("on", date.casefold(), ",", "18:05")
    assert kind_of(date.casefold()) == "date"


@pytest.mark.parametrize(
    "text", ["1.2.3.4", "192.168.20.2000", "march 5", "sun 3", "10/20", "v1.2"]
)
def test_what_has_no_year_is_no_date(text: str):
    assert "date" not in map(kind_of, tokenise(f"it is {text} 20"))


def test_a_number_is_told_from_its_unit_but_not_a_digit_from_its_word():
    assert tokenise("68hp 12ms 20kb") == ("68", "hp", "12", "ms", "20", "kb")
    assert tokenise("th1s 1s d0or 7b4") == ("th1s", "1s", "d0or", "7b4")


def test_what_takes_no_place_on_a_screen_is_left_out():
    assert tokenise("\ufeffa kit\u200bchen\u00a0with soft\u00adness") == tokenise(
        "a kitchen with softness"
    )


def test_a_slot_is_no_value():
    assert not shows_value(("it", "is", SLOT, "."))
    assert not shows_value(())
    assert shows_value(("coins", "3"))


def test_drawings_keep_their_blanks_and_their_case():
    assert tokenise("# @ X") != tokenise("# @ x")
    assert tokenise("#  @#") != tokenise("# @ #")
    assert tokenise(" #") != tokenise("#")


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("A hall. A door!\nA key", ["a hall .", "a door !", "a key"]),
        ("hp: 7\nmood: not bad", ["hp: 7", "mood: not bad"]),
        ("| a. b | 2 |", ["| a . b | 2 |"]),
        ('{"b": {"t": 1}, "a": "Hi. Yo."}', [".a hi .", ".a yo .", ".b.t 1"]),
        ('Result: [{"a": 2}] ok', ["result:", "[].a 2", "ok"]),
        ('<p id="x7" class=y>A &amp; B</p>', ["<p>", "<p class> y", "<p id> x7", "A & B", "</p>"]),
        ("a {b} < c", ["a { b }   < c"]),
        ('{"a": ', ['{ " a " :']),
    ],
)
def test_structures_are_parsed(text: str, segments: list[str]):
    assert shown(text) == segments


@given(st.lists(st.text(), max_size=5))
def test_segments_are_those_of_each_text_alone(texts: list[str]):
    found = Parsed.of(texts)
    assert found.num_texts == len(texts)
    for text, codes in zip(texts, found.lists(), strict=True):
        assert [found.segments[code] for code in codes] == parse(text)


def test_without_layout_nothing_but_words_is_left():
    assert without_layout(Segment("", tokenise("* A **big**   hall!"))).tokens == (
        "a",
        "big",
        "hall",
    )


def test_identities_are_lists_or_multisets():
    parsed = Parsed.of(["a. b. b.", "b. a. b.", "a. b."])
    assert parsed.identities(False).tolist() == [0, 1, 2]
    assert parsed.identities(True).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("right", "wrong", "sort"),
    [
        ("closed", "colsed", "swap"),
        ("closed", "clsed", "miss"),
        ("closed", "clossed", "add"),
        ("closed", "clised", "replace"),
        ("closed", "opened", ""),
        ("closed", "closed", ""),
    ],
)
def test_sorts_of_typing_errors(right: str, wrong: str, sort: str):
    assert sort_of(right, wrong) == sort


def test_a_rare_word_is_an_error_unless_it_is_an_action_or_another_sort():
    rules = TypoRules(sorts=frozenset({"swap"}), known=frozenset({"trial"}))
    counts = {"closed": 40, "colsed": 2, "clsed": 2, "trail": 30, "trial": 1, "form": 9, "from": 9}
    assert rules.corrections(counts, ()) == {"colsed": ["closed"]}
    assert rules.corrections(counts, ["colsed"]) == {}
    assert TypoRules().corrections(counts, ()) == {}


def test_phrases_are_replaced_the_longest_first():
    rules = WordRules.of(
        {("you", "see"): ("there", "is"), ("see",): ("spot",)}, {("big", "hall", ("old",)): ()}
    )
    part = Segment("", ("you", "see", "a", "big", "old", "hall", "see", "old", "hall"))
    assert rules.apply(part).tokens == ("there", "is", "a", "big", "hall", "spot", "old", "hall")


def visits_in(rng: random.Random, number: int) -> Visits:
    """Return random visits, four of a trajectory."""
    place = np.arange(number)
    trajectory = place // 4
    group = trajectory % 2
    certain = np.array([rng.randrange(4) for _ in place]) * 2 + group
    return Visits(
        node=place,
        certain=certain,
        group=group,
        index=place % 4,
        walked=certain,
        trajectory=trajectory,
        taken=np.array([rng.choice([-1, 0, 1]) for _ in place]),
        is_valid=np.array([rng.random() < 0.7 for _ in place]),
        outcome=np.array([rng.randrange(2) for _ in place]),
        succeeds=trajectory % 3 == 0,
    )


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_a_tally_counts_pairs_as_a_slow_one_does(seed: int):
    rng = random.Random(seed)
    visits = visits_in(rng, 24)
    visit = np.array(sorted(rng.sample(range(24), 18)))
    key = np.array([rng.randrange(2) for _ in visit])
    value = np.array([rng.randrange(3) for _ in visit])
    found = tally(key, 2, visit, value, visits, Scale.of([("a",), ("b",), ("c",)]))
    for wanted in range(2):
        rows = [n for n in range(18) if key[n] == wanted]
        pairs = list(combinations(rows, 2))

        def differing(pairs: list[tuple[int, int]]) -> int:
            return sum(value[a] != value[b] for a, b in pairs)

        def of(a: int, b: int, name: str) -> bool:
            return getattr(visits, name)[visit[a]] == getattr(visits, name)[visit[b]]

        own = [pair for pair in pairs if of(*pair, "certain")]
        across = [p for p in pairs if of(*p, "group") and not of(*p, "certain")]
        assert found.loose_observed[wanted] == differing(own)
        assert found.loose_pairs[wanted] == len(across)
        assert found.loose_rate[wanted] == pytest.approx(differing(across))
        timed = [p for p in across if of(*p, "index")]
        assert found.same_time[wanted] == pytest.approx(differing(timed))
        following = [
            (a, b)
            for a in rows
            for b in rows
            if visit[b] == visit[a] + 1 and of(a, b, "trajectory") and visits.action[visit[a]] >= 0
        ]
        assert found.changes.differs[found.changes.key == wanted].sum() == differing(following)


def classes(*rows: list[dict[str, Any]]) -> list[int]:
    """Return the class of each visit, numbered in order of first appearance."""
    steps, _ = complete_trajectories(step_table([step for row in rows for step in row]))
    nodes = exact_nodes(steps)
    visits = visits_of(steps, nodes, np.full(len(nodes.text_of_node), -1))
    order: dict[int, int] = {}
    return [order.setdefault(code, len(order)) for code in visits.certain.tolist()]


def test_the_same_actions_from_the_start_lead_to_one_state():
    # x: start, after a, after a b; y: start, after a, after a c; then the ends of x and y.
    assert classes(trajectory("x", "A a B b C"), trajectory("y", "A2 a B2 c D")) == [
        *(0, 1),
        *(0, 1),
        *(2, 3),
    ]


def test_an_invalid_action_does_not_leave_the_state():
    rows = trajectory("x", "A q A2 a B", invalid=(0,)), trajectory("y", "A3 a B2")
    assert classes(*rows) == [0, 0, 0, 1, 1]


def test_groups_share_no_state():
    rows = trajectory("x", "A a B", task_id="t0"), trajectory("y", "A a B", task_id="t1")
    assert classes(*rows) == [0, 1, 2, 3]


def test_a_success_ends_in_the_goal_and_not_in_a_visit():
    assert classes(trajectory("x", "A a B", success=True), trajectory("y", "A a B")) == [0, 0, 1]


HALL, DOOR, OPEN = "A long hall.", "A closed door leads east.", "An open door leads east."


def hall_world() -> list[dict[str, Any]]:
    """Return two trajectories that open a door, with advertisements that differ."""
    first = [f"{HALL} Buy hats!\n{DOOR}", "open", f"{HALL}\n{OPEN}", "look", f"{HALL} {OPEN} Sale!"]
    other = [f"{HALL}\n{DOOR}", "open", f"{HALL}\n{OPEN} Buy figs!", "look", f"{HALL} {OPEN}"]
    return [*trajectory("x", first), *trajectory("y", other)]


def test_advertisements_go_and_doors_stay():
    nodes, report = merged(hall_world())
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1]
    assert nodes.target_of_step.tolist() == [1, 1, 1, 1]
    assert nodes.num_texts.tolist() == [2, 4]
    assert (report.num_texts, report.num_states) == (6, 2)


def test_the_guard_holds_for_segments_too():
    other = trajectory("z", [f"{HALL} {DOOR}", "wait", f"{HALL} Buy hats!\n{OPEN}", "kick", "End."])
    lists = (["open"], ["look"], ["open"], ["look"], ["open"], ["kick"])
    rows = [
        row | {"admissible_actions": actions}
        for row, actions in zip([*hall_world(), *other], lists, strict=True)
    ]
    nodes, report = merged(rows)
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1, 0, 2]
    assert report.num_refused == 1
    nodes, report = merged(rows, guard=False)
    assert nodes.state_of_step.tolist() == [0, 1, 0, 1, 0, 1]
    assert report.num_refused == 0


def test_the_stage_learns_from_the_whole_iteration_before_it_merges(tmp_path: Path):
    """`Buy hats!` comes and goes in t0 only; t1 has it in a state that no class sees twice."""
    one = [f"{HALL} Buy hats!", "a", f"{HALL} {OPEN}", "b", HALL, "c", "End."]
    rows = hall_world() + trajectory("z", one, task_id="t1")
    store = write_store(tmp_path / "s", rows)
    assert len(plan_batches(store.shards(), 4).shards_of_batch) == 2
    wanted = {"estimators": configure(["graphgpo"]), "merge": MergeSettings(merge="segments")}
    tables: list[Any] = []
    for batch_rows in (4, 1000):
        assign_credit(store, CreditSettings(**wanted, batch_rows=batch_rows))
        tables.append(pq.ParquetFile(store.shards()[0].credit_path).read())
    assert tables[0]["state_id"].to_pylist() == [0, 1, 0, 1, 0, 1, 0]
    assert tables[0].equals(tables[1])


_ROOMS = ("kitchen", "cellar", "garden")


def _look(room: int, is_open: bool, coins: int, is_lit: bool) -> str:
    door, lamp = ("open" if is_open else "closed"), ("on" if is_lit else "off")
    return (
        f"You are in the {_ROOMS[room]}.\nThe door is {door}. The lamp is {lamp}.\n{coins} coins."
    )


def lamp_world(flicker: float) -> tuple[list[dict[str, Any]], list[str]]:
    """Return steps of states that differ in one word, and the text of each step's state."""
    rows: list[dict[str, Any]] = []
    for task in range(6):
        for number in range(8):
            rng = random.Random(f"{task} {number}")
            room, is_open, coins, is_lit = task % 3, False, 0, False
            path = [_look(room, is_open, coins, is_lit)]
            for _ in range(16):
                action = rng.choice(("door", "door", "walk", "walk", "walk", "coin", "lamp"))
                is_open ^= action == "door"
                is_lit ^= action == "lamp"
                room = (room + 1) % 3 if action == "walk" and is_open else room
                coins = min(coins + 1, 4) if action == "coin" and room == 1 else coins
                is_lit ^= rng.random() < flicker
                path += [action, _look(room, is_open, coins, is_lit)]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}", success=coins > 1)
    return rows, [row["state"] for row in rows]


def _meter(text: str, rng: random.Random, index: int) -> str:
    return f"{text}\nHP {rng.randrange(20, 40)} of 40. Battery {99 - 2 * index} %"


def _say(text: str, rng: random.Random, index: int) -> str:
    return text.replace("You are in", rng.choice(("You are in", "This is", "You stand in")))


def _mistype(text: str, rng: random.Random, index: int) -> str:
    words = text.split(" ")
    place = rng.randrange(len(words))
    if len(words[place]) > 4 and rng.random() < 0.3:
        words[place] = words[place][:2] + words[place][3] + words[place][2] + words[place][4:]
    return " ".join(words)


def _wrap(text: str, rng: random.Random, index: int) -> str:
    return f'{{"ms": {rng.random()}, "text": {json.dumps(text)}, "id": "{rng.getrandbits(40):x}"}}'


_SKIES = (
    "It is raining.",
    "The sun is shining.",
    "A cold wind blows.",
    "It is foggy.",
    "Snow falls.",
)


def _sky(text: str, rng: random.Random, index: int) -> str:
    """Add a sentence in one of several forms, some of which share a word that passes by."""
    return f"{text}\n{rng.choice(_SKIES)}"


@pytest.mark.parametrize("flicker", [0.0, 0.2])
@pytest.mark.parametrize("noise", [_meter, _say, _mistype, _wrap, _sky])
def test_two_states_that_differ_in_a_word_are_two_whatever_the_noise(noise: Any, flicker: float):
    """Also where the lamp goes on and off by itself, so that no two looks are certainly alike."""
    rows, truth = lamp_world(flicker)
    table = disturb_steps(step_table(rows), noise, 0)
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    steps, _ = complete_trajectories(table)
    node = merger.nodes(steps, table).nodes.state_of_step.tolist()
    names = [f"{rows[row]['task_id']} {truth[row]}" for row in steps.row.tolist()]
    assert len(set(zip(node, names, strict=True))) == len(set(node))
    assert len(set(node)) <= 1.2 * len(set(names))


def test_a_log_without_noise_has_the_exact_states():
    rows, _ = lamp_world(0.0)
    nodes, report = merged(rows)
    assert report.num_states == report.num_texts
    assert nodes.state_of_step.tolist() == _exact(rows)


def _exact(rows: list[dict[str, Any]]) -> list[int]:
    steps, _ = complete_trajectories(step_table(rows))
    return exact_nodes(steps).state_of_step.tolist()
