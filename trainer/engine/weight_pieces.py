"""Which tensors on disk make up each weight of a model, as transformers declares it.

A mixture has a tensor for each expert on disk, and in memory one parameter for all experts of a
layer. Transformers declares for each family how names on disk become names in memory, and how
several tensors become one. Of these ways the one of mixtures is understood here: the tensors of
experts are stacked, and stacks may be concatenated, such as those of gate and up projections.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    Concatenate,
    MergeModulelist,
    WeightConverter,
    WeightRenaming,
    dot_natural_key,
    rename_source_key,
)

from graphcredit.trainer.engine.weight_files import TensorBlock

Shapes = Mapping[str, tuple[int, ...]]
Sources = dict[str | None, list[str]]
"""Pattern of a conversion, None for no conversion, to the names on disk that match it, in order."""


def find_pieces(model: Any, on_disk: Shapes) -> dict[int, tuple[TensorBlock, ...]] | None:
    """Return the tensors on disk that make up each weight of a model.

    Args:
        model: A transformers model, with adapters or without; its values do not count.
        on_disk: Name to shape of each tensor on disk.

    Returns:
        Id of each weight and buffer to its pieces, which fill it. None if one of them is missing or
        of another shape on disk, or is made in a way that is not understood.
    """
    weights = stored_weights(model)
    known = _by_name(model, {n: tuple(t.shape) for n, t in weights.items()}, on_disk)
    found: dict[int, tuple[TensorBlock, ...]] = {}
    for name, tensor in weights.items():
        if name in known:
            # Of the names of tied weights the first counts.
            found.setdefault(id(tensor), known[name])
    return found if found.keys() == {*map(id, weights.values())} else None


def stored_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers that a model has on disk, by their names without adapters."""
    tensors = model.state_dict(keep_vars=True)
    return {n.replace(".base_layer.", "."): t for n, t in tensors.items() if ".lora_" not in n}


def _by_name(model: Any, shapes: Shapes, on_disk: Shapes) -> dict[str, tuple[TensorBlock, ...]]:
    """Return the pieces of each weight that can be read in pieces, by its name."""
    declared = get_model_conversion_mapping(model)
    rule_of: dict[str | None, WeightConverter] = {
        pattern: each
        for each in declared
        if isinstance(each, WeightConverter)
        for pattern in each.source_patterns
    }
    found: dict[str, tuple[TensorBlock, ...]] = {}
    for name, sources in _sources(model, declared, shapes, on_disk).items():
        rule, *others = {id(r): r for r in (rule_of.get(pattern) for pattern in sources)}.values()
        pieces = None if others else _pieces(sources, rule, shapes[name], on_disk)
        if pieces is not None:
            found[name] = pieces
    return found


def _sources(
    model: Any, declared: Sequence[Any], shapes: Shapes, on_disk: Shapes
) -> dict[str, Sources]:
    """Return which tensors on disk transformers would make each weight of, by its name."""
    renamings = [each for each in declared if isinstance(each, WeightRenaming)]
    converters = [each for each in declared if isinstance(each, WeightConverter)]
    prefix: str = model.base_model_prefix
    known: Any = shapes  # transformers asks which names there are, and no more
    found: dict[str, Sources] = {}
    # Transformers numbers experts in this order.
    for name in sorted(on_disk, key=dot_natural_key):
        own, pattern = rename_source_key(name, renamings, converters, prefix, known)
        if own not in shapes and name in shapes:
            own, pattern = rename_source_key(name, [], [], prefix, known)
        if own in shapes:
            found.setdefault(own, {}).setdefault(pattern, []).append(name)
    return found


def _pieces(
    sources: Sources, rule: WeightConverter | None, shape: tuple[int, ...], on_disk: Shapes
) -> tuple[TensorBlock, ...] | None:
    """Return the pieces of a weight, or None if they are not known to fill it."""
    if rule is None:
        names = sources[None]
        is_alike = len(names) == 1 and on_disk[names[0]] == shape
        return (
            (TensorBlock(name=names[0], start=(0,) * len(shape), sizes=shape),)
            if is_alike
            else None
        )
    dim = _joined_dimension(rule)
    if dim is None:
        return None
    stacks = [sources[pattern] for pattern in rule.source_patterns if pattern in sources]
    return _joined(stacks, dim % len(shape), shape, on_disk)


def _joined_dimension(rule: WeightConverter) -> int | None:
    """Return the dimension in which stacks of tensors are concatenated; 0 for a single stack.

    None if the rule is another one. The types are compared, because a subclass may do otherwise.
    """
    match [(type(each), getattr(each, "dim", None)) for each in rule.operations]:
        case [(stacking, 0)] if stacking is MergeModulelist and len(rule.source_patterns) == 1:
            return 0
        case [(stacking, 0), (joining, int(dim))] if (
            stacking is MergeModulelist and joining is Concatenate
        ):
            return dim
        case _:
            return None


def _joined(
    stacks: Sequence[Sequence[str]], dim: int, shape: tuple[int, ...], on_disk: Shapes
) -> tuple[TensorBlock, ...] | None:
    """Return the pieces of concatenated stacks; None if these have not the shape of the weight."""
    pieces: list[TensorBlock] = []
    end = 0
    for names in stacks:
        size, *others = {on_disk[name] for name in names}
        block = (len(names), *size)
        if others or _without(block, dim) != _without(shape, dim):
            return None
        for number, name in enumerate(names):
            start = [number, *(0 for _ in size)]
            start[dim] += end
            pieces.append(TensorBlock(name=name, start=tuple(start), sizes=(1, *size)))
        end += block[dim]
    return tuple(pieces) if end == shape[dim] else None


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]
