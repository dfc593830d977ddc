"""Print the preview of a training: `graphcredit train --dry-run`."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphcredit.cli.output.console import say, tell
from graphcredit.store.plural import counted

_PARTS = (
    ("parameters", "float32 weights"),
    ("gathered", "whole layers"),
    ("gradients", "gradients"),
    ("moments", "AdamW's moments"),
    ("activations", "activations"),
    ("logits", "logits"),
)


def show_preview(preview: Mapping[str, Any]) -> None:
    """Print what a training would do, and its notices on stderr."""
    for notice in preview["notices"]:
        tell(f"note: {notice}")
    for line in (*_steps(preview), *_plan(preview), *_memory(preview), *_outputs(preview)):
        say(line)


def _steps(preview: Mapping[str, Any]) -> Iterator[str]:
    steps = preview["steps"]
    yield (
        f"steps: {steps['num_kept']:,} of {steps['num_steps']:,} of run {preview['run_id']}, "
        f"iteration {preview['iteration']}, with {preview['column']} (mean "
        f"{steps['advantage_mean']:.3g}, deviation {steps['advantage_std']:.3g}, 0 in "
        f"{steps['advantage_zero_share']:.1%})"
    )
    yield from (f"{count:>10,} left out: {why}" for why, count in steps["dropped"].items())
    if steps["num_masked_tokens"]:
        yield f"{steps['num_masked_tokens']:>10,} tokens without a finite log-probability"
    if steps["tokens"] == "messages":
        yield "token ids are made of the messages, by the chat template of the model"
    if steps["logprobs"] != "log":
        instead = (
            "the model at the start stands for it"
            if steps["logprobs"] == "start"
            else "none is needed"
        )
        yield f"log-probabilities of the sampler: none; {instead}"
    if steps["num_images"]:
        yield f"{steps['num_images']:>10,} images in their prompts"


def _plan(preview: Mapping[str, Any]) -> Iterator[str]:
    plan = preview["plan"]
    yield (
        f"plan: {counted(plan['num_updates'], 'optimizer step')} of up to "
        f"{counted(plan['steps_per_update'], 'step')}, {counted(plan['epochs'], 'epoch')}, "
        f"{plan['num_micro_batches']:,} micro-batches, {plan['fill']:.0%} full, and "
        f"{counted(plan['num_dummies'], 'dummy')} (processes: "
        f"{plan['num_processes']})"
    )
    yield (
        f"tokens: {plan['num_tokens']:,} through the model ({plan['num_logged_tokens']:,} before "
        f"equal steps are put together; {plan['num_distinct_tokens']:,} if shared prefixes of an "
        f"update are, too), {plan['num_response_tokens']:,} of responses"
    )
    yield f"passes before the first step: {', '.join(preview['passes']) or 'none'}"


def _memory(preview: Mapping[str, Any]) -> Iterator[str]:
    memory = preview["memory"]
    is_gpu = memory["device"] == "cuda"
    most = memory["on_device"] if is_gpu else memory["on_cpu"]
    yield (
        f"memory of each process, estimated for {memory['dtype']} on "
        f"{'a GPU' if is_gpu else 'the CPU (--device cuda: on a GPU)'}: {_size(most)} at most"
    )
    for name, text in _PARTS:
        yield f"{_size(memory[name]):>12} {text}"
    if memory["reference"]:
        yield f"{_size(memory['reference']):>12} of the reference, before the first step"
    if memory["loading"]:
        yield f"{_size(memory['loading']):>12} in host memory of the first process while it loads"
    yield f"{_size(memory['checkpoint']):>12} in host memory while a checkpoint is written"


def _size(num_bytes: int | None) -> str:
    if num_bytes is None:
        return "unknown"
    return f"{num_bytes / 2**30:.2f} GiB" if num_bytes >= 2**30 else f"{num_bytes / 2**20:.1f} MiB"


def _outputs(preview: Mapping[str, Any]) -> Iterator[str]:
    begun = " (it has begun: the same command goes on with it)" if preview["has_begun"] else ""
    yield f"output: {preview['out']}{begun}; nothing was written"
