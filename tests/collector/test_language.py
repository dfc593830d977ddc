"""Language models that play: what they are asked, and what is made of their answers."""

import json
import random
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.collector import StepRecorder
from graphcredit.collector.environments.base import Observation, Task
from graphcredit.collector.playing.episode import drive, episode
from graphcredit.collector.playing.job import Job
from graphcredit.collector.playing.schedule import Rollout, Settings
from graphcredit.collector.policies.base import Decision, DecisionRequest, Policy, PolicyView
from graphcredit.collector.policies.engines import registry
from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.decoding import Decoder
from graphcredit.collector.policies.engines.transformers import TransformersEngine, draw
from graphcredit.collector.policies.language import policy as language
from graphcredit.collector.policies.registry import LanguageOptions, parse_policy
from graphcredit.collector.policies.tokens import encode_prompt, load_tokenizer
from graphcredit.store import create_store, open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import EngineError, InputError, MissingDependencyError, OptionError
from graphcredit.store.extras import how_to_install
from tests.collector.corridor import Corridor
from tests.collector.talkers import CHAT_TEMPLATE, save_talker

torch.set_num_threads(1)

PLAIN = LanguageOptions(template="tiny", max_new_tokens=6)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_talker(tmp_path_factory.mktemp("models") / "policy-000007" / "model")


@pytest.fixture(autouse=True)
def _no_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_engines", {})


@pytest.mark.parametrize("fits", [3, 1, 0])
def test_a_batch_that_does_not_fit_is_sampled_in_halves(
    model: str, monkeypatch: pytest.MonkeyPatch, fits: int
):
    engine = TransformersEngine()
    engine.load(model)
    requests = [Request(prompt_ids=(1, 2, 3 + n), seed=n) for n in range(5)]
    sampling, begin = Sampling(temperature=1.0, max_new_tokens=4), Decoder.begin
    whole = engine.generate(requests, sampling)

    def small(decoder: Decoder, prompts: Sequence[tuple[int, ...]]) -> Any:
        if len(prompts) > fits:
            raise torch.OutOfMemoryError
        return begin(decoder, prompts)

    monkeypatch.setattr(Decoder, "begin", small)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if fits:
            halved = engine.generate(requests, sampling)
            assert [each.token_ids for each in halved] == [each.token_ids for each in whole]
        else:
            with pytest.raises(EngineError, match="a prompt of 3 tokens must fit"):
                engine.generate(requests, sampling)
    assert "5 rollouts do not fit in the memory of cpu together" in str(told[0].message)


@pytest.mark.parametrize("policy", ["hf", "tutor"])
@pytest.mark.parametrize("template", [CHAT_TEMPLATE, None])
def test_a_model_without_a_chat_template_is_told(tmp_path: Path, policy: str, template: str | None):
    path = save_talker(tmp_path / "model", chat_template=template)
    notes = parse_policy(f"{policy}:{path}", PLAIN).notes
    assert notes == () if template else "has no chat template" in notes[0]


class _Reciter:
    """An engine that says what it is told to, one answer after the other."""

    end_ids = frozenset({0})
    room: int | None = None

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.loaded: list[str] = []
        self.tokenizer: Any = None

    def load(self, path: str, dtype: str = "auto") -> None:
        self.loaded.append(path)
        self.tokenizer = load_tokenizer(path)
        self.end_ids = frozenset({self.tokenizer.eos_token_id})

    def forget(self) -> None:
        pass

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        said = [self.tokenizer(self.answers.pop(0))["input_ids"] for _ in requests]
        ids = [[*answer, self.tokenizer.eos_token_id] for answer in said]
        return [Response(token_ids=i, logprobs=[-0.5] * len(i)) for i in ids]


def _with_engine(monkeypatch: pytest.MonkeyPatch, engine: _Reciter) -> None:
    kind = registry.EngineKind(open=lambda _: engine, library="transformers", extra="train")
    monkeypatch.setitem(registry.ENGINES, "hf", kind)


def _observation(state: str = "room 0") -> Observation:
    return Observation(
        state=state,
        text=None,
        admissible_actions=("east", "west"),
        oracle_actions=None,
        task="Get out.",
    )


def _question(seed: int, count: int = 1, state: str = "room 0") -> DecisionRequest:
    return DecisionRequest(
        view=PolicyView(observation=_observation(state)), rng=random.Random(seed), count=count
    )


def _play(root: Path, policy: Policy, *, max_steps: int = 9) -> list[dict[str, Any]]:
    job = Job(
        store=create_store(root),
        run_id="r0",
        iteration=0,
        policy=policy,
        settings=Settings(
            policy=policy.name, seed=0, max_steps=max_steps, oracle=False, **policy.settings
        ),
        cache_dir=root,
    )
    rollout = Rollout(task=Task(environment="corridor", spec="3"), index=0, attempt=0)
    with StepRecorder(job.store, run_id="r0", iteration=0, worker_id="w0") as recorder:
        plays = iter([episode(job, Corridor(num_rooms=3), rollout, recorder)])
        list(drive(plays, policy, 1))
    return [row for table in read_steps(job.store) for row in table.to_pylist()]


def test_an_answer_is_recorded_as_tokens_thought_and_action(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
):
    answers = ["<think>Out!</think><action>east</action>"] * 2
    _with_engine(monkeypatch, _Reciter(*answers))
    options = LanguageOptions(template="textworld", temperature=0.7)
    steps = _play(tmp_path / "store", parse_policy(f"hf:{model}", options))
    assert [(step["thought"], step["action"]) for step in steps] == [("Out!", "east")] * 2
    tokenizer = load_tokenizer(model)
    for step in steps:
        assert tokenizer.decode(step["response_ids"]) == f"{answers[0]}<|endoftext|>"
        assert step["response_logprobs"] == [-0.5] * len(step["response_ids"])
        assert step["temperature"] == pytest.approx(0.7)
        assert step["policy_version"] == "policy-000007"
    first, second = (tokenizer.decode(step["prompt_ids"]) for step in steps)
    assert "Nothing yet." in first
    assert "You saw: room 0\nYou did: east" in second
    settings = json.loads(steps[0]["extra"])
    assert settings["temperature"] == 0.7
    assert settings["template"].startswith("textworld-")


def test_a_malformed_answer_is_an_invalid_action_of_which_the_environment_is_not_told(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
):
    answers = ["east", "<think>Hm.</think><action>east</action>", "<action>east</action>"]
    _with_engine(monkeypatch, _Reciter(*answers))
    options = LanguageOptions(template="textworld")
    steps = _play(tmp_path / "store", parse_policy(f"hf:{model}", options), max_steps=3)
    assert [step["is_action_valid"] for step in steps] == [False, True, False]
    assert [step["action"] for step in steps] == ["east", "east", "<action>east</action>"]
    assert [step["state"] for step in steps] == ["room 0", "room 0", "room 1"]
    assert [step["next_state"] for step in steps] == ["room 0", "room 1", "room 1"]
    assert [(step["reward"], step["cost"]) for step in steps] == [(0.0, 1.0)] * 3
    assert (steps[-1]["truncated"], steps[-1]["success"]) == (True, False)


def test_silence_is_malformed_too_and_a_store_with_it_is_sound(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
):
    _with_engine(monkeypatch, _Reciter("", "east", "east"))
    steps = _play(tmp_path / "store", parse_policy(f"hf:{model}", PLAIN))
    assert [step["action"] for step in steps] == ["", "east", "east"]
    assert [step["is_action_valid"] for step in steps] == [False, True, True]
    assert check_store(open_store(tmp_path / "store")).violations == ()


def test_a_model_stays_loaded_until_another_is_needed_or_its_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    engine = _Reciter(*["east"] * 9)
    _with_engine(monkeypatch, engine)
    first, second = save_talker(tmp_path / "a-1"), save_talker(tmp_path / "a-2")
    for path in (first, first, second, first):
        parse_policy(f"hf:{path}", PLAIN).decide([_question(0)])
    assert engine.loaded == [first, second, first]
    save_talker(tmp_path / "a-1", seed=1)
    parse_policy(f"hf:{first}", PLAIN).decide([_question(0)])
    assert engine.loaded == [first, second, first, first]


def test_a_version_is_the_name_of_the_directory_or_of_the_trainers_above_it(tmp_path: Path):
    inner = Path(save_talker(tmp_path / "policy-000001" / "model"))
    (tmp_path / "policy-000002").symlink_to(inner)
    names = [parse_policy(f"hf:{path}").name for path in (inner, tmp_path / "policy-000002")]
    assert names == ["policy-000001", "policy-000002"]


def test_a_chat_template_is_respected_and_without_one_the_texts_are_joined(tmp_path: Path):
    messages = [{"role": "system", "content": "Play."}, {"role": "user", "content": "room 0"}]
    plain = load_tokenizer(save_talker(tmp_path / "plain"))
    chat = load_tokenizer(save_talker(tmp_path / "chat", chat_template=CHAT_TEMPLATE))
    assert plain.decode(encode_prompt(plain, messages)) == "Play.\nroom 0"
    end = "<|endoftext|>"
    turns = f"<|system|>Play.{end}<|user|>room 0{end}<|assistant|>"
    assert chat.decode(encode_prompt(chat, messages)) == turns


def _sampled(decisions: list[list[Decision]]) -> list[list[int]]:
    return [list(d.tokens.response_ids) for each in decisions for d in each if d.tokens]


def test_what_is_sampled_depends_on_the_trajectorys_chance_and_not_on_the_batch(model: str):
    policy = parse_policy(f"hf:{model}", PLAIN)
    states = ["room 0", "a room with a longer name", "room 0", "x"]

    def questions() -> list[DecisionRequest]:
        return [_question(i, count=2, state=state) for i, state in enumerate(states)]

    together = _sampled(policy.decide(questions()))
    alone = [ids for question in questions() for ids in _sampled(policy.decide([question]))]
    assert together == alone
    assert len({tuple(ids) for ids in together}) == 8


def test_the_logged_logprobs_are_those_of_the_whole_distribution_at_the_temperature(model: str):
    policy = parse_policy(f"hf:{model}", LanguageOptions(template="tiny", temperature=0.7))
    engine: Any = language.load(policy)
    requests = [Request(prompt_ids=(5,) * n, seed=n) for n in (1, 4, 9)]
    responses = engine.generate(requests, Sampling(temperature=0.7, max_new_tokens=5))
    for request, response in zip(requests, responses, strict=True):
        ids = [*request.prompt_ids, *response.token_ids]
        logits = engine._model(torch.tensor([ids])).logits[0, len(request.prompt_ids) - 1 : -1]
        logprobs = (logits / 0.7).log_softmax(-1)
        expected = logprobs[range(len(response.token_ids)), response.token_ids]
        assert response.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_at_temperature_0_the_most_probable_token_comes_whatever_the_seed(model: str):
    greedy = parse_policy(f"hf:{model}", LanguageOptions(template="tiny", temperature=0.0))
    engine = language.load(greedy)
    requests = [Request(prompt_ids=(5, 6), seed=seed) for seed in range(3)]
    answers = engine.generate(requests, Sampling(temperature=0.0, max_new_tokens=4))
    assert answers[0] == answers[1] == answers[2]
    assert set(answers[0].logprobs) == {0.0}


def test_an_answer_ends_with_its_end_token_or_at_the_limit(model: str):
    policy = parse_policy(f"hf:{model}", PLAIN)
    engine: Any = language.load(policy)
    engine.end_ids = frozenset(range(150))
    requests = [Request(prompt_ids=(200, seed), seed=seed) for seed in range(40)]
    answers = engine.generate(requests, Sampling(temperature=1.0, max_new_tokens=4))
    lengths = {len(answer.token_ids) for answer in answers}
    assert lengths == {1, 2, 3, 4}
    for answer in answers:
        is_end = [token in engine.end_ids for token in answer.token_ids]
        assert not any(is_end[:-1])
        assert is_end[-1] or len(is_end) == 4


def test_draws_are_as_frequent_as_they_are_probable_and_the_impossible_never_comes():
    logits = torch.tensor([[0.5, 0.25, 0.0, 0.25]]).log()
    uniforms = [(number + 0.5) / 1000 for number in range(1000)]
    ids, logprobs = draw(logits.expand(1000, 4), uniforms, 1.0)
    assert ids.bincount().tolist() == [500, 250, 0, 250]
    assert logprobs[0].exp().item() == pytest.approx(0.5)
    # At temperature 1/2 probabilities are squared: 4, 1 and 1 of 6.
    ids, logprobs = draw(logits.expand(1000, 4), uniforms, 0.5)
    assert ids.bincount().tolist() == [667, 166, 0, 167]
    assert logprobs[-1].exp().item() == pytest.approx(1 / 6)


def test_an_answer_is_cut_off_where_the_models_room_ends(tmp_path: Path):
    short = save_talker(tmp_path / "short", max_position_embeddings=20)
    policy = parse_policy(f"hf:{short}", PLAIN)
    engine: Any = language.load(policy)
    engine.end_ids = frozenset()
    requests = [Request(prompt_ids=(5,) * n, seed=n) for n in (19, 15, 12, 3)]
    answers = engine.generate(requests, Sampling(temperature=1.0, max_new_tokens=8))
    assert [len(answer.token_ids) for answer in answers] == [1, 5, 8, 8]
    assert [len(answer.logprobs) for answer in answers] == [1, 5, 8, 8]


def test_history_that_would_cut_an_answer_off_is_not_shown_the_oldest_first(
    model: str, monkeypatch: pytest.MonkeyPatch
):
    engine = _Reciter(*["<think></think><action>east</action>"] * 6)
    _with_engine(monkeypatch, engine)
    policy = parse_policy(f"hf:{model}", LanguageOptions(template="textworld", max_new_tokens=8))
    history = ((_observation("room 8"), "z" * 300), (_observation("room 9"), "west"))
    view = PolicyView(observation=_observation(), history=history)

    def asked(room: int | None) -> tuple[str, int]:
        engine.room = room
        ((decision,),) = policy.decide([DecisionRequest(view=view, rng=random.Random(0))])
        assert decision.tokens is not None
        ids = decision.tokens.prompt_ids
        return engine.tokenizer.decode(ids), len(ids)

    whole, length = asked(None)
    assert "You did: zzz" in whole
    assert asked(length + 8) == (whole, length)
    later, later_length = asked(length + 7)
    assert later == whole.replace(f"You saw: room 8\nYou did: {'z' * 300}\n", "")
    assert later != whole
    assert asked(later_length + 8) == (later, later_length)
    alone, alone_length = asked(later_length + 7)
    assert "Before:\nNothing yet.\n" in alone
    assert asked(alone_length + 1) == (alone, alone_length)


def test_a_prompt_that_leaves_no_room_even_without_history_is_refused(tmp_path: Path):
    short = save_talker(tmp_path / "short", max_position_embeddings=20)
    options = LanguageOptions(template="textworld", max_new_tokens=8)
    message = r"fit in the 20 tokens of the model .*short: a prompt without .* at 'room 0'"
    with pytest.raises(InputError, match=message):
        parse_policy(f"hf:{short}", options).decide([_question(0)])


def test_a_model_whose_weights_are_cut_short_is_refused(tmp_path: Path):
    short = save_talker(tmp_path / "short")
    weights = Path(short) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(
        InputError, match=r"a policy must be a causal language model in safetensors: .*short"
    ):
        parse_policy(f"hf:{short}", PLAIN).decide([_question(0)])


def test_the_tutor_plays_as_random_does_and_says_it_in_the_models_tokens(
    tmp_path: Path, model: str
):
    tutor = parse_policy(f"tutor:{model}", LanguageOptions(template="tiny"))
    steps = _play(tmp_path / "tutor", tutor)
    random_steps = _play(tmp_path / "random", parse_policy("random"))
    assert [step["action"] for step in steps] == [step["action"] for step in random_steps]
    tokenizer = load_tokenizer(model)
    for step in steps:
        assert tokenizer.decode(step["response_ids"]) == f"{step['action']}<|endoftext|>"
        assert step["state"] in tokenizer.decode(step["prompt_ids"])
        assert step["response_logprobs"] is None
        assert step["temperature"] is None


def test_the_tutors_answers_have_the_form_that_the_template_asks_for(model: str):
    tutor = parse_policy(f"tutor:{model}", LanguageOptions(template="textworld"))
    ((decision,),) = tutor.decide([_question(0)])
    assert decision.tokens is not None
    said = load_tokenizer(model).decode(decision.tokens.response_ids)
    assert said == f"<think></think><action>{decision.action}</action><|endoftext|>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature must be at least 0: got -0.1"),
        ({"temperature": float("nan")}, "temperature must be a finite number: got nan"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1: got 0"),
        ({"template": "chess"}, "got 'chess'"),
        ({"dtype": "float16"}, "dtype must be 'auto', 'float32' or 'bfloat16': got 'float16'"),
    ],
)
def test_options_out_of_range_are_refused(model: str, options: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        parse_policy(f"hf:{model}", LanguageOptions(**options))


def test_a_missing_library_is_named_with_what_installs_it(
    model: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=re.escape(how_to_install("vllm"))):
        parse_policy(f"vllm:{model}")


def test_a_directory_without_weights_is_refused(tmp_path: Path, model: str):
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in Path(model).iterdir():
        if path.suffix == ".json":
            (broken / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match=r"as \*\.safetensors, but .*broken has none"):
        parse_policy(f"hf:{broken}", PLAIN).decide([_question(0)])


class _Bomb:
    """What a pickle of weights can do to whoever opens it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_weights_that_can_run_code_are_never_opened(tmp_path: Path):
    path = Path(save_talker(tmp_path / "pickled"))
    (path / "model.safetensors").unlink()
    torch.save({"weight": _Bomb(tmp_path / "exploded")}, path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"as \*\.safetensors, but .* save_pretrained\(\)"):
        parse_policy(f"hf:{path}", PLAIN).decide([_question(0)])
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "ImportError: .*GPTQ"),
        ({"quantization_config": [1]}, "AttributeError: 'list' object has no attribute"),
        ({"attn_implementation": "flash_attention_2"}, "ImportError: FlashAttention2"),
        ({"attn_implementation": "of/somebody"}, "ImportError: .*kernels"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"hidden_act": "nothing"}, "KeyError: 'nothing'"),
        ({"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}, "custom code"),
    ],
)
def test_whatever_is_wrong_in_a_models_files_is_one_line(
    tmp_path: Path, settings: dict[str, Any], reason: str
):
    path = Path(save_talker(tmp_path / "odd"))
    (path / "own.py").write_text("raise AssertionError('this must never run')")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | settings))
    with pytest.raises(InputError, match=f"^[^\\n]*{path}: [^\\n]*{reason}[^\\n]*$"):
        parse_policy(f"hf:{path}", PLAIN).decide([_question(0)])


def test_a_policy_of_random_weights_is_refused(tmp_path: Path):
    path = Path(save_talker(tmp_path / "odd"))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(
        json.dumps(config | {"num_hidden_layers": 3, "layer_types": None})
    )
    with pytest.raises(InputError, match=r"in .*odd, a Qwen2ForCausalLM, 12 are missing"):
        parse_policy(f"hf:{path}", PLAIN).decide([_question(0)])
