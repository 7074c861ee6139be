"""What a container image says of the server inside: which engine, and which vLLM version where its tag means one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..parsers.target import Target


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an image reference tells.

    `engine` is `vllm`, `slimserve`, the name of another engine, or None where the reference names none. `target` is the
    server's version where the tag is vLLM's own; `tag_of` the product whose version the tag is, where it is another's.
    """

    engine: str | None
    target: Target | None = None
    tag_of: str | None = None


_OWN_TAG = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?(?:post|rc|dev)\d+)*(?:[-+].*)?$")
_VLLM = re.compile(r"(?:^|/)vllm/vllm-openai(?:-[a-z0-9-]+)?$")
_AWS = re.compile(
    r"(?:\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?|(?:^|/)public\.ecr\.aws/deep-learning-containers)/vllm$"
)
_SCHEME = re.compile(r"^[a-z][a-z0-9+-]*://")
_PINNED = re.compile(r"(?<![\w.-])vllm(?:\[[\w, -]*\])?==v?(\d+\.\d+(?:\.\d+)?)(?![\w])")
_OTHER_ENGINES = (
    (re.compile(r"sglang"), "SGLang"),
    (re.compile(r"tensorrt|trtllm|trt-llm|tritonserver"), "TensorRT-LLM"),
    (re.compile(r"llama\.cpp|llama-cpp|llamacpp|ggml-org/|ollama"), "llama.cpp"),
    (re.compile(r"text-generation-inference|/tgi(?:$|[:/-])"), "TGI"),
    (re.compile(r"lmdeploy"), "LMDeploy"),
    (re.compile(r"sgl-project"), "SGLang"),
)
_OTHER_PRODUCTS = (
    (re.compile(r"llm-d"), "llm-d"),
    (re.compile(r"ai-dynamo|dynamo"), "NVIDIA Dynamo"),
    (re.compile(r"lmcache"), "LMCache"),
    (re.compile(r"rhaiis|rhoai|odh"), "Red Hat AI Inference Server"),
    (re.compile(r"nvcr\.io/nvidia/vllm"), "NVIDIA's vLLM container"),
    (re.compile(r"nvcr\.io/nim"), "NVIDIA NIM"),
    (re.compile(r"rocm/vllm"), "ROCm's vLLM container"),
    (re.compile(r"vllm-ascend"), "vllm-ascend"),
    (re.compile(r"djl-serving|djl-inference"), "AWS LMI"),
    (re.compile(r"runpod"), "RunPod worker"),
)


def image_facts(reference: str) -> ImageFacts:
    """Read an image reference such as `vllm/vllm-openai:v0.30.0-cu129`.

    Only `vllm/vllm-openai*` and AWS's own vLLM containers carry vLLM's version in their tag; `latest`, nightlies, model
    tags and digests tell none, and other products' tags are their own versions (see the table in docs).
    """
    name, tag = _name_and_tag(_SCHEME.sub("", reference.strip().lower()))
    if _VLLM.search(name) and not any(pattern.search(name) for pattern, _ in _OTHER_PRODUCTS):
        return ImageFacts("vllm", _version(tag))
    if _AWS.search(name):
        return ImageFacts("vllm", _version(tag))
    engine = next((engine for pattern, engine in _OTHER_ENGINES if pattern.search(name)), None)
    if engine is not None and "vllm" not in name:
        return ImageFacts(engine)
    product = next((product for pattern, product in _OTHER_PRODUCTS if pattern.search(name)), None)
    if "slimserve" in name:
        return ImageFacts("slimserve", Target("slimserve"))
    if product is not None or "vllm" in name:
        return ImageFacts("vllm" if "vllm" in name else None, tag_of=product or name.rpartition("/")[2])
    return ImageFacts(None)


def pinned(text: str) -> Target | None:
    """The one version of vLLM that a text names: `uvx --from vllm==0.32.0`."""
    found = {match[1] for match in _PINNED.finditer(text)}
    return _version(found.pop()) if len(found) == 1 else None


def installed(text: str) -> Target | None:
    """The one version of vLLM that a file's own lines install."""
    return pinned("\n".join(line for line in text.splitlines() if "install" in line))


def _name_and_tag(reference: str) -> tuple[str, str]:
    """Name and tag; a digest is no tag, and a registry's port none either."""
    name, _, _ = reference.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{head}{slash}{last}", tag


def _version(tag: str) -> Target | None:
    match = _OWN_TAG.match(tag)
    if match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.groups())
    return Target("vllm", (major, minor, patch)) if major < 10 else None
