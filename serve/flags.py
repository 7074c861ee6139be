"""Which flags of `vllm serve` and `slimserve` stand alone or take several values, and what short ones stand for."""

from __future__ import annotations

STANDALONE = frozenset(
    {
        "aggregate-engine-logging", "allow-credentials", "allow-deprecated-quantization", "async-scheduling",
        "cohere-is-reasoning-model", "cudagraph-metrics", "data-parallel-external-lb", "data-parallel-hybrid-lb",
        "data-parallel-multi-port-external-lb", "dcp-q-replicate", "enforce-eager",
        "exclude-tools-when-tool-choice-none", "fail-on-environ-validation", "fully-sharded-loras", "grpc", "headless",
        "help",
        "interleave-mm-strings", "jit-monitor-verbose", "kv-cache-metrics", "kv-sharing-fast-prefill",
        "language-model-only", "log-error-stack", "long-prefill-token-threshold-adaptive", "mm-device-do-normalize",
        "mm-encoder-only", "numa-bind", "ray-workers-use-nsight", "return-sampling-mask", "return-tokens-as-token-ids",
        "scheduler-reserve-full-isl", "skip-mm-profiling", "skip-tokenizer-init", "sleep-mode-offload-cudagraph",
        "specialize-active-lora", "swa-bounded-replay", "tokens-only", "trust-remote-code",
        "trust-request-chat-template", "trust-request-mm-kwargs", "use-fp64-gumbel", "use-replayssm",
        "use-tqdm-on-load",
    }
)  # fmt: skip
"""Flags of `vllm serve` that take no value (vllm/engine/arg_utils.py, entrypoints/openai/cli_args.py; as the 0.32.0
parser lists them). All `--enable-*`, `--disable-*` and `--no-*` flags are of that kind too; see `stands_alone`."""

SEVERAL = frozenset(
    {
        "allowed-media-domains", "api-key", "collect-detailed-traces", "cpu-offload-params", "cudagraph-capture-sizes",
        "ignore-patterns", "kv-cache-dtype-skip-layers", "logits-processors", "lora-modules", "lora-target-modules",
        "numa-bind-cpus", "numa-bind-nodes", "offload-params", "served-model-name", "sleep-preserve-parameter-names",
    }
)  # fmt: skip
"""Flags that take every word up to the next flag."""

VALUED = frozenset({"disable-access-log-for-endpoints"})
"""Takes a value, against its name."""

LONG = {
    "h": "help", "asc": "api-server-count", "q": "quantization", "pp": "pipeline-parallel-size", "n": "nnodes",
    "r": "node-rank", "tp": "tensor-parallel-size", "dcp": "decode-context-parallel-size",
    "pcp": "prefill-context-parallel-size", "dp": "data-parallel-size", "dpn": "data-parallel-rank",
    "dpr": "data-parallel-start-rank", "dpl": "data-parallel-size-local", "dpa": "data-parallel-address",
    "dpp": "data-parallel-rpc-port", "dpb": "data-parallel-backend", "dph": "data-parallel-hybrid-lb",
    "dpe": "data-parallel-external-lb", "dpm": "data-parallel-multi-port-external-lb", "ep": "enable-expert-parallel",
    "sc": "speculative-config", "dc": "diffusion-config", "cc": "compilation-config", "ac": "attention-config",
}  # fmt: skip
"""Short flags of the same parser."""

SLIMSERVE_STANDALONE = frozenset(
    {"list", "serve", "spec", "no-spec", "thinking", "download-only", "yes", "y", "dry-run", "help", "h"}
)
"""SlimServe's own (slimserve/cli.py)."""


def stands_alone(name: str, *, product: str) -> bool:
    """Whether this flag (dashes, no leading ones) takes no value."""
    if product == "slimserve" and name in SLIMSERVE_STANDALONE:
        return True
    return name in STANDALONE or (name.startswith(("enable-", "disable-", "no-")) and name not in VALUED)
