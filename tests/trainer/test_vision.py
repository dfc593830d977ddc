"""Steps with images: packed as one by one, trained through transformers, refused where unseen."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageTextToText

from graphcredit.collector import StepRecorder
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, open_store
from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.loading import load_model
from graphcredit.trainer.model.source import load_image_reader
from graphcredit.trainer.model.vision import image_positions
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import plan_training, train
from tests.trainer.logs import Row, episode, token_store, turn
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import run_ranks
from tests.trainer.shard_worker import trained
from tests.trainer.vision import IMAGE, KINDS, MERGE, VIDEO, picture, prompt, save_tiny_seer

_WIDE, _TALL = picture(2, 3), picture(3, 1, seed=1)


def _image(content: bytes | None = None, path: str | None = None) -> dict[str, Any]:
    return {"bytes": content, "path": path}


def _steps() -> list[list[Row]]:
    """Return six steps: of one image, of two, of a path, of text; two differ in the image only."""
    one = prompt([5, 6], (2, 3), [7])
    return [
        episode(
            "won",
            turn(one, [8, 9], advantage=0.5, images=[_image(_WIDE)]),
            turn(
                prompt([5], (2, 3), [6], (3, 1), [7, 8]),
                [10, 11, 12],
                advantage=-1.0,
                images=[_image(_WIDE), _image(path="images/a/tall.png")],
            ),
            turn([5, 6, 7, 8], [13], advantage=1.5),
        ),
        episode(
            "lost",
            turn(one, [8, 9], advantage=-0.5, images=[_image(picture(2, 3, seed=2))]),
            turn(one, [8, 9], advantage=2.0, images=[_image(_WIDE)]),
            turn(prompt((3, 1), [9]), [4, 3], advantage=1.0, images=[_image(_TALL)]),
            success=False,
        ),
    ]


def _store(root: Path, steps: list[list[Row]] | None = None, **options: Any) -> Store:
    (root / "images/a").mkdir(parents=True)
    (root / "images/a/tall.png").write_bytes(_TALL)
    (root / "store.json").write_text('{"format": "graphcredit-store", "version": 1}')
    return token_store(root, _steps() if steps is None else steps, **options)


def _config(tmp_path: Path, store: Store, model: str, **options: Any) -> TrainConfig:
    chosen: dict[str, Any] = {"objective": "reinforce", "correction": "bypass"}
    chosen |= {"kl_coefficient": 0.0, "mismatch_tolerance": 1e9, "device": "cpu"}
    chosen |= {"learning_rate": 1e-3, "out": tmp_path / "out"} | options
    return TrainConfig(store=store.root, model=model, **chosen)


def _metrics(config: TrainConfig) -> dict[str, float]:
    (line,) = (config.out / "metrics.jsonl").read_text().splitlines()
    return json.loads(line)


def _written_out(name: str, steps: list[list[Row]]) -> tuple[float, float]:
    """Return the loss and its gradient's norm, one step at a time through the whole model."""
    model = AutoModelForImageTextToText.from_pretrained(name, attn_implementation="eager")
    processor = AutoImageProcessor.from_pretrained(name)
    rows = [row for trajectory in steps for row in trajectory]
    count = sum(len(row["response_ids"]) for row in rows)
    loss = torch.zeros(())
    for row in rows:
        ids = torch.tensor([[*row["prompt_ids"], *row["response_ids"]]])
        files = [image["bytes"] or _TALL for image in row.get("images") or ()]
        seen = {}
        if files:
            seen = processor([Image.open(io.BytesIO(f)) for f in files], return_tensors="pt")
            seen = {**seen, "mm_token_type_ids": (ids == IMAGE).int()}
        logits = model(input_ids=ids, **seen).logits[0]
        predicted = logits[len(row["prompt_ids"]) - 1 : -1].log_softmax(-1)
        chosen = predicted.gather(-1, torch.tensor(row["response_ids"])[:, None])
        loss = loss - row["advantage"] * chosen.sum() / count
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    return loss.item(), norm.item()


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_those_of_steps_one_by_one(tmp_path: Path, kind: str):
    name, store = save_tiny_seer(tmp_path / "m", kind), _store(tmp_path / "s", num_shards=2)
    loss, norm = _written_out(name, _steps())
    for number, way in enumerate(
        ({"max_tokens": 200}, {"max_tokens": 20, "gradient_checkpointing": True})
    ):
        config = _config(tmp_path, store, name, out=tmp_path / f"out-{number}", **way)
        train(config)
        found = _metrics(config)
        assert found["loss"] == pytest.approx(loss, rel=1e-5)
        assert found["grad_norm"] == pytest.approx(norm, rel=1e-4)
    before, after = (
        AutoModelForImageTextToText.from_pretrained(path) for path in (name, config.out / "model")
    )
    old, new = before.state_dict(), after.state_dict()
    assert all(not torch.equal(old[key], new[key]) for key in old if "visual" in key)
    assert AutoImageProcessor.from_pretrained(config.out / "model").patch_size == 4


@pytest.mark.slow
def test_two_processes_get_what_one_gets_where_one_of_them_sees_nothing(tmp_path: Path):
    name, store = save_tiny_seer(tmp_path / "m"), _store(tmp_path / "s")
    alone = _config(tmp_path, store, name, max_tokens=20)
    train(alone)
    both = alone.changed(out=tmp_path / "both")
    assert run_ranks(2, trained, both) == [0, 0]
    for metric in ("loss", "grad_norm"):
        assert _metrics(both)[metric] == pytest.approx(_metrics(alone)[metric], rel=1e-4)


def test_a_log_of_text_trains_without_images(tmp_path: Path):
    name = save_tiny_seer(tmp_path / "m")
    texts = [episode("a", turn([5, 6], [7, 8], advantage=1.0), turn([9], [3], advantage=-0.5))]
    loss, norm = _written_out(name, texts)
    config = _config(tmp_path, _store(tmp_path / "s", texts), name)
    assert preview(config, num_processes=1)["memory"]["activations"] > 0
    train(config)
    assert _metrics(config)["loss"] == pytest.approx(loss, rel=1e-5)
    assert _metrics(config)["grad_norm"] == pytest.approx(norm, rel=1e-4)


def test_recorded_steps_with_images_are_credited_and_trained_on(tmp_path: Path):
    """The whole pass; one image is in the log, the other beside it."""
    name, root = save_tiny_seer(tmp_path / "m"), tmp_path / "s"
    (root / "images").mkdir(parents=True)
    (root / "images/tall.png").write_bytes(_TALL)
    (root / "store.json").write_text('{"format": "graphcredit-store", "version": 1}')
    with StepRecorder(root, run_id="r0", iteration=0, worker_id="w") as recorder:
        for success in (True, False):
            with recorder.trajectory(task_id="t") as trajectory:
                trajectory.log(
                    state="start",
                    action="go",
                    next_state="won" if success else "lost",
                    reward=float(success),
                    images=[_WIDE, "images/tall.png"],
                    prompt_ids=prompt([5], (2, 3), [6], (3, 1)),
                    response_ids=[7 + success, 8],
                    response_logprobs=[-1.0, -2.0],
                    temperature=1.0,
                )
                trajectory.end(success=success)
    assign_credit(root, CreditSettings(estimators=configure(["grpo"])))
    config = _config(tmp_path, open_store(root), name, advantage="grpo")
    found = preview(config, num_processes=1)
    assert found["steps"]["num_images"] == 4
    assert found["memory"]["activations"] is None
    assert found["plan"]["num_distinct_tokens"] == found["plan"]["num_tokens"]
    result = train(config)
    assert result["num_kept"] == 2
    AutoModelForImageTextToText.from_pretrained(result["model"])


@pytest.mark.slow
def test_adapters_see_too(tmp_path: Path):
    name, store = save_tiny_seer(tmp_path / "m"), _store(tmp_path / "s")
    config = _config(tmp_path, store, name, lora_rank=2, learning_rate=0.1)
    train(config)
    old, new = (
        AutoModelForImageTextToText.from_pretrained(path).state_dict()
        for path in (name, config.out / "model")
    )
    assert {key.split(".")[1] for key in old if not torch.equal(old[key], new[key])} == {
        "visual",
        "language_model",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_positions_are_those_of_the_model(tmp_path: Path, kind: str):
    name = save_tiny_seer(tmp_path, kind)
    scorer = load_model(name, TrainConfig(store=".", out=".", model=name))
    ids = torch.tensor([prompt([5], (2, 3), [6, 7], (4, 1), [8], (1, 5), [9, 9])])
    grids = torch.tensor([[1, 4, 6], [1, 8, 2], [1, 2, 10]])
    expected, _ = scorer.causal_lm.model.get_rope_index(
        ids, mm_token_type_ids=(ids == IMAGE).int(), image_grid_thw=grids
    )
    found = image_positions((ids[0] == IMAGE).numpy(), grids.numpy(), MERGE)
    assert found.tolist() == expected[:, 0].tolist()


def test_the_positions_of_an_image_by_hand():
    is_image = np.array([False, True, True, True, True, False])
    found = image_positions(is_image, np.array([[1, 4, 4]]), 2)
    assert found.tolist() == [[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]]


def test_a_placeholder_that_the_policy_sampled_is_a_token_of_text(tmp_path: Path, seer: str):
    ids, response = prompt([5], (2, 3), [7]), [8, IMAGE, VIDEO, 9]
    step = turn(ids, response, advantage=1.0, images=[_image(_WIDE)])
    config = _config(tmp_path, _store(tmp_path / "s", [episode("a", step)]), seer)
    train(config)
    model = AutoModelForImageTextToText.from_pretrained(seer)
    image = Image.open(io.BytesIO(_WIDE))
    seen = AutoImageProcessor.from_pretrained(seer)([image], return_tensors="pt")
    whole = torch.tensor([[*ids, *response]])
    kinds = torch.tensor([[token == IMAGE for token in ids] + [False] * len(response)]).int()
    positions, _ = model.model.get_rope_index(
        whole, mm_token_type_ids=kinds, image_grid_thw=seen["image_grid_thw"]
    )
    embedded = model.get_input_embeddings()(whole)
    embedded[kinds.bool()] = torch.cat(model.get_image_features(**seen).pooler_output)
    hidden = model.model(inputs_embeds=embedded, position_ids=positions).last_hidden_state
    predicted = model.lm_head(hidden)[0, len(ids) - 1 : -1].log_softmax(-1)
    loss = -predicted.gather(-1, torch.tensor(response)[:, None]).mean()
    assert _metrics(config)["loss"] == pytest.approx(loss.item(), rel=1e-5)


def test_equal_tokens_before_other_images_are_other_steps(tmp_path: Path):
    name, store = save_tiny_seer(tmp_path / "m"), _store(tmp_path / "s")
    _, plan, _ = plan_training(_config(tmp_path, store, name))
    # In the order of tasks, trajectories and steps: `lost` comes first.
    first, again, _, won, _, _ = plan.index.sequence.tolist()
    assert again == won != first
    assert plan.index.num_images.tolist() == [1, 1, 1, 1, 2, 0]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (
            turn(prompt((2, 2), [7]), [8], images=[_image(_WIDE)]),
            rf"token {IMAGE} for each vector .* row 0 has runs of \[4\], .* images make \[6\]",
        ),
        (turn(prompt((2, 3), [7]), [8]), r"runs of \[6\], and its 0 images make none"),
        (turn([5], [8], images=[_image(_WIDE)]), r"runs of none, and its 1 images make \[6\]"),
        (turn([*prompt((2, 3)), IMAGE], [8], images=[_image(_WIDE)]), r"runs of \[6, 1\]"),
        (turn([5, VIDEO], [8]), "no videos"),
        (
            turn(prompt((2, 3)), [8], images=[_image(b"no image")]),
            "file that can be read: .* row 0",
        ),
        (
            turn(prompt((2, 3)), [8], images=[_image(_WIDE[:-99])]),
            "file that can be read: .* row 0",
        ),
        (
            turn(prompt((2, 3)), [8], images=[_image(path="images/b.png")]),
            r"images/b.png.* cannot be",
        ),
        (
            turn(prompt((2, 3)), [8], images=[_image(path="images/../store.json")]),
            "without . and ..",
        ),
        (turn(prompt((2, 3)), [8], images=[_image()]), "one with neither"),
        (turn(prompt((2, 3)), [8], images=[_image(_WIDE, "images/a/tall.png")]), "one with both"),
    ],
)
def test_images_that_do_not_fit_are_refused(tmp_path: Path, seer: str, step: Row, reason: str):
    store = _store(tmp_path / "s", [episode("a", step)])
    with pytest.raises(InputError, match=reason):
        train(_config(tmp_path, store, seer))


@pytest.fixture(scope="module")
def seer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_seer(tmp_path_factory.mktemp("seer"))


def test_what_would_not_be_seen_is_refused(tmp_path: Path, seer: str):
    store, blind = _store(tmp_path / "s"), save_tiny_model(tmp_path / "blind")
    config = _config(tmp_path, store, seer)
    with pytest.raises(InputError, match=r"qwen2_5_vl, qwen2_vl: 5 of 6 steps have images, and"):
        preview(config.changed(model=blind), num_processes=1)
    with pytest.raises(InputError, match="steps have images"):
        train(config.changed(kl_coefficient=0.1, reference=blind))
    with pytest.raises(InputError, match="share no prefixes"):
        train(config.changed(share_prefixes=True))


def test_a_model_without_its_processor_is_refused(tmp_path: Path, seer: str):
    name = shutil.copytree(seer, tmp_path / "m")
    (name / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match="must hold the configuration of its image processor"):
        train(_config(tmp_path, _store(tmp_path / "s"), str(name)))


def test_a_model_of_another_family_takes_no_images(tmp_path: Path, seer: str):
    assert load_image_reader(save_tiny_model(tmp_path / "m")) is None
    assert AutoConfig.from_pretrained(seer).model_type == "qwen2_5_vl"
    assert load_image_reader(seer) is not None
