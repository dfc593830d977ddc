"""What the tests of the adapters share: a small world, records, and third parties that are absent.

Two rollouts of one task, x: hall -east-> kitchen -take-> worth 1, y: hall -west-> worth 0. By
GiGPO x and y differ by one in their episode and at the hall, so each part is ±1/√2, and the
kitchen, seen once, has the episode's part only.

A record is a batch of a framework's own types, as JSON: `tests/api/records/NAME.json`. Where the
framework is installed, a test makes the batch by its code and compares it with the record. Where
it is not, the adapter is tested on what the record says. `GRAPHCREDIT_RECORD=1` writes records.
"""

import json
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch

from graphcredit.integrations import StepCredit

HALF = 2**-0.5
EAST, TAKE, WEST = 2 * HALF, HALF, -2 * HALF
GIGPO = StepCredit(estimator="gigpo")
WORDS = ["<pad>", "find", "hall", "east", "kitchen", "take", "west"]
TENSOR = "tensor"
RECORDS = Path(__file__).parent / "records"


def ids(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


class Tokenizer:
    """A word is a token."""

    pad_token_id = 0

    def __call__(self, text: str, **_: Any) -> Any:
        return SimpleNamespace(input_ids=torch.tensor([ids(text)]))

    def decode(self, tokens: Sequence[int], **_: Any) -> str:
        return " ".join(WORDS[token] for token in tokens)

    def batch_decode(self, rows: Sequence[Any], **_: Any) -> list[str]:
        return [self.decode(row.tolist()) for row in rows]


def check_record(name: str, batch: Mapping[str, Any]) -> None:
    """Fail unless a batch of a framework's types is as its record: names, dtypes, shapes, values.

    Rounded, so that the last digits of a machine do not matter; times are all one.
    """
    found = json.loads(json.dumps(_plain(batch)))
    path = RECORDS / f"{name}.json"
    if os.environ.get("GRAPHCREDIT_RECORD"):
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


def read_record(name: str) -> Any:
    """Return a batch with tensors, mappings, lists and objects that have the recorded fields."""
    return _typed(json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8")))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        values = [round(v, 6) for v in value.flatten().tolist()]
        parts = [json.dumps(each, separators=(",", ":")) for each in (list(value.shape), values)]
        return " ".join((TENSOR, str(value.dtype).removeprefix("torch."), *parts))
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]  # pyright: ignore
    if isinstance(value, datetime) or (isinstance(value, float) and value > 1e9):
        return "a time"
    if isinstance(value, float):
        return round(value, 6)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Enum):
        return value.value
    fields = {name: each for name, each in vars(value).items() if not name.startswith("_")}
    return {"type": type(value).__name__, **_plain(fields)}


def _typed(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(TENSOR):
        _, dtype, shape, values = value.split(" ")
        flat = torch.tensor(json.loads(values), dtype=getattr(torch, dtype))
        return flat.reshape(json.loads(shape))
    if isinstance(value, list):
        return [_typed(each) for each in value]  # pyright: ignore
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = value  # pyright: ignore
    made = {key: _typed(each) for key, each in fields.items() if key != "type"}
    return Recorded(**made) if "type" in fields else made


class Recorded(SimpleNamespace):
    """An object of a record."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields, as pydantic's models do."""
        return {name: _dumped(value) for name, value in vars(self).items()}


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dumped(each) for each in value]  # pyright: ignore
    return value.model_dump() if isinstance(value, Recorded) else value


@contextmanager
def stand_ins(*names: str) -> Generator[None]:
    """Let third parties that are not installed be imported: what they have is never used."""
    finder = _StandIns(names)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.made:
            sys.modules.pop(name, None)


class _StandIns(MetaPathFinder, Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.made: list[str] = []

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        is_here = fullname.split(".")[0] in self._names
        return ModuleSpec(fullname, self, is_package=True) if is_here else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.made.append(spec.name)
        module: Any = MagicMock(name=spec.name)
        module.__name__, module.__path__, module.__spec__ = spec.name, [], spec
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""
