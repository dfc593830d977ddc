"""What a policy learnt from messages it says again, to the token at which a sampler stops."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from experiments.chat_logs import ARGUMENTS, LOGS
from experiments.chat_templates import FAMILIES
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train
from tests.cli.in_process import run
from tests.examples import nightly
from tests.trainer.models import tiny_model

LOG = LOGS["OpenAI"]
MESSAGES, TOOLS = LOG["messages"], LOG["tools"]
SHOWN = json.loads(json.dumps(MESSAGES))
SHOWN[2]["tool_calls"][0]["function"]["arguments"] = ARGUMENTS  # templates take objects


@pytest.mark.slow
@pytest.mark.parametrize("family", [nightly("Qwen2.5"), "Llama 3.1", nightly("GLM 4.5")])
def test_a_policy_that_is_sampled_greedily_repeats_its_answers_and_stops(
    tmp_path: Path, family: str
):
    """The makers' own templates: a call of a tool, and a text after its result."""
    log, store, model = tmp_path / "log.jsonl", tmp_path / "store", tmp_path / "model"
    worse = [*MESSAGES[:2], {"role": "assistant", "content": "No."}]
    rows = [
        {**LOG, "task_id": "t", "reward": 1.0},
        {"task_id": "t", "reward": 0, "messages": worse},
    ]
    log.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run("import", log, store).exit_code == 0
    assert run("credit", store, "-e", "grpo").exit_code == 0
    FAMILIES[family].save(model)
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(model)
    tiny_model(vocab_size=len(tokenizer), max_position_embeddings=4096).save_pretrained(model)
    FAMILIES[family].save(model)
    train(
        TrainConfig(
            store=(store,),
            model=str(model),
            out=tmp_path / "out",
            advantage="grpo",
            objective="sft",
            objective_options={"weight": "equal"},
            learning_rate=3e-3,
            epochs=80,
        )
    )
    policy: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "model")
    for num in (2, 4):
        shown = {"tools": TOOLS, "tokenize": False}
        prompt = tokenizer.apply_chat_template(SHOWN[:num], add_generation_prompt=True, **shown)
        answer = tokenizer.apply_chat_template(SHOWN[: num + 1], **shown).removeprefix(prompt)
        ids = torch.tensor([tokenizer(prompt, add_special_tokens=False)["input_ids"]])
        said = policy.generate(ids, do_sample=False, max_new_tokens=len(answer) + 9)
        *text, stop = said[0, ids.shape[1] :].tolist()
        last = tokenizer.convert_ids_to_tokens(stop)
        assert last in FAMILIES[family].stops
        assert tokenizer.decode(text) == answer.rstrip("\n").removesuffix(last)
