"""Runs inside a vLLM interpreter: what its own budget counters make of outputs that are written token by token.

Each line of stdin is `{"rule", "markers", "budget", "prompt", "natural", "size"}`; `natural[i]` is what the model says
as its token i unless a token is forced. Each line of stdout is the output that came of it.
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("TRITON_INTERPRET", "1")


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cases = [json.loads(line) for line in sys.stdin]
    rules = {"vllm-v1": v1, "vllm-v2": v2}
    for case in cases:
        out.write(json.dumps(rules[case["rule"]](case)) + "\n")
    out.flush()


def config(case: dict[str, Any]) -> Any:
    markers = case["markers"]
    return SimpleNamespace(
        reasoning_start_token_ids=markers["start"],
        reasoning_end_token_ids=markers["forced_end"],
        natural_reasoning_end_token_ids=markers["natural_end"],
    )


def v1(case: dict[str, Any]) -> list[int]:
    import torch
    from vllm import SamplingParams
    from vllm.v1.sample.logits_processor.interface import BatchUpdate
    from vllm.v1.sample.thinking_budget_state import ThinkingBudgetStateHolder

    holder = ThinkingBudgetStateHolder(config(case), 1, 0, torch.device("cpu"), False)
    output: list[int] = []
    params = SamplingParams(thinking_token_budget=case["budget"])
    added = [(0, params, case["prompt"], output)]
    holder.sync_batch(BatchUpdate(batch_size=1, removed=[], added=added, moved=[]))
    for natural in case["natural"]:
        holder.update_state([output], None)
        logits = holder.apply_to_logits(torch.zeros(1, case["size"]), False, None)
        output.append(int(logits.argmax()) if float(logits.max()) > 1 else natural)
    return output


def v2(case: dict[str, Any]) -> list[int]:
    import torch
    import triton
    import triton.language
    import vllm.triton_utils

    # vLLM finds no driver on a CPU and puts a stand-in in its place; the interpreter needs none.
    vllm.triton_utils.triton, vllm.triton_utils.tl = triton, triton.language
    from vllm.v1.worker.gpu.sample.thinking_budget import apply_thinking_budget

    device = "cuda" if torch.cuda.is_available() else "cpu"
    markers = {name: torch.tensor(ids, dtype=torch.int32, device=device) for name, ids in case["markers"].items()}
    if case["budget"] is None:
        return list(case["natural"])

    def ints(*values: int) -> Any:
        return torch.tensor(values, dtype=torch.int32, device=device)

    prompt = case["prompt"]
    tokens = torch.zeros(1, len(prompt) + len(case["natural"]) + 1, dtype=torch.int32, device=device)
    tokens[0, : len(prompt)] = ints(*prompt)
    last_start, last_end, scanned = ints(-1), ints(-1), ints(0)
    output: list[int] = []
    for natural in case["natural"]:
        length = len(prompt) + len(output)
        last = tokens[0, length - 1 : length].clone()
        logits = torch.zeros(1, case["size"], device=device)
        apply_thinking_budget(
            logits, ints(0), ints(0), ints(case["budget"]), tokens, ints(length), last,
            ints(0), last_start, last_end, scanned, markers["start"], markers["natural_end"], markers["forced_end"],
        )  # fmt: skip
        output.append(int(logits.argmax()) if float(logits.max()) > 1 else natural)
        tokens[0, length] = output[-1]
    return output


if __name__ == "__main__":
    main()
