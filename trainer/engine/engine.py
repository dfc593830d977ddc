"""The model and its optimizer: forward, backward, update."""

import math
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.data.step_index import StepIndex
from graphcredit.trainer.data.step_lengths import length_limit
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.model.export import distinct, save_model
from graphcredit.trainer.model.layers import count_weights, model_shape, num_embeddings
from graphcredit.trainer.model.logprobs import Scored, Scorer, scorer_arguments
from graphcredit.trainer.model.source import find_model
from graphcredit.trainer.options import OptimizerOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineState:
    """Trained weights and optimizer state: the engine's own tensors, with its shards. No copies."""

    weights: Mapping[str, Tensor]
    """Name of a trained parameter to its value, float32."""
    optimizer: Mapping[str, Tensor]
    """`<name>.<quantity>` to AdamW's value of it; empty before the first update."""


class StoredState(Protocol):
    """An `EngineState` on disk."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the whole shape of each of its tensors."""
        ...

    def read(self, process: Process, into: Mapping[str, Tensor]) -> None:
        """Fill tensors of these names, whole or sharded."""
        ...


class TrainingEngine(Process):
    """A model and its optimizer on one device, or this process' shard of both."""

    def __init__(self, name: str, scorer: Scorer, options: OptimizerOptions, device: torch.device):
        """Make an engine of a model that is on its device."""
        super().__init__(device)
        self._source = find_model(name)
        self._options = options
        self.num_ids = num_embeddings(scorer)
        """Token ids that the model embeds: from 0 on."""
        self._limit = length_limit(scorer.causal_lm.config)
        self.shape = model_shape(scorer)
        """Sizes that determine the floating-point operations of a pass."""
        self._scorer = scorer
        # Collected now: during training, sharded modules may show unsharded tensors.
        self._tensors = scorer.model.state_dict(keep_vars=True)
        self._trained = [(n, p) for n, p in scorer.model.named_parameters() if p.requires_grad]
        assert all(p.dtype == torch.float32 for _, p in self._trained)
        self._is_fused = all(p.is_cuda for _, p in self._trained)

    def score(self, batch: PackedBatch, *, want_entropy: bool = False) -> Scored:
        """Return log-probability and entropy of each response token, on the engine's device.

        Raises:
            InputError: A token id is not one of the model's, or a sample is too long for it.
        """
        if self._limit is not None and batch.max_length > self._limit.num_tokens:
            self._limit.refuse(f"found {batch.max_length} tokens", self._source)
        self.check_token_id(int(batch.input_ids.min()))
        self.check_token_id(int(batch.input_ids.max()))
        return self._scorer(*scorer_arguments(batch, self.put, want_entropy=want_entropy))

    def check_token_id(self, token_id: int, where: str = "a micro-batch") -> None:
        """Raise InputError if a token id is not one of the model's."""
        if not 0 <= token_id < self.num_ids:
            raise InputError(
                f"token ids must be those of {self._source}, 0 to {self.num_ids - 1}: found "
                f"{token_id} in {where}. Another model or tokenizer sampled these steps"
            )

    def check_lengths(self, index: StepIndex) -> None:
        """Raise InputError if a step of the log is too long for the model."""
        if self._limit is not None:
            self._limit.refuse_longer(index, self._source)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch's part of the loss; shards are exchanged at once.

        Args:
            loss: A share of the sum over all micro-batches of all processes, each of which goes
                backward equally often.
        """
        # FSDP averages gradients over the processes, and the loss is a sum.
        (loss * self.world_size).backward()

    def update(self, learning_rate: float) -> float:
        """Take one step of AdamW and clear the gradient.

        Returns:
            The norm of the gradient before it was clipped.

        Raises:
            TrainingError: The gradient is not finite; the weights are as they were.
        """
        trained = [parameter for _, parameter in self._trained]
        clipped = nn.utils.clip_grad_norm_(trained, self._options.clip_norm)
        norm = float(clipped.full_tensor() if isinstance(clipped, DTensor) else clipped)
        if not math.isfinite(norm):
            raise TrainingError(
                f"the gradient's norm must be finite, but is {norm}: the weights are left as they "
                "were. Look at the last metrics; a lower learning rate or correction_high helps"
            )
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return norm

    @property
    def num_weights(self) -> int:
        """How many weights the model has, over all processes."""
        return count_weights(self._scorer.parameters())

    @property
    def has_adapter(self) -> bool:
        """Whether adapters are trained, and the weights below them are frozen."""
        return self._scorer.causal_lm is not self._scorer.model

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Score without gradients within this context."""
        with torch.no_grad():
            yield

    def state(self) -> EngineState:
        """Return the present state."""
        optimizer = {
            f"{name}.{key}": value
            for name, p in self._trained
            for key, value in self._optimizer.state.get(p, {}).items()
        }
        return EngineState(weights={n: p.detach() for n, p in self._trained}, optimizer=optimizer)

    def load_state(self, stored: StoredState) -> None:
        """Load a state, each process its shards.

        Raises:
            InputError: It belongs to another model.
        """
        shapes = stored.shapes()
        for name, p in self._trained:
            if shapes.get(name) != tuple(p.shape):
                raise InputError(
                    f"the state must be of this model, whose {name} is {tuple(p.shape)}: found "
                    f"{shapes.get(name)}. Resume with the same model and lora options, or train "
                    "into another directory"
                )
        stored.read(self, {name: p.detach() for name, p in self._trained})
        self.load_optimizer(stored)

    def load_optimizer(self, stored: StoredState) -> None:
        """Load AdamW's part of a state, each process its shards.

        Raises:
            InputError: The state belongs to other parameters than the trained ones.
        """
        shapes = stored.shapes()
        self._refuse_other_optimizer(shapes)
        self._optimizer.state.clear()
        for name, p in self._trained:
            if f"{name}.step" in shapes:
                # As AdamW makes it in its first step.
                self._optimizer.state[p] = {
                    "step": torch.zeros((), device=p.device if self._is_fused else "cpu"),
                    "exp_avg": torch.zeros_like(p, requires_grad=False),
                    "exp_avg_sq": torch.zeros_like(p, requires_grad=False),
                }
        stored.read(self, self.state().optimizer)

    def _refuse_other_optimizer(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        saved = {key: shape for key, shape in shapes.items() if key.endswith(".exp_avg")}
        mine = {f"{n}.exp_avg": tuple(p.shape) for n, p in self._trained} if saved else {}
        if differing := sorted(
            key for key in mine.keys() | saved.keys() if mine.get(key) != saved.get(key)
        ):
            raise InputError(
                "an optimizer's state must be of the parameters that are trained, but "
                f"{len(differing)} differ, such as {differing[0].removesuffix('.exp_avg')}: take "
                "over a training of the same model with the same lora options"
            )

    def save_pretrained(self, directory: Path, chat_template: str | None = None) -> None:
        """Write the model in the format of transformers and vLLM; see `save_model`."""
        model = self._scorer.model
        wholes = ((name, self._whole(tensor)) for name, tensor in distinct(model, self._tensors))
        if self.rank == 0:
            save_model(directory, model, wholes, self._source, chat_template)
        else:
            # To gather takes every process.
            deque(wholes, maxlen=0)
        self.barrier()

    def _whole(self, tensor: Tensor) -> Tensor:
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        return whole.detach().cpu()

    @cached_property
    def _optimizer(self) -> torch.optim.AdamW:
        options = self._options
        return torch.optim.AdamW(
            [p for _, p in self._trained],
            lr=options.learning_rate,
            betas=(options.beta1, options.beta2),
            eps=options.adam_epsilon,
            weight_decay=options.weight_decay,
            fused=self._is_fused,
            foreach=False,
        )
