"""The options of a training, in groups: each part of the trainer takes the group it needs.

A field is written once. Its type, range, default and docstring are also those of the flag of
`graphcredit train`, of the key in a TOML file and of the loop's `[train]` table.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from graphcredit.store.layout import is_iteration
from graphcredit.store.options import AtLeastOne, Count, Options, PathOption, Positive, Weight


def numbers_of(text: str) -> list[int]:
    """Return the numbers that a text such as 3-5 or 2,4-6 names, ascending."""
    ends = (part.partition("-") for part in text.split(","))
    return sorted({n for first, _, last in ends for n in range(int(first), int(last or first) + 1)})


def _checked_numbers(text: str) -> str:
    ends = [number for part in text.split(",") for number in part.split("-", 1)]
    if not all(map(is_iteration, ends)) or not numbers_of(text):
        raise ValueError("iterations such as 3, 3-5 or 2,4-6")
    return text


CorrectionMode: TypeAlias = Literal[
    "none",
    "bypass",
    "token-truncate",
    "token-mask",
    "sequence-truncate",
    "sequence-mask",
    "geometric-truncate",
    "geometric-mask",
]
KlEstimator: TypeAlias = Literal["k1", "k2", "k3", "k3+"]
Aggregation: TypeAlias = Literal[
    "token-mean", "seq-mean", "seq-sum", "dr-grpo", "trajectory-mean", "group-mean"
]
Decay: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
Iterations: TypeAlias = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    AfterValidator(_checked_numbers),
]
Stores: TypeAlias = Annotated[
    tuple[PathOption, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str | Path) else value),
    Field(strict=False, min_length=1),
]
DEFAULT_OBJECTIVE = "ppo"
SFT = "sft"

OBJECTIVE_OPTIONS: Mapping[str, str] = {
    "ppo": "clip_low=0.2, clip_high=0.2, dual_clip=3.0",
    "gspo": "clip_low=0.0003, clip_high=0.0004",
    "cispo": "clip_low=1.0, clip_high=4.0",
    "reinforce": "none",
    "sft": "weight=advantage",
}
"""Objective to its options and their defaults, as the help shows them. The help loads no torch, so
it cannot ask the objectives themselves; a test does."""


WITHOUT_RATIOS = ("reinforce", SFT)
"""Objectives whose loss takes no ratio of two policies; a test compares them with the table."""


DEFAULTS_OF_SFT: Mapping[str, Any] = {
    "correction": "none",
    "kl_coefficient": 0.0,
    "learning_rate": 1e-5,
}
"""Defaults of a training whose objective is sft."""


class TrainOptions(Options):
    """Base of the groups."""

    owner: ClassVar[str] = "train"


class JobOptions(TrainOptions):
    """The steps and the model to train, and the directory of the results."""

    store: Stores
    """The store, or several."""
    out: PathOption
    """Directory for the new policy, checkpoints and metrics."""
    model: str
    """A Hugging Face causal LM, or a Qwen2-VL or Qwen2.5-VL: a path, or a name in the local
    cache."""
    chat_template: PathOption | None = None
    """A file with the chat template that makes tokens of messages, in place of the model's; the
    new policy has it."""
    run: str | None = None
    """The run to train on; the only one by default. Several are separated by commas."""
    iteration: Iterations | None = None
    """The iteration; the newest one by default. Several are 3-5, or 2,4-6."""


class DataOptions(TrainOptions):
    """The steps to train on, and their advantage."""

    advantage: str = "reach"
    """An estimator, or a whole column such as graphgpo_step_advantage."""
    max_staleness: Count = 4
    """Leave out steps that are more than this many versions older than the newest in the log."""
    filter: str | None = None
    """Leave out steps that do not meet a condition in SQL over the columns of the view enriched;
    windows are allowed, such as max(success) OVER (PARTITION BY trajectory_id)."""

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
    max_steps: AtLeastOne | None = None
    """Optimizer steps, at most."""
    max_tokens: AtLeastOne = 32_768
    """Tokens of a micro-batch, at most; longer steps are left out, and steps that are longer than
    the model has positions are refused."""
    one_sequence: bool | None = None
    """Train all turns of a rollout in one optimizer step, as one sequence where each turn
    continues the one before: its tokens go through the model once, and each answer has the
    advantage of its turn. Prefixes are shared then, too. By default for messages whose turns
    continue each other, without images."""
    share_prefixes: bool = False
    """Let tokens that several steps of a micro-batch begin with go through the model once; without
    it only whole equal steps do."""
    seed: Count = 0
    """Seed of the order of the steps."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number: the unit that has equal weight."""

    @property
    def shares_prefixes(self) -> bool:
        """Whether tokens that steps begin with in common go through the model once."""
        return self.share_prefixes or bool(self.one_sequence)


class LossOptions(TrainOptions):
    """The objective, the divergence from the reference and the importance weights."""

    objective: str = DEFAULT_OBJECTIVE
    """ppo, gspo, cispo, reinforce or sft. sft learns from steps with a positive advantage alone, by
    default at 1e-5 and without divergence and correction."""
    objective_options: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Options of the objective, as a table; the flag is --set NAME=VALUE."""
    kl_coefficient: Weight = 0.01
    """Weight of the divergence from the reference; 0 skips it."""
    kl_estimator: KlEstimator = "k3"
    """How the divergence is estimated; k3+ has the value of k3 and the gradient of k2."""
    reference: str | None = None
    """The frozen reference model; by default the model at the start."""
    entropy_coefficient: Weight = 0.0
    """Weight of the entropy bonus."""
    correction: CorrectionMode = "token-truncate"
    """Importance weights for the gap between sampler and trainer: of each token's ratio, of the
    product over its response (sequence, as in TRL and verl) or of their geometric mean. With bypass
    the objective's own ratios are taken against the sampler's log-probabilities, not against
    those of the model at the start, which saves a pass."""
    correction_low: Weight = 0.5
    """Least weight that is not masked."""
    correction_high: Positive = 2.0
    """Greatest weight; more is cut or masked."""

    @property
    def bypasses(self) -> bool:
        """Whether ratios are taken against the sampler's log-probabilities."""
        return self.correction == "bypass"

    @property
    def takes_ratios(self) -> bool:
        """Whether the loss takes ratios to the model at the start or to the sampler."""
        return self.correction != "none" or self.objective not in WITHOUT_RATIOS

    @property
    def compares_with_start(self) -> bool:
        """Whether the loss takes the log-probabilities of the model at the start."""
        is_reference = self.kl_coefficient > 0 and self.reference is None
        return (self.takes_ratios and not self.bypasses) or is_reference

    def takes_start_pass(self, num_updates: int) -> bool:
        """Return whether a training has a pass for the log-probabilities at its start.

        Those of a single update are those of its own forward pass.
        """
        return self.compares_with_start and num_updates > 1

    @property
    def teaches_without_advantage(self) -> str | None:
        """What moves the policy where all advantages are 0, if anything does.

        The divergence from the model at the start does not: its gradient is 0 there, or noise (k1).
        """
        if self.entropy_coefficient > 0:
            return "the entropy bonus"
        is_drawn = self.kl_coefficient > 0 and self.reference is not None
        return f"the divergence from {self.reference}" if is_drawn else None


class OptimizerOptions(TrainOptions):
    """AdamW and its learning rate."""

    learning_rate: Weight = 1e-6
    """Peak learning rate of AdamW."""
    min_learning_rate: Weight = 0.0
    """Learning rate that the schedule ends at."""
    weight_decay: Weight = 0.0
    """AdamW's decay of the weights."""
    clip_norm: Positive = 1.0
    """Greatest norm of a gradient; longer ones are scaled to it."""
    beta1: Decay = 0.9
    """AdamW's decay of the mean."""
    beta2: Decay = 0.999
    """AdamW's decay of the square."""
    adam_epsilon: Positive = 1e-8
    """AdamW's epsilon, added to the root of the square."""
    warmup: Count = 0
    """Optimizer steps until the learning rate reaches its peak."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """The learning rate after the warm-up."""
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


class RunOptions(TrainOptions):
    """Checkpoints, and the comparison with the sampler."""

    checkpoint_every: AtLeastOne = 10
    """Optimizer steps between checkpoints."""
    mismatch_tolerance: Positive = 0.1
    """Greatest mean gap between logged and recomputed log-probabilities, in nats."""


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
