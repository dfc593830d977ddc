"""Policies choose as they say, and all their chance comes from the generator they are given."""

import pickle
import random
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.engines import registry
from graphcredit.collector.policies.registry import POLICIES, LanguageOptions, parse_policy
from graphcredit.collector.policies.scripted import OraclePolicy, RandomPolicy
from graphcredit.store.errors import InputError, OptionError
from tests.collector.talkers import save_talker


def _observation(
    *admissible: str, plan: tuple[str, ...] | None = None, state: str = "hall"
) -> Observation:
    return Observation(state=state, text=None, admissible_actions=admissible, oracle_actions=plan)


def _choices(policy: OraclePolicy | RandomPolicy, observation: Observation, count: int) -> Counter:
    rng = random.Random(0)
    return Counter(policy.act(observation, rng).action for _ in range(count))


def test_the_random_policy_takes_each_admissible_action_equally_often():
    counts = _choices(RandomPolicy(), _observation("look", "north", "south", "take"), 4000)
    assert counts.keys() == {"look", "north", "south", "take"}
    # standard deviation of a count: sqrt(4000 · 1/4 · 3/4) = 27
    assert all(abs(count - 1000) < 110 for count in counts.values())


def test_an_oracle_without_mistakes_follows_the_plan():
    observation = _observation("look", "north", "south", plan=("south", "north"))
    assert _choices(OraclePolicy(epsilon=0.0), observation, 50) == {"south": 50}


def test_an_oracle_errs_as_often_as_it_says():
    observation = _observation("look", "north", "south", "take", plan=("take",))
    counts = _choices(OraclePolicy(epsilon=0.4), observation, 4000)
    # 0.6 from the plan and a quarter of the 0.4 mistakes: 2800, standard deviation 29
    assert abs(counts["take"] - 2800) < 120


def test_an_oracle_that_always_errs_takes_each_action_equally_often():
    counts = _choices(
        OraclePolicy(epsilon=1.0), _observation("look", "north", plan=("north",)), 4000
    )
    assert abs(counts["north"] - 2000) < 130


def test_an_oracle_without_a_plan_does_anything():
    counts = _choices(OraclePolicy(epsilon=0.0), _observation("look", "north"), 100)
    assert counts.keys() == {"look", "north"}


def test_a_policy_needs_actions_to_choose_from():
    with pytest.raises(InputError, match="there are none at 'cellar'"):
        RandomPolicy().act(_observation(state="cellar"), random.Random(0))


@given(st.floats(0, 1))
def test_the_name_of_an_oracle_selects_it_again(epsilon: float):
    policy = parse_policy(f"oracle:{epsilon}")
    assert isinstance(policy, OraclePolicy)
    assert parse_policy(policy.name) == policy
    assert policy.epsilon == epsilon


def test_every_policy_of_the_table_goes_to_a_worker_and_back(tmp_path: Path):
    model = save_talker(tmp_path / "policy-000003" / "model")
    arguments = {"oracle": "0.3"} | dict.fromkeys(("hf", "vllm", "vllm-server", "tutor"), model)
    names = [name for name in POLICIES if name != "vllm" or find_spec("vllm")]
    policies = {name: parse_policy(f"{name}:{arguments.get(name, '')}") for name in names}
    assert pickle.loads(pickle.dumps(policies)) == policies
    assert [name for name in names if policies[name].needs_oracle] == ["oracle"]
    assert policies["hf"].name == "policy-000003"
    assert policies["tutor"].name == "tutor:policy-000003"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("greedy", "vllm:PATH, vllm-server:PATH@SERVER and tutor:PATH: got 'greedy'"),
        ("random:1", "takes no argument"),
        ("oracle", "a number from 0 to 1"),
        ("oracle:often", "got 'often'"),
        ("oracle:1.5", "must be 0 to 1: got 1.5"),
        ("oracle:nan", "must be 0 to 1: got nan"),
        ("hf:no/such-model", "nothing is downloaded\\): got 'no/such-model'"),
        ("tutor:tests", "must have a config.json"),
    ],
)
def test_what_is_no_policy_is_refused(text: str, message: str):
    with pytest.raises(OptionError, match=message):
        parse_policy(text)


def test_a_temperature_at_which_vllm_would_not_sample_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = save_talker(tmp_path / "policy-000003")
    monkeypatch.setattr(registry, "find_spec", lambda name: name)

    def policy(kind: str, temperature: float) -> object:
        return parse_policy(
            f"{kind}:{model}", LanguageOptions(template="tiny", temperature=temperature)
        )

    with pytest.raises(OptionError, match=r"must be 0, or 0\.01 or more, .*: got 0\.0099"):
        policy("vllm", 0.0099)
    for kind, temperature in (("vllm", 0.0), ("vllm", 0.01), ("hf", 0.0099)):
        assert policy(kind, temperature)
