"""The process of one game: it reads sequences of actions, and answers each with one JSON line.

    python -m graphcredit.collector.environments.alfworld.serve FILE [plan]

Started by `process.py`. It ends when its input does.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO


def main() -> None:
    """Load the game, then answer line by line."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the planner prints must not end up among the answers
    file, *wishes = sys.argv[1:]
    try:
        _serve(Path(file), "plan" in wishes, answers)
    except Exception as error:
        _write(answers, {"error": f"{type(error).__name__}: {error}"})


def _serve(file: Path, with_plan: bool, answers: TextIO) -> None:
    from graphcredit.collector.environments.alfworld.engine import Engine

    engine = Engine(file, with_plan=with_plan)
    for line in sys.stdin:
        _write(answers, asdict(engine.answer(json.loads(line))))


def _write(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
