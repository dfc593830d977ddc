"""Kinds with fresh values at each look."""

from __future__ import annotations

import json
import textwrap
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.noise.fresh.draw import START, hexadecimal, random_token

if TYPE_CHECKING:
    from benchmarks.noise.disturb import VisitRandom


def tool_result_json(text: str, rng: VisitRandom, index: int) -> str:
    """Wrap the text in the one-line JSON of a tool call's result."""
    return json.dumps(
        {
            "type": "tool_result",
            "tool_use_id": f"toolu_01{random_token(rng, 22)}",
            "is_error": False,
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": rng.randint(900, 9000), "output_tokens": rng.randint(8, 90)},
            "latency_ms": round(rng.lognormvariate(5, 0.7), 1),
        },
        ensure_ascii=False,
    )


def captured_by_test(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as the captured output of a test run."""
    warnings = rng.choice(("", "", ", 1 warning", f", {rng.randint(2, 14)} warnings"))
    passed = f" 1 passed{warnings} in {rng.uniform(0.08, 4):.2f}s "
    return "\n".join(
        (
            " test session starts ".center(80, "="),
            "platform linux -- Python 3.11.7, pytest-8.1.1, pluggy-1.4.0",
            f"Using --randomly-seed={rng.getrandbits(32)}",
            f"rootdir: /tmp/pytest-of-ci/pytest-{rng.randint(0, 999)}/observe0",
            "collected 1 item",
            f"[gw{rng.randint(0, 7)}] PASSED tests/test_world.py::test_observe",
            " Captured stdout call ".center(80, "-"),
            text,
            passed.center(80, "="),
        )
    )


def signed_links(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as a scraped web page with signed links, a form token and a footer."""
    made = START + timedelta(seconds=rng.randint(0, 30 * 86400))
    url = f"https://cdn.questhost.example/maps/{hexadecimal(rng, 12)}.png"
    query = f"?Expires={made.timestamp() + 900:.0f}&Signature={random_token(rng, 28)}~"
    hit = rng.choice(("HIT", "MISS", "STALE", "BYPASS"))
    return "\n".join(
        (
            f"![map of this place]({url}{query})",
            text,
            f'<input type="hidden" name="csrf_token" value="{random_token(rng, 32)}">',
            f"Page generated {made:%Y-%m-%d %H:%M:%S} UTC in {rng.uniform(4, 310):.1f} ms · "
            f"cache {hit} · {rng.randint(180, 2400):,} players online",
        )
    )


def telemetry_yaml(text: str, rng: VisitRandom, index: int) -> str:
    """Put the text into a YAML document beside measurements, whose keys come in any order."""
    fields = [
        f"cpu_percent: {rng.uniform(2, 98):.1f}",
        f"rss_mb: {rng.randint(210, 1900)}",
        f"gpu_temp_c: {rng.randint(34, 83)}",
        f"env_step_ms: {rng.lognormvariate(2, 0.8):.2f}",
        f"trace_id: {hexadecimal(rng, 32)}",
        f"queue_depth: {rng.choice((0, 0, 0, 1, 2, 5))}",
    ]
    fields = rng.sample(fields, rng.randint(4, len(fields)))
    fields.append("observation: |\n" + textwrap.indent(text, "  "))
    rng.shuffle(fields)
    return "\n".join(("---", *fields, "..."))


def rate_limit(text: str, rng: VisitRandom, index: int) -> str:
    """Put the messages of up to three failed requests before the text."""
    failed = []
    for attempt in range(1, 1 + rng.choice((0, 0, 1, 1, 2, 3))):
        wait = rng.uniform(0.4, 2) * 2**attempt
        failed.append(
            rng.choice(
                (
                    f"HTTP 429 Too Many Requests (request "
                    f"req_{random_token(rng, 16)}), "
                    f"retrying in {wait:.2f} s, attempt {attempt}/5",
                    f"WARN  upstream 503 from pod env-{hexadecimal(rng, 5)}, "
                    f"backoff {wait * 1000:.0f}ms",
                    f"Retry {attempt}: read timed out (read timeout={rng.choice((5, 10, 30))})",
                    f"x-ratelimit-remaining: 0; x-ratelimit-reset: {rng.randint(1, 59)}s",
                )
            )
        )
    return "\n".join((*failed, text))
