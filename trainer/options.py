"""The options of a training, in groups: each part of the trainer takes the group it needs.

A field is written once. Its type, range, default and docstring are also those of the flag of
`graphcredit train`, of the key in a TOML file and of the loop's `[train]` table.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from graphcredit.store.options import AtLeastOne, Count, Options, PathOption, Positive, Weight

CorrectionMode: TypeAlias = Literal[
    "none",
    "token-truncate",
    "token-mask",
    "sequence-truncate",
    "sequence-mask",
    "geometric-truncate",
    "geometric-mask",
]
Decay: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
EntropyShare: TypeAlias = Annotated[float, Field(gt=0, le=1)]
DEFAULT_OBJECTIVE = "ppo"

OBJECTIVE_OPTIONS: Mapping[str, str] = {
    "ppo": "clip_low=0.2, clip_high=0.2, dual_clip=3.0",
    "gspo": "clip_low=0.0003, clip_high=0.0004",
    "cispo": "clip_low=1.0, clip_high=4.0",
    "gmpo": "clip_low=0.4, clip_high=0.4",
    "soft-gate": "temperature_positive=1.0, temperature_negative=1.05",
    "dppo": "limit=0.2",
    "reinforce": "none",
}
"""Objective to its options and their defaults, as the help shows them. The help loads no torch, so
it cannot ask the objectives themselves; a test does."""


class TrainOptions(Options):
    """Base of the groups."""

    owner: ClassVar[str] = "train"


class JobOptions(TrainOptions):
    """The steps and the model to train, and the directory of the results."""

    store: PathOption
    """The store."""
    out: PathOption
    """Directory for the new policy, checkpoints and metrics."""
    model: str
    """A Hugging Face causal LM, or a Qwen2-VL or Qwen2.5-VL: a path, or a name in the local
    cache."""
    run: str | None = None
    """The run to train on; the only one by default."""
    iteration: int | None = None
    """The iteration; the newest one by default."""


class DataOptions(TrainOptions):
    """The steps to train on, and their advantage."""

    advantage: str = "graphgpo"
    """An estimator, or a whole column such as graphgpo_step_advantage."""
    policy_version: str | None = None
    """Version of the model, as in the log: its number tells how old a step is."""
    max_staleness: Count = 4
    """Steps sampled by weights older than this many versions are left out."""
    drop_zero_advantage: bool | None = None
    """Leave out steps whose advantage is 0; by default where nothing is learnt from them: without
    divergence, entropy bonus and whitening, nor in trajectory-mean and group-mean."""
    drop_degenerate_groups: bool = False
    """Leave out groups whose trajectories all have one return (DAPO)."""
    whiten_advantages: bool = False
    """Shift and scale advantages to mean 0, deviation 1."""
    advantage_clip: Positive | None = None
    """Clip advantages to this absolute value, after whitening."""
    allow_truncated_sampling: bool = False
    """Train on steps that were sampled with top-p or top-k, whose ratios are wrong."""

    @property
    def column(self) -> str:
        """The advantage column."""
        whole = self.advantage.endswith("_advantage")
        return self.advantage if whole else f"{self.advantage}_advantage"


class BatchOptions(TrainOptions):
    """Optimizer steps, micro-batches and the weight of each token."""

    batch_size: AtLeastOne = 512
    """Steps of an optimizer step, at most."""
    epochs: AtLeastOne = 1
    """Number of times each step is used."""
    max_tokens: AtLeastOne = 32_768
    """Tokens of a micro-batch, at most; longer steps are left out."""
    max_step_tokens: AtLeastOne | None = None
    """Tokens of a step, at most; longer ones are left out. Without it, steps that are longer than
    the model has positions are refused."""
    share_prefixes: bool = False
    """Let tokens that several steps of a micro-batch begin with go through the model once; without
    it only whole equal steps do."""
    seed: Count = 0
    """Seed of the order of the steps."""
    aggregation: Literal[
        "token-mean", "seq-mean", "seq-sum", "dr-grpo", "trajectory-mean", "group-mean"
    ] = "token-mean"
    """How token losses become one number: the unit that has equal weight."""
    response_length: AtLeastOne = 512
    """The constant L of dr-grpo."""


class LossOptions(TrainOptions):
    """The objective, the divergence from the reference and the importance weights."""

    objective: str = DEFAULT_OBJECTIVE
    """ppo, gspo, cispo, gmpo, soft-gate, dppo or reinforce."""
    objective_options: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Options of the objective, as a table; the flag is --set NAME=VALUE."""
    kl_coefficient: Weight = 0.01
    """Weight of the divergence from the reference; 0 skips it."""
    kl_estimator: Literal["k1", "k2", "k3", "k3+"] = "k3"
    """How the divergence is estimated; k3+ has the value of k3 and the gradient of k2."""
    kl_target: Positive | None = None
    """Adapt the weight of the divergence so that it stays near this many nats per token."""
    reference: str | None = None
    """The frozen reference model; by default the model at the start."""
    entropy_coefficient: Weight = 0.0
    """Weight of the entropy bonus."""
    entropy_target: Positive | None = None
    """Adapt the weight of the entropy bonus so that the entropy stays near this many nats."""
    entropy_step: Positive = 0.005
    """By how much an update adapts the weight of the entropy bonus."""
    entropy_share: EntropyShare | None = None
    """Learn only from this share of each response's tokens, those of the highest entropy."""
    off_policy_limit: Positive | None = None
    """Leave out responses of negative advantage that the policy finds less likely than the sampler
    by more than this many nats per token."""
    router_loss: Weight | None = None
    """Weight of the loss that keeps the experts of a mixture evenly used; by default
    router_aux_loss_coef of the model's configuration; 0 leaves it out."""
    old_logprobs: Literal["recomputed", "behaviour"] = "recomputed"
    """Denominator of the ratios: recomputed by the model at the start, or logged by the sampler."""
    correction: CorrectionMode | None = None
    """Importance weights for the gap between sampler and trainer: of each token's ratio, of the
    product over its response (sequence, as in TRL and verl) or of their geometric mean; by default
    token-truncate where old log-probabilities are recomputed, and none where they are the
    sampler's."""
    correction_low: Weight = 0.5
    """Least weight that is not masked."""
    correction_high: Positive = 2.0
    """Greatest weight; more is cut or masked."""
    normalise_correction: bool = False
    """Divide these weights by their mean over the optimizer step, so that they say what tokens
    weigh beside each other, and not how large the step is."""

    @property
    def has_entropy_bonus(self) -> bool:
        """Whether the entropy may enter the loss."""
        return self.entropy_coefficient > 0 or self.entropy_target is not None

    @property
    def adapts(self) -> bool:
        """Whether a coefficient changes from update to update."""
        return self.kl_target is not None or self.entropy_target is not None

    @property
    def compares_with_start(self) -> bool:
        """Whether the loss takes the log-probabilities of the model at the start."""
        return self.old_logprobs == "recomputed" or (
            self.kl_coefficient > 0 and self.reference is None
        )

    def takes_start_pass(self, num_updates: int) -> bool:
        """Return whether a training has a pass for the log-probabilities at its start.

        Those of a single update are those of its own forward pass, unless they are needed before.
        """
        return self.compares_with_start and (num_updates > 1 or self.normalise_correction)

    @property
    def teaches_without_advantage(self) -> str | None:
        """What moves the policy where all advantages are 0, if anything does.

        The divergence from the model at the start does not: its gradient is 0 there, or noise (k1).
        """
        if self.has_entropy_bonus:
            return "the entropy bonus"
        is_drawn = self.kl_coefficient > 0 and self.reference is not None
        return f"the divergence from {self.reference}" if is_drawn else None

    @property
    def corrects(self) -> CorrectionMode:
        """The correction that is applied."""
        if self.correction is not None:
            return self.correction
        return "token-truncate" if self.old_logprobs == "recomputed" else "none"


class OptimizerOptions(TrainOptions):
    """AdamW, its learning rate and when to stop."""

    learning_rate: Weight = 1e-6
    """Peak learning rate of AdamW."""
    beta1: Decay = 0.9
    """AdamW's decay of the mean."""
    beta2: Decay = 0.999
    """AdamW's decay of the square."""
    weight_decay: Weight = 0.0
    """AdamW's weight decay."""
    moments: Literal["float32", "bfloat16"] = "float32"
    """Type that AdamW's moments are kept in; bfloat16 takes half the memory, and is rounded at
    random."""
    warmup: Count = 0
    """Optimizer steps until the learning rate reaches its peak."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """The learning rate after the warm-up."""
    grad_clip: Positive = 1.0
    """Greatest norm of the gradient."""
    target_kl: Positive | None = None
    """Stop before an update where the policy is farther than this from the old one (approx_kl)."""
    continue_from: PathOption | None = None
    """Output of an earlier training; its optimizer state is loaded, unless with LoRA."""


class ModelOptions(TrainOptions):
    """How the model is loaded, computed and saved."""

    lora_rank: Count = 0
    """Rank of LoRA adapters; 0 trains all weights."""
    lora_alpha: Positive = 32.0
    """LoRA's alpha."""
    lora_targets: str = "all-linear"
    """Modules that get adapters, separated by commas, or all-linear."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic; auto is bfloat16 on a GPU. Weights are always float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device; auto takes a GPU if one is available."""
    gradient_checkpointing: bool | None = None
    """Compute the activations of each layer again in the backward pass instead of keeping them; by
    default for models of a billion weights and more."""
    compile: bool = False
    """Compile the decoder layers (GPU)."""
    head_chunk: AtLeastOne = 1024
    """Response tokens that the head scores at one time."""
    reduce_gradients: Literal["update", "micro-batch"] = "update"
    """When processes exchange gradients: once in an update, which takes whole float32 gradients in
    each process, or after every micro-batch, which takes its shard of them and more exchanges."""
    replicate: AtLeastOne = 1
    """Copies of the model (HSDP), each cut into as many shards as it has processes. Copies exchange
    only gradients: one on each machine saves the exchange of layers between machines."""
    offload: bool = False
    """Keep weights, moments and exchanged gradients in the memory of the host, and update there; a
    layer is on the GPU only while it computes."""
    context_parallel: AtLeastOne = 1
    """Processes that run each micro-batch together, a slice of its tokens each, so that longer
    sequences fit; it divides the number of attention heads and that of processes."""
    save_dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the weights in the saved model."""


class RunOptions(TrainOptions):
    """Checkpoints, the comparison with the sampler, and the destinations of metrics."""

    timeout: Positive = 30.0
    """Minutes that a process waits for the others before it gives up."""
    checkpoint_every: AtLeastOne = 10
    """Optimizer steps between checkpoints."""
    keep_checkpoints: AtLeastOne = 2
    """Checkpoints that are kept."""
    background_checkpoints: bool = False
    """Write checkpoints while the training goes on, from a copy in the memory of the host."""
    mismatch_sample: Count = 64
    """Steps whose logged log-probabilities are recomputed as a check; 0 skips it."""
    mismatch_tolerance: Positive = 0.1
    """Greatest mean gap between logged and recomputed log-probabilities, in nats."""
    profile: Count = 0
    """Optimizer steps of which a trace is written to OUT/profile, after the first one; 0 for
    none."""
    allow_mismatch: bool = False
    """Train in spite of a greater gap."""
    tensorboard: bool = True
    """Write TensorBoard files to OUT/tensorboard."""
    tracker: Literal["wandb", "trackio"] | None = None
    """Also log to this tracker, if it is installed."""


GROUPS: Mapping[str, type[TrainOptions]] = {
    "Input and output": JobOptions,
    "Data": DataOptions,
    "Batches": BatchOptions,
    "Loss": LossOptions,
    "Optimizer": OptimizerOptions,
    "Model": ModelOptions,
    "Run": RunOptions,
}
"""Title of each group in the help of `graphcredit train`, in the order of the options."""
