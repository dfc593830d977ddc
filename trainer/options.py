"""The options of a training, in groups: each part of the trainer takes the group it needs.

A field is written once. Its type, range, default and help text are also those of the flag of
`graphcredit train`, of the key in a TOML file and of the loop's `[train]` table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from graphcredit.store.options import Between, Count

Positive = Between(0.0, above=True)
AtLeastOne = Between(1)

CorrectionMode: TypeAlias = Literal[
    "none",
    "token-truncate",
    "token-mask",
    "sequence-truncate",
    "sequence-mask",
    "geometric-truncate",
    "geometric-mask",
]
Decay = Between(0.0, 1.0, below=True)
DEFAULT_OBJECTIVE = "ppo"


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The steps and the model to train, and the directory of the results."""

    store: Annotated[Path, "The store."]
    out: Annotated[Path, "Where the new policy, checkpoints and metrics go."]
    model: Annotated[str, "A Hugging Face causal LM: a path, or a name in the local cache."]
    run: Annotated[str | None, "The run whose steps are used; the only one by default."] = None
    iteration: Annotated[int | None, "The iteration; the newest one by default."] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which steps are used, and with which advantage."""

    advantage: Annotated[
        str, "An estimator, or a whole column such as graphgpo_step_advantage."
    ] = "graphgpo"
    policy_version: Annotated[
        str | None, "Version of the model, as in the log: its number tells how old a step is."
    ] = None
    max_staleness: Annotated[
        int, Between(0), "Steps sampled by weights older than this many versions are left out."
    ] = 4
    drop_zero_advantage: Annotated[
        bool | None,
        "Leave out steps whose advantage is 0; by default where nothing is learnt from them: "
        "without divergence, entropy bonus and whitening, nor in trajectory-mean and group-mean.",
    ] = None
    drop_degenerate_groups: Annotated[
        bool, "Leave out groups whose trajectories all have one return (DAPO)."
    ] = False
    whiten_advantages: Annotated[bool, "Shift and scale advantages to mean 0, deviation 1."] = False
    advantage_clip: Annotated[
        float | None, Positive, "Clip advantages to this absolute value, after whitening."
    ] = None
    allow_truncated_sampling: Annotated[
        bool, "Train on steps that were sampled with top-p or top-k, whose ratios are wrong."
    ] = False

    @property
    def column(self) -> str:
        """The advantage column."""
        whole = self.advantage.endswith("_advantage")
        return self.advantage if whole else f"{self.advantage}_advantage"


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Optimizer steps, micro-batches and the weight of each token."""

    batch_size: Annotated[int, AtLeastOne, "Steps of an optimizer step, at most."] = 512
    epochs: Annotated[int, AtLeastOne, "How often each step is used."] = 1
    max_tokens: Annotated[
        int, AtLeastOne, "Tokens of a micro-batch, at most; longer steps are left out."
    ] = 32_768
    max_step_tokens: Annotated[
        int | None,
        AtLeastOne,
        "Tokens of a step, at most; longer ones are left out. Without it, steps that are longer "
        "than the model has positions are refused.",
    ] = None
    seed: Annotated[int, Count, "Orders the steps."] = 0
    aggregation: Annotated[
        Literal["token-mean", "seq-mean", "seq-sum", "dr-grpo", "trajectory-mean", "group-mean"],
        "How token losses become one number: what has equal weight.",
    ] = "token-mean"
    response_length: Annotated[int, AtLeastOne, "The constant L of dr-grpo."] = 512


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The objective, the divergence from the reference and the importance weights."""

    objective: Annotated[str, "ppo, gspo, cispo or reinforce."] = DEFAULT_OBJECTIVE
    objective_options: Annotated[
        Mapping[str, Any], "Options of the objective, as a table; the flag is --set NAME=VALUE."
    ] = field(default_factory=dict[str, Any])
    kl_coefficient: Annotated[
        float, Between(0.0), "Weight of the divergence from the reference; 0 skips it."
    ] = 0.01
    kl_estimator: Annotated[Literal["k1", "k2", "k3"], "How the divergence is estimated."] = "k3"
    reference: Annotated[
        str | None, "The frozen reference model; by default the model as it is at the start."
    ] = None
    entropy_coefficient: Annotated[float, Between(0.0), "Weight of the entropy bonus."] = 0.0
    old_logprobs: Annotated[
        Literal["recomputed", "behaviour"],
        "What ratios are taken against: the model at the start, or what the sampler logged.",
    ] = "recomputed"
    correction: Annotated[
        CorrectionMode | None,
        "Importance weights for the gap between sampler and trainer: of each token's ratio, of the "
        "product over its response (sequence, as in TRL and verl) or of their geometric mean; by "
        "default token-truncate where old log-probabilities are recomputed, and none where they "
        "are the sampler's.",
    ] = None
    correction_low: Annotated[float, Between(0.0), "Least weight that is not masked."] = 0.5
    correction_high: Annotated[float, Positive, "Greatest weight; more is cut or masked."] = 2.0

    @property
    def corrects(self) -> CorrectionMode:
        """The correction that is applied."""
        if self.correction is not None:
            return self.correction
        return "token-truncate" if self.old_logprobs == "recomputed" else "none"


@dataclass(frozen=True, kw_only=True)
class OptimizerOptions:
    """AdamW, its learning rate and when to stop."""

    learning_rate: Annotated[float, Between(0.0), "Peak learning rate of AdamW."] = 1e-6
    beta1: Annotated[float, Decay, "AdamW's decay of the mean."] = 0.9
    beta2: Annotated[float, Decay, "AdamW's decay of the square."] = 0.999
    weight_decay: Annotated[float, Between(0.0), "AdamW's weight decay."] = 0.0
    warmup: Annotated[int, Count, "Optimizer steps until the learning rate is at its peak."] = 0
    schedule: Annotated[
        Literal["constant", "linear", "cosine"], "The learning rate after the warm-up."
    ] = "constant"
    grad_clip: Annotated[float, Positive, "Greatest norm of the gradient."] = 1.0
    target_kl: Annotated[
        float | None,
        Positive,
        "Stop before an update where the policy is farther than this from the old one (approx_kl).",
    ] = None
    continue_from: Annotated[
        Path | None,
        "Output of an earlier training whose optimizer state is taken over, unless with LoRA.",
    ] = None


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How the model is loaded, computed and saved."""

    lora_rank: Annotated[int, Count, "Rank of LoRA adapters; 0 trains all weights."] = 0
    lora_alpha: Annotated[float, Positive, "LoRA's alpha."] = 32.0
    lora_targets: Annotated[str, "Modules that get adapters, with commas, or all-linear."] = (
        "all-linear"
    )
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        "Arithmetic; auto is bfloat16 on a GPU. Weights and optimizer are float32 always.",
    ] = "auto"
    device: Annotated[
        Literal["auto", "cpu", "cuda"], "Where; auto takes a GPU if there is one."
    ] = "auto"
    gradient_checkpointing: Annotated[bool, "Trade computation for memory."] = False
    compile: Annotated[bool, "Compile the decoder layers (GPU)."] = False
    head_chunk: Annotated[int, AtLeastOne, "Tokens whose logits exist at one time."] = 1024
    save_dtype: Annotated[
        Literal["float32", "bfloat16"], "Type of the weights in the saved model."
    ] = "float32"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Checkpoints, the comparison with the sampler, and where metrics go."""

    checkpoint_every: Annotated[int, AtLeastOne, "Optimizer steps between checkpoints."] = 10
    keep_checkpoints: Annotated[int, AtLeastOne, "Checkpoints that are kept."] = 2
    mismatch_sample: Annotated[
        int, Count, "Steps whose logged log-probabilities are recomputed first; 0 skips it."
    ] = 64
    mismatch_tolerance: Annotated[
        float, Positive, "Greatest mean gap, in nats, between logged and recomputed."
    ] = 0.1
    allow_mismatch: Annotated[bool, "Train in spite of a greater gap."] = False
    tensorboard: Annotated[bool, "Write TensorBoard files to OUT/tensorboard."] = True
    tracker: Annotated[
        Literal["wandb", "trackio"] | None, "Also log to this tracker, if it is installed."
    ] = None


GROUPS: Mapping[str, type[Any]] = {
    "Input and output": JobOptions,
    "Data": DataOptions,
    "Batches": BatchOptions,
    "Loss": LossOptions,
    "Optimizer": OptimizerOptions,
    "Model": ModelOptions,
    "Run": RunOptions,
}
"""Title of each group in the help of `graphcredit train`, in the order of the options."""
