"""What distinguishes states of one name, on texts written by hand."""

from collections.abc import Sequence

from graphcredit.viewer.graph.task_graph import Node
from graphcredit.viewer.graph.words import distinctions, headline


def nodes(texts: Sequence[str], goal: int | None = None) -> list[Node]:
    return [
        Node(
            state_id=number,
            state=text,
            is_goal=number == goal,
            visits=1,
            num_trajectories=1,
            success_rate=0.0,
            goal_distance=None,
            rewardflow_value=None,
            reach_expected=None,
            reach_doubt=None,
            num_merged=1,
        )
        for number, text in enumerate(texts)
    ]


def test_the_first_line_is_told_without_its_decoration():
    (node,) = nodes(["-= Bar =-\nA rusty notice."])
    assert headline(node) == "Bar"


def test_states_of_one_name_are_told_by_the_words_that_fewest_have():
    found = nodes(
        [
            "-= Bar =-\nThe gate is closed. You carry nothing.",
            "-= Bar =-\nThe gate is open. You carry a lamp.",
            "-= Bar =-\nThe gate is closed. You carry a lamp.",
            "-= Hall =-\nThe gate is closed. You carry nothing.",
        ]
    )
    # The hall needs no more than its name.
    assert distinctions(found) == {0: "nothing closed", 1: "open lamp", 2: "closed lamp"}


def test_a_state_without_a_word_of_its_own_is_told_by_what_it_lacks():
    found = nodes(["Bar\nA table.", "Bar\nA table. A lamp.", "Bar\nA table. A lamp. A sword."])
    assert distinctions(found) == {0: "no lamp", 1: "lamp", 2: "sword lamp"}


def test_equal_texts_and_goals_have_nothing_to_tell():
    assert distinctions(nodes(["Bar", "Bar", "Bar"], goal=2)) == {}
    assert distinctions(nodes(["", ""])) == {}


def test_what_is_told_is_short_and_visible():
    found = distinctions(nodes(["Bar\n" + "x" * 500, "Bar\n\x1b" + "y" * 500]))
    assert max(map(len, found.values())) <= 16
    assert all(text.isprintable() for text in found.values())
