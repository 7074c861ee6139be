"""Engines that are not judged as vLLM: how their command lines are recognised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

_MODULES = (
    ("sglang", "SGLang"),
    ("dynamo.sglang", "NVIDIA Dynamo"),
    ("dynamo.trtllm", "NVIDIA Dynamo"),
    ("dynamo.vllm", "NVIDIA Dynamo"),
    ("dynamo", "NVIDIA Dynamo"),
    ("tensorrt_llm", "TensorRT-LLM"),
    ("llama_cpp", "llama.cpp"),
    ("lmdeploy", "LMDeploy"),
    ("mlx_lm", "MLX"),
    ("aphrodite", "Aphrodite"),
)
_PROGRAMS = {
    "sglang": "SGLang",
    "trtllm-serve": "TensorRT-LLM",
    "tritonserver": "TensorRT-LLM",
    "llama-server": "llama.cpp",
    "llama-cli": "llama.cpp",
    "llamafile": "llama.cpp",
    "ollama": "llama.cpp",
    "lmdeploy": "LMDeploy",
    "text-generation-launcher": "TGI",
    "mlx_lm.server": "MLX",
}
"""Program names, without the folder they stand in."""


def engine_of(words: Sequence[str]) -> str | None:
    """The engine other than vLLM and SlimServe that these words start, None where they start none of the known ones."""
    for index, word in enumerate(words):
        if word == "-m" and index + 1 < len(words):
            module = words[index + 1]
            found = next((name for head, name in _MODULES if module == head or module.startswith(f"{head}.")), None)
            if found is not None:
                return found
        name = PurePosixPath(word).name
        if name in _PROGRAMS and (index == 0 or words[index - 1] not in ("--name", "-n", "--model")):
            return _PROGRAMS[name]
        if word.startswith("-") and word not in ("-m", "-u", "-c", "-lc"):
            return None
    return None
