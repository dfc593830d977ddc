"""What a training run is asked to do: every option, its default and its range, in one place."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

from graphcredit.store.errors import OptionError
from graphcredit.store.options import Between, Count, check_options, read_toml
from graphcredit.trainer.config_words import (
    VERSION,
    VERSION_KEY,
    in_first_words,
    in_words_of_today,
    renaming,
)

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
_OBJECTIVE = "ppo"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """A training run. The string in each type is the help text of the flag of that name."""

    store: Annotated[Path, "The store."]
    out: Annotated[Path, "Where the new policy, checkpoints and metrics go."]
    model: Annotated[str, "A Hugging Face causal LM: a path, or a name in the local cache."]
    run: Annotated[str | None, "The run whose steps are used; the only one by default."] = None
    iteration: Annotated[int | None, "The iteration; the newest one by default."] = None

    # Which steps
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

    # Batches
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

    # Loss
    objective: Annotated[str, "ppo, gspo, cispo or reinforce."] = _OBJECTIVE
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

    # Optimizer
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

    # Model
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

    # Safety
    checkpoint_every: Annotated[int, AtLeastOne, "Optimizer steps between checkpoints."] = 10
    keep_checkpoints: Annotated[int, AtLeastOne, "Checkpoints that are kept."] = 2
    mismatch_sample: Annotated[
        int, Count, "Steps whose logged log-probabilities are recomputed first; 0 skips it."
    ] = 64
    mismatch_tolerance: Annotated[
        float, Positive, "Greatest mean gap, in nats, between logged and recomputed."
    ] = 0.1
    allow_mismatch: Annotated[bool, "Train in spite of a greater gap."] = False

    # Watching
    tensorboard: Annotated[bool, "Write TensorBoard files to OUT/tensorboard."] = True
    tracker: Annotated[
        Literal["wandb", "trackio"] | None, "Also log to this tracker, if it is installed."
    ] = None

    def check(self) -> None:
        """Raise OptionError where an option is out of its range or contradicts another."""
        check_options(self, owner="train")
        if self.old_logprobs == "behaviour" and self.corrects != "none":
            raise OptionError(
                "with old_logprobs = behaviour the ratio is taken against the sampler already, so "
                f"correction must be none: got {self.correction}. Set one or the other."
            )
        if self.correction_low > self.correction_high:
            raise OptionError(
                "correction_low must not exceed correction_high: got "
                f"{self.correction_low:g} and {self.correction_high:g}"
            )
        if self.reference is not None and self.kl_coefficient == 0:
            raise OptionError(
                f"a reference ({self.reference}) is used only with kl_coefficient above 0: found 0"
            )

    def resolved(self) -> "TrainConfig":
        """Return the same configuration with whole paths, and 2 as 2.0, however they were spelt.

        Links are left as they are: what is behind them is told by its hash.
        """
        name = self.reference
        hints = get_type_hints(TrainConfig)
        whole = {n: v for n in hints if isinstance(v := getattr(self, n), int)}
        numbers = {
            n: float(v) for n, v in whole.items() if float in (hints[n], *get_args(hints[n]))
        }
        return replace(
            self,
            **numbers,
            store=Path(os.path.abspath(self.store)),
            out=Path(os.path.abspath(self.out)),
            model=_whole(self.model),
            reference=None if name is None else _whole(name),
            continue_from=self.continue_from and Path(os.path.abspath(self.continue_from)),
        )

    @property
    def column(self) -> str:
        """The advantage column."""
        whole = self.advantage.endswith("_advantage")
        return self.advantage if whole else f"{self.advantage}_advantage"

    @property
    def corrects(self) -> CorrectionMode:
        """The correction that is applied."""
        if self.correction is not None:
            return self.correction
        return "token-truncate" if self.old_logprobs == "recomputed" else "none"

    @property
    def drops_zero_advantage(self) -> bool:
        """Whether steps with advantage 0 are left out."""
        if self.drop_zero_advantage is not None:
            return self.drop_zero_advantage
        if self.whiten_advantages:
            # A zero counts in the mean and the deviation, and is none afterwards.
            return False
        if self.aggregation in ("trajectory-mean", "group-mean"):
            # A trajectory's share is over all its steps: what is left of it would have it all.
            return False
        return self.kl_coefficient == 0 and self.entropy_coefficient == 0

    def as_json(self) -> dict[str, Any]:
        """Return every option as JSON has it."""
        values = asdict(self)
        return {k: str(v) if isinstance(v, Path) else v for k, v in values.items()}

    def as_toml(self) -> str:
        """Return the configuration as `read_config` reads it; what is None is left out.

        Raises:
            OptionError: The name of a file is not text.
        """
        return f"{VERSION_KEY} = {VERSION}\n{_as_toml(self.as_json())}"

    def decisive_text(self) -> str:
        """Return the options that change what is learnt, as text to recognise a training by.

        It is the same for the trainings of before, whatever a word meant then.
        """
        values = without_effect(self).as_json()
        return _as_toml({**values, "correction": in_first_words(self.correction)})


def read_config(
    path: Path | None, given: Mapping[str, Any], *, version: int = VERSION
) -> TrainConfig:
    """Return the configuration of a TOML file, with what was given beside it.

    Args:
        path: The file, if there is one.
        given: Field to its value, which wins over the file's. Options of the objective win one by
            one; with another objective than the file's, none of the file's is used.
        version: Of the file's words, where it does not say.

    Raises:
        OptionError: The file cannot be read, a name is unknown, or a needed one is missing.
    """
    read = in_words_of_today(read_toml(path), version) if path else {}
    values = _merged(read, given)
    hints = get_type_hints(TrainConfig)
    unknown = sorted(values.keys() - hints.keys())
    if unknown:
        raise OptionError(f"train has no option {unknown[0]!r}; its options: {', '.join(hints)}")
    missing = [name for name in ("store", "out", "model") if name not in values]
    if missing:
        raise OptionError(f"train must be told {missing[0]!r}: on the command line or in the file")
    for name in ("store", "out", "continue_from"):
        if isinstance(values.get(name), str):
            values[name] = Path(values[name])
    config = TrainConfig(**values)
    config.check()
    return config


def _as_toml(options: Mapping[str, Any]) -> str:
    values = {k: v for k, v in options.items() if v is not None}
    of_objective = values.pop("objective_options")
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    table = [f"{name} = {_toml(value)}" for name, value in of_objective.items()]
    return "\n".join([*lines, "", "[objective_options]", *table]) + "\n"


def _merged(read: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    values = {**read, **given}
    name, added = "objective_options", given.get("objective_options", {})
    if values.get("objective", _OBJECTIVE) != read.get("objective", _OBJECTIVE):
        return {**values, name: added}
    if isinstance(read.get(name), Mapping) and isinstance(added, Mapping):
        values[name] = {**read[name], **added}
    return values


def differences(config: TrainConfig, other: TrainConfig) -> list[str]:
    """Return the options on which two configurations do not agree, as text."""
    pairs = {f.name: (getattr(config, f.name), getattr(other, f.name)) for f in fields(TrainConfig)}
    return [
        f"{name} is {asked!r}, was {saved!r}"
        + (renaming(asked, saved) if name == "correction" else "")
        for name, (asked, saved) in pairs.items()
        if asked != saved
    ]


def without_effect(config: TrainConfig) -> TrainConfig:
    """Return a configuration less the options that do not change what is learnt.

    The device does where dtype is auto: `Identity.arithmetic` has what came of it.
    """
    return replace(
        config,
        store=Path(),
        out=Path(),
        device="auto",
        checkpoint_every=1,
        keep_checkpoints=1,
        mismatch_sample=0,
        allow_mismatch=False,
        mismatch_tolerance=1.0,
        tensorboard=False,
        tracker=None,
    )


def _whole(name: str) -> str:
    """Return the whole path of a directory; a name in the cache is left as it is."""
    return os.path.abspath(name) if Path(name).is_dir() else name


def _toml(value: Any) -> str:
    """Return a value as TOML has it, which is as JSON has it but for two things.

    A character beyond the first 65,536 is itself and no pair of surrogates; and DEL is escaped.
    """
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"options must be text in UTF-8, so that config.toml can keep them: got {value!a}. "
            "Rename the file"
        ) from None
    return text
