"""Any environment can be brought back to a state by its actions."""

from graphcredit.collector.environments.base import Task, replay
from tests.collector.corridor import Corridor


def test_replaying_a_prefix_reaches_the_state_it_led_to():
    environment = Corridor(num_rooms=4)
    environment.reset()
    for action in ("east", "east", "west"):
        reached = environment.step(action).observation
    environment.step("east")
    assert replay(environment, ["east", "east", "west"]) == reached
    assert reached.state == "room 1"


def test_replaying_nothing_is_the_start():
    assert replay(Corridor(num_rooms=4), []).state == "room 0"


def test_a_task_is_named_by_its_environment_and_its_settings():
    task = Task(environment="textworld", spec="custom-r8o8q6-s1")
    assert task.task_id == "textworld-custom-r8o8q6-s1"
