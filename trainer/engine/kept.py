"""The engines that stay in memory from one training to the next, in the process of a loop.

A training begins with the weights and the optimizer that the one before ended with, and its
reference is always the same. The files are written as ever and say the same to the bit: another
process goes on from them.
"""

from dataclasses import dataclass, field
from pathlib import Path

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group, device_memory
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine

_BYTES_EACH = 16
"""Of a weight: itself, its two moments, and a reference's."""


@dataclass(kw_only=True)
class KeptEngines:
    """The engines of trainings with the same options, each of which goes on from the one before."""

    most: float = 0.25
    """Most of the device's memory to take: a sampler needs some, too. 0 keeps nothing."""
    _policy: TrainingEngine | None = None
    _out: Path | None = None
    """Output of the training that ended with the policy's weights and optimizer."""
    _frozen: dict[str, TrainingEngine] = field(default_factory=dict[str, TrainingEngine])

    def policy(self, config: TrainConfig) -> tuple[TrainingEngine, bool]:
        """Return an engine with the model to train, and whether it has the optimizer to go on with.

        Raises:
            InputError: As for `open_engine`.
        """
        engine, goes_on = self._policy, self.goes_on(config)
        self._policy = None
        if engine is not None and goes_on:
            return engine, True
        del engine  # its memory is needed
        return open_engine(config.model, config), False

    def reference(self, name: str, config: TrainConfig) -> TrainingEngine:
        """Return an engine that scores with a reference."""
        engine = self._frozen.get(name) or open_engine(name, config, frozen=True)
        if self._fits(engine):
            self._frozen[name] = engine
        return engine

    def keep(self, engine: TrainingEngine, out: Path) -> None:
        """Keep the engine of a training that has written its output."""
        # An adapter was merged into the model that was written, and begins anew.
        if self._fits(engine) and not engine.has_adapter:
            self._policy, self._out = engine, out.resolve()

    def close(self) -> None:
        """Drop all engines, and the process group that they share."""
        self._policy = None
        self._frozen.clear()
        destroy_process_group()

    def goes_on(self, config: TrainConfig) -> bool:
        """Return whether a training begins with the weights and the optimizer that are here."""
        before = config.continue_from
        return (
            self._policy is not None
            and self._out is not None
            and before is not None
            and before.resolve() == self._out
            and Path(config.model).resolve() == self._out / "model"
        )

    def _fits(self, engine: TrainingEngine) -> bool:
        """Return whether a model, with all that is kept of it, takes little of the memory."""
        memory = self.most * device_memory(engine.device) * engine.world_size
        return engine.num_weights * _BYTES_EACH <= memory
