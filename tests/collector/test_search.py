"""The search environment on a few made-up countries, and on the real ones."""

import random
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector.environments.base import Environment, Observation, replay
from graphcredit.collector.environments.search.environment import SearchEnvironment
from graphcredit.collector.environments.search.facts import Facts, facts_of, load_facts
from graphcredit.collector.environments.search.questions import (
    Question,
    all_questions,
    list_tasks,
    question_named,
)
from graphcredit.collector.policies.base import Decision
from graphcredit.collector.policies.registry import parse_policy
from graphcredit.store.errors import OptionError
from tests.examples import examples

WORLD = facts_of(
    {
        "Arland": {
            "borders": ["Borland", "Corland"],
            "capital": ["Ar City"],
            "continent": ["Middle"],
            "currency": ["Ar Dollar"],
        },
        "Borland": {
            "borders": ["Arland"],
            "capital": ["Bor City"],
            "cities": ["Bor City", "Borport"],
            "currency": ["Bor Dollar"],
        },
        "Corland": {"borders": ["Arland"], "capital": ["Cor City"], "currency": ["Ar Dollar"]},
    }
)
QUESTION = Question(
    hops=2,
    text="What is the capital of the country that borders Arland and whose currency is the "
    "Bor Dollar?",
    entities=("Arland", "Bor Dollar"),
    answer="Bor City",
)


def new(question: Question = QUESTION, facts: Facts = WORLD) -> SearchEnvironment:
    return SearchEnvironment(question, facts, with_oracle=True)


def after(*actions: str) -> Observation:
    return replay(new(), actions)


def test_at_first_only_what_the_question_names_is_known():
    first = new().reset()
    assert first.state == "Page: none"
    assert first.text == f"Question: {QUESTION.text}\nPage: none"
    assert first.admissible_actions == ("search[Arland]", "search[Bor Dollar]")


def test_reading_a_page_shows_what_it_says():
    observation = after("search[Arland]", "lookup[borders]")
    assert observation.state == (
        "Page: Arland (to look up: borders, capital, continent, currency)\n"
        "Arland, borders: Borland, Corland"
    )
    assert observation.admissible_actions == (
        "lookup[borders]",
        "lookup[capital]",
        "lookup[continent]",
        "lookup[currency]",
        "search[Bor Dollar]",
        "search[Borland]",
        "search[Corland]",
    )


def test_cities_that_were_seen_may_be_answered():
    observation = after("search[Arland]", "lookup[capital]")
    answers = [a for a in observation.admissible_actions or () if a.startswith("answer")]
    assert answers == ["answer[Ar City]"]


def test_the_same_knowledge_at_the_same_page_is_the_same_state_whatever_the_order():
    one = after("search[Arland]", "lookup[capital]", "lookup[borders]")
    other = after("search[Arland]", "lookup[borders]", "search[Corland]", "search[Arland]")
    assert one != other
    assert one == after("search[Arland]", "lookup[borders]", "lookup[capital]", "lookup[borders]")
    assert other == after("search[Arland]", "lookup[borders]")


def test_the_right_answer_wins_and_a_wrong_one_ends_the_episode():
    environment = new()
    environment.reset()
    right = environment.step("answer[bor  city]")
    assert (right.reward, right.terminated, right.success) == (1.0, True, True)
    assert right.observation.state == "The answer is right."
    assert (right.observation.oracle_actions, right.observation.oracle_distance) == ((), 0.0)
    environment.reset()
    wrong = environment.step("answer[Ar City]")
    assert (wrong.reward, wrong.terminated, wrong.success) == (0.0, True, False)
    assert wrong.observation.state == "The answer is wrong."
    assert wrong.observation.oracle_distance is None
    assert wrong.is_action_valid


@pytest.mark.parametrize(
    "action",
    ["", "look", "search Arland", "search[Atlantis]", "lookup[capital]", "lookup[]", "answer"],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(action: str):
    environment = new()
    before = environment.reset()
    done = environment.step(action)
    assert (done.is_action_valid, done.terminated, done.reward) == (False, False, 0.0)
    assert done.observation == before


def test_a_relation_that_the_page_has_not_is_refused():
    environment = new()
    environment.reset()
    environment.step("search[Bor City]")
    assert not environment.step("lookup[borders]").is_action_valid
    assert environment.step("lookup[Country]").is_action_valid


def test_the_plan_reads_its_way_to_the_answer():
    first = new().reset()
    assert first.oracle_actions == (
        "search[Arland]",
        "lookup[borders]",
        "search[Borland]",
        "lookup[capital]",
        "answer[Bor City]",
    )
    assert first.oracle_distance == 5.0
    # Elsewhere, the way back to what was read costs one search.
    assert after("search[Arland]", "lookup[borders]", "search[Corland]").oracle_distance == 3.0
    assert after("search[Borland]", "lookup[cities]").oracle_actions == ("answer[Bor City]",)


def test_without_an_oracle_there_is_no_plan():
    first = SearchEnvironment(QUESTION, WORLD, with_oracle=False).reset()
    assert (first.oracle_actions, first.oracle_distance) == (None, None)


def shortest(environment: Environment, prefix: list[str], limit: int) -> int | None:
    """Return the length of the shortest way to win by admissible actions, by trying all."""
    seen = {replay(environment, prefix).state}
    queue = deque([(prefix, 0)])
    while queue:
        actions, length = queue.popleft()
        if length == limit:
            return None
        for action in replay(environment, actions).admissible_actions or ():
            replay(environment, actions)
            done = environment.step(action)
            if done.success:
                return length + 1
            if not done.terminated and done.observation.state not in seen:
                seen.add(done.observation.state)
                queue.append(([*actions, action], length + 1))
    return None


@settings(max_examples=examples(25))
@given(walk=st.lists(st.integers(0, 50), max_size=5), number=st.integers(0, 3))
def test_the_oracle_distance_is_the_shortest_way_of_all(walk: list[int], number: int):
    question = list(all_questions(WORLD))[number]
    environment = new(question)
    observation, prefix = environment.reset(), []
    for choice in walk:
        actions = [a for a in observation.admissible_actions or () if not a.startswith("answer")]
        prefix.append(actions[choice % len(actions)])
        observation = environment.step(prefix[-1]).observation
    assert shortest(environment, prefix, limit=8) == observation.oracle_distance


def test_policies_say_what_their_action_is_about():
    observation = after("search[Arland]", "lookup[capital]")
    oracle = parse_policy("oracle:0").act(observation, random.Random(0))
    assert oracle == Decision(action="lookup[borders]", thought="I want the borders of Arland.")
    said = {parse_policy("random").act(observation, random.Random(seed)) for seed in range(99)}
    assert {decision.action for decision in said} == set(observation.admissible_actions or ())
    thoughts = {decision.action: decision.thought for decision in said}
    assert thoughts["search[Ar City]"] == "The page of Ar City may lead to the answer."
    assert thoughts["answer[Ar City]"] == "I think that the answer is Ar City."


def test_the_questions_of_a_small_world():
    found = {(q.hops, q.entities): q.answer for q in all_questions(WORLD)}
    # Arland's neighbours have different currencies; the others have one neighbour each.
    assert found == {
        (2, ("Arland", "Bor Dollar")): "Bor City",
        (2, ("Arland", "Ar Dollar")): "Cor City",
        (2, ("Borland", "Ar Dollar")): "Ar City",
        (2, ("Corland", "Ar Dollar")): "Ar City",
        (3, ("Ar City", "Bor Dollar")): "Bor City",
        (3, ("Ar City", "Ar Dollar")): "Cor City",
        (3, ("Bor City", "Ar Dollar")): "Ar City",
        (3, ("Cor City", "Ar Dollar")): "Ar City",
    }


def test_neighbours_with_one_currency_make_no_question():
    facts = facts_of(
        {
            "A": {"borders": ["B", "C"], "capital": ["a"], "currency": ["x"]},
            "B": {"capital": ["b"], "currency": ["y"]},
            "C": {"capital": ["c"], "currency": ["y"]},
        }
    )
    assert list(all_questions(facts)) == []


def test_the_real_facts_are_a_world_of_unique_names():
    facts = load_facts()
    assert facts.pages["Oman"]["borders"] == ("Saudi Arabia", "United Arab Emirates", "Yemen")
    assert facts.pages["Muscat"] == {"country": ("Oman",)}
    kinds = Counter(facts.kinds.values())
    assert kinds["country"] == 242
    assert kinds["city"] > 900
    folded = Counter(name.casefold() for name in facts.pages)
    assert [name for name, count in folded.items() if count > 1] == []
    # Two cities of one name would be one page: each city's country names it back.
    for name, kind in facts.kinds.items():
        if kind == "city":
            (country,) = facts.pages[name]["country"]
            page = facts.pages[country]
            assert name in (*page["capital"], *page.get("cities", ())), name


def test_every_real_question_has_one_answer_and_a_way_to_it():
    facts = load_facts()
    questions = list(all_questions(facts))
    assert Counter(q.hops for q in questions) == {2: 506, 3: 506}
    assert len({q.text for q in questions}) == len(questions)
    for question in questions[::41]:
        country, currency = question.entities
        if question.hops == 3:
            (country,) = facts.pages[country]["country"]
        right = [
            facts.pages[n]["capital"][0]
            for n in facts.pages[country]["borders"]
            if currency in facts.pages[n]["currency"]
        ]
        assert right == [question.answer]
        distance = new(question, facts).reset().oracle_distance
        assert distance is not None
        assert 3 <= distance <= 2 * question.hops + 1


def test_tasks_are_named_and_numbered():
    assert [t.task_id for t in list_tasks("2hop", num_tasks=2, seed=1)] == [
        "search-2hop-s1",
        "search-2hop-s2",
    ]
    mixed = [t.spec for t in list_tasks("2hop, 3hop-s7", num_tasks=4, seed=0)]
    assert mixed == ["2hop-s0", "3hop-s7", "2hop-s1", "2hop-s2"]
    assert [t.spec for t in list_tasks("3hop-s7", num_tasks=9, seed=0)] == ["3hop-s7"]
    assert len(list_tasks("2hop", num_tasks=9999, seed=0)) == 506
    assert [t.spec for t in list_tasks("2hop", num_tasks=3, seed=1000)] == [
        f"2hop-s{number}" for number in (494, 495, 496)
    ]
    assert [t.spec for t in list_tasks("3hop", num_tasks=2, seed=505)] == ["3hop-s505", "3hop-s0"]
    assert len(list_tasks(None, num_tasks=9999, seed=500)) == 2 * 506
    # The same on every machine, whatever Python's hash seed.
    assert question_named("2hop-s1").entities == ("Bolivia", "Peso (ARS)")


@pytest.mark.parametrize(
    ("games", "number", "seed", "message"),
    [
        ("4hop", 1, 0, "questions are 2hop or 3hop.*got '4hop'"),
        ("2hop-s506", 1, 0, "2hop has questions 0 to 505: got 506"),
        ("", 1, 0, "questions are 2hop or 3hop.*got ''"),
        ("2hop", 0, 0, "the number of tasks must be 1 or more: got 0"),
        ("2hop-s1,3hop-s2", 1, 0, "with 1 task, 1 would be left out, 3hop-s2 the first"),
    ],
)
def test_what_is_no_question_is_refused(games: str, number: int, seed: int, message: str):
    with pytest.raises(OptionError, match=message):
        list_tasks(games, num_tasks=number, seed=seed)


def test_a_question_needs_its_number():
    with pytest.raises(OptionError, match="<hops>hop-s<number>: got '2hop'"):
        question_named("2hop")
