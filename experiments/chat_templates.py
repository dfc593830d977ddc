"""What becomes of thirteen kinds of logs by the chat templates of nine families of models.

    python -m experiments.chat_templates

It takes the templates that TRL's package has: the makers' own, and TRL's copies that mark answers.
A family's vocabulary is bytes and the tokens that its template names. It writes
docs/research/tables/chat-templates.csv, a row for each log and family:

    steps      answers that have tokens, of all
    ends       of those, answers that end with a token at which samplers stop, or, where a limit cut
               them, with none
    arguments  of calls, those whose answer has the arguments in the order of the log
    masks      of the steps by TRL's copy, those with the prompt and the answer that transformers
               marks in the same messages (`return_assistant_tokens_mask`), but for blank characters
               at the ends of an answer; of all whose messages the copy takes as they are
"""

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import trl
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

import graphcredit
from experiments.chat_logs import ARGUMENTS, LOGS
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Shard, open_store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.trainer.messages.conversation import Conversation, conversation_of
from graphcredit.trainer.messages.made import prompts_and_answers
from graphcredit.trainer.messages.plain import CALLS, CHANGES
from graphcredit.trainer.messages.tokens import tokens_of_messages

TABLE = Path(__file__).parents[1] / "docs" / "research" / "tables" / "chat-templates.csv"
Pair = tuple[str, str]
"""Prompt and answer, as text."""

_TEMPLATES = Path(trl.__file__).parent / "chat_templates"
_TOKEN = re.compile(r"<\|[^|>\s]+\|>|<｜[^｜]+｜>|</?[a-z]+_of_turn>|</?(?:think|tool_call)>")


class Family(NamedTuple):
    """A family of models: its template in TRL's package, and the tokens at which samplers stop."""

    template: str
    stops: Sequence[str]
    """The first one is the tokenizer's end of a text."""
    bos: str | None = None

    def save(self, directory: Path) -> None:
        """Write a tokenizer of bytes with the tokens that the templates name."""
        texts = [path.read_text(encoding="utf-8") for path in self.files() if path.exists()]
        named = {token for text in texts for token in _TOKEN.findall(text)}
        letters = {letter: n for n, letter in enumerate(sorted(ByteLevel.alphabet()))}
        made = Tokenizer(BPE(vocab=letters, merges=[]))
        made.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
        made.decoder = ByteLevelDecoder()
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=made,
            eos_token=self.stops[0],
            **({"bos_token": self.bos} if self.bos else {}),
        )
        tokenizer.add_tokens(sorted({*named, *self.stops}), special_tokens=True)
        tokenizer.chat_template = texts[0]
        tokenizer.save_pretrained(directory)
        ids = tokenizer.convert_tokens_to_ids(list(self.stops))
        (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))

    def files(self) -> tuple[Path, Path]:
        """Return the template of the makers, and TRL's copy with marks."""
        own = _TEMPLATES / f"{self.template}.jinja"
        marked = _TEMPLATES / f"{self.template.removesuffix('_1')}_training.jinja"
        return own, marked


FAMILIES: Mapping[str, Family] = {
    "Qwen2.5": Family("qwen2_5", ["<|im_end|>", "<|endoftext|>"]),
    "Qwen3": Family("qwen3", ["<|im_end|>", "<|endoftext|>"]),
    "Qwen3.6": Family("qwen3_6", ["<|im_end|>", "<|endoftext|>"]),
    "Llama 3.1": Family(
        "llama3_1", ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"], "<|begin_of_text|>"
    ),
    "Gemma 3": Family("gemma3", ["<end_of_turn>"], "<|bos|>"),
    "Phi 3": Family("phi3", ["<|endoftext|>", "<|end|>"]),
    "gpt-oss": Family("gptoss", ["<|return|>", "<|call|>"], "<|startoftext|>"),
    "DeepSeek V3": Family("deepseekv3", ["<｜end▁of▁sentence｜>"], "<｜begin▁of▁sentence｜>"),
    "GLM 4.5": Family("glm4moe", ["<|endoftext|>", "<|user|>", "<|observation|>"]),
}


def main() -> None:
    """Write the table."""
    with TemporaryDirectory() as folder, TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["log", "family", "steps", "ends", "arguments", "masks"])
        for number, (log, record) in enumerate(LOGS.items()):
            store = Path(folder, f"store-{number}")
            rows = [{"task_id": "t", "reward": reward, **record} for reward in (0.0, 1.0)]
            graphcredit.import_log(rows, store)
            (shard,) = open_store(store).shards()
            for family in FAMILIES:
                writer.writerow([log, family, *measured(shard, FAMILIES[family], Path(folder))])
            print(log, file=sys.stderr)


def measured(shard: Shard, family: Family, folder: Path) -> Iterator[str]:
    """Yield the cells of a row of the table."""
    directory = folder / family.template
    if not directory.exists():
        family.save(directory)
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(directory)
    conversations = list(_conversations(shard))
    turns = [turn for each in conversations for turn in each.turns]
    pairs, _ = _made(shard, directory, tokenizer)
    kept = [(turn, pair) for turn, pair in zip(turns, pairs, strict=True) if pair is not None]
    yield f"{len(kept)}/{len(turns)}"
    stops = tuple(family.stops)
    yield _share([answer.rstrip().endswith(stops) != turn.is_cut for turn, (_, answer) in kept])
    yield _share([_is_ordered(answer) for turn, (_, answer) in kept if _calls(turn.answer)])
    marked = family.files()[1]
    pairs, changes = _made(shard, directory, tokenizer, marked)
    expected = [
        pair for each in conversations for pair in _marked(tokenizer, each, marked, changes)
    ]
    yield _share(
        [
            mine is not None and _agrees(mine, theirs, is_cut=turn.is_cut)
            for turn, mine, theirs in zip(turns, pairs, expected, strict=True)
            if theirs is not None
        ]
    )


def _calls(answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("tool_calls")) or "<tool_call>" in str(answer["content"])


def _is_ordered(answer: str) -> bool:
    found = [re.search(rf"\b{name}\b", answer) for name in ARGUMENTS]
    places = [match.start() if match else -1 for match in found]
    return min(places) >= 0 and places == sorted(places)


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)}/{len(held)}" if held else ""


def _agrees(mine: Pair, theirs: Pair, *, is_cut: bool) -> bool:
    """Return whether prompt and answer are those of transformers, which knows of no cut."""
    answer, marked = mine[1].strip(), theirs[1].strip()
    is_same = (
        marked.startswith(answer) and len(marked) > len(answer) if is_cut else answer == marked
    )
    return mine[0].rstrip() == theirs[0].rstrip() and is_same


def _conversations(shard: Shard) -> Iterator[Conversation]:
    with open_parquet(shard.path) as file:
        rows = file.read().to_pylist()
    for name in dict.fromkeys(row["trajectory_id"] for row in rows):
        yield conversation_of([row for row in rows if row["trajectory_id"] == name])


def _made(
    shard: Shard, directory: Path, tokenizer: Any, template: Path | None = None
) -> tuple[list[Pair | None], list[str]]:
    """Return what each row has, and the changes of messages without which there would be less."""
    try:
        made = tokens_of_messages([shard], directory, template=template)
    except InputError:
        with open_parquet(shard.path) as file:
            return [None] * file.metadata.num_rows, []
    pairs = [
        pair and (tokenizer.decode(pair[0]), tokenizer.decode(pair[1]))
        for pair in prompts_and_answers(made, shard.path)
    ]
    return pairs, [what for what in CHANGES if f"the chat template takes {what}" in made.notices]


def _marked(
    tokenizer: Any, conversation: Conversation, template: Path, changes: Sequence[str]
) -> Iterator[Pair | None]:
    """Yield prompt and answer of each turn as transformers marks them.

    None if it refuses them, or if another answer is before: masks do not tell two answers apart.
    """
    text = template.read_text(encoding="utf-8")
    messages: list[dict[str, Any]] = []
    for turn in conversation.turns:
        messages += [*turn.seen, turn.answer]
        shown, tools = messages, conversation.tools
        for what in changes:
            shown = CHANGES[what].apply(shown, tools)
            tools = None if what == CALLS else tools
        if len(shown) > 1 and shown[-2]["role"] == "assistant":
            yield None
            continue
        try:
            made = tokenizer.apply_chat_template(
                shown,
                tools=tools,
                chat_template=text,
                return_dict=True,
                return_assistant_tokens_mask=True,
            )
        except Exception:  # a template raises what it likes
            yield None
            continue
        ids, mask = made["input_ids"], made["assistant_masks"]
        end = len(mask) - mask[::-1].index(1) if 1 in mask else 0
        start = next((n + 1 for n in reversed(range(end)) if not mask[n]), 0)
        yield (tokenizer.decode(ids[:start]), tokenizer.decode(ids[start:end])) if end else None


if __name__ == "__main__":
    main()
