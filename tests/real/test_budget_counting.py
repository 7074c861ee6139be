"""Our counting against vLLM's own: V1's class, and V2's kernel under Triton's interpreter."""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import Any

import pytest

from reasonctl.budgets.counting import Markers, counter

from .driver import ENVIRONMENT, SCRIPT

pytestmark = pytest.mark.vllm
START, END, SIZE = 1, 2, 16
SHAPES = {
    "single tokens": Markers((1,), (2,), (2,)),
    "several tokens": Markers((1, 3), (2, 4), (2, 4)),
    "three tokens": Markers((1, 3, 5), (2, 3, 5), (2, 3, 5)),
    "a phrase before the end": Markers((1,), (2,), (6, 7, 2)),
    "a phrase behind the end": Markers((1,), (2,), (2, 6, 7)),
    "a phrase around the end": Markers((1,), (2,), (6, 2, 7)),
}
CASES = {"vllm-v1": 400, "vllm-v2": 25}
"""Random outputs a shape; Triton's interpreter takes its time."""
VERSIONS = {"vllm-v1": "0.32.0", "vllm-v2": "0.33.0"}
"""V1's file is the same in both, and 0.32.0 is what is installed for this CPU."""


def written(case: dict[str, Any], markers: Markers) -> list[int]:
    """What comes out by our counting."""
    follow = counter(case["rule"], markers, case["budget"], case["prompt"])
    output: list[int] = []
    for natural in case["natural"]:
        token = follow.forced(output)
        output.append(natural if token is None else token)
    return output


def some_tokens(random: random.Random, markers: Markers, length: int) -> list[int]:
    """Plain tokens with markers, and pieces of markers, strewn in."""
    tokens: list[int] = []
    while len(tokens) < length:
        draw = random.random()
        if draw < 0.12:
            tokens += markers.start
        elif draw < 0.2:
            tokens += markers.natural_end
        elif draw < 0.24:
            tokens += markers.forced_end
        else:
            tokens.append(random.choice((3, 5, 6, 8, 9, 10, 11)) if draw < 0.5 else random.choice((8, 9, 10, 11)))
    return tokens[:length]


def cases(rule: str, markers: Markers, seed: str) -> list[dict[str, Any]]:
    random_ = random.Random(seed)
    return [
        {
            "rule": rule,
            "markers": {"start": markers.start, "natural_end": markers.natural_end, "forced_end": markers.forced_end},
            "budget": random_.choice((0, 1, 2, 3, 5, 8, 20)),
            "prompt": [12, *some_tokens(random_, markers, random_.randrange(12))],
            "natural": some_tokens(random_, markers, random_.randrange(1, 18)),
            "size": SIZE,
        }
        for _ in range(CASES[rule])
    ]


def of_vllm(version: str, asked: list[dict[str, Any]]) -> list[list[int]]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    overlay = ENVIRONMENT / f"vllm-{version}"
    if overlay.exists():
        environment["PYTHONPATH"] = str(overlay)
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", SCRIPT.with_name("vllm_budget.py")],
        input="".join(json.dumps(case) + "\n" for case in asked),
        capture_output=True,
        text=True,
        env=environment | {"VLLM_LOGGING_LEVEL": "ERROR", "TRITON_INTERPRET": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("rule", CASES)
def test_every_output_ends_where_vllm_ends_it(rule: str) -> None:
    asked = {name: cases(rule, markers, f"{rule} {name}") for name, markers in SHAPES.items()}
    theirs = iter(of_vllm(VERSIONS[rule], [case for each in asked.values() for case in each]))
    different: list[str] = []
    for name, markers in SHAPES.items():
        for case in asked[name]:
            ours, real = written(case, markers), next(theirs)
            if ours != real:
                different.append(f"{name}: {case['budget']} {case['prompt']} {case['natural']}: {ours}, vLLM {real}")
    assert not different, f"{len(different)}\n" + "\n".join(sorted(different, key=len)[:5])
