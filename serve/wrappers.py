"""Platforms that hand vLLM its flags in environment variables: which variables, and the words they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..checks.finding import Location
from .words import Word, split_words, word_at


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable as a manifest sets it. `value` is None where only the running platform knows it."""

    value: str | None
    location: Location


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One platform's rule.

    `prefix` stands before a flag's name in capitals (`SM_VLLM_REASONING_PARSER`); `aliases` are variables with a flag
    of another name; `lines` hold whole command lines; `image` matches the images that read them.
    """

    name: str
    image: re.Pattern[str]
    prefix: str | None = None
    aliases: Mapping[str, str] | None = None
    lines: tuple[str, ...] = ()


RUNPOD_FLAGS = frozenset(
    {
        "CHAT_TEMPLATE", "ENABLE_AUTO_TOOL_CHOICE", "MAX_MODEL_LEN", "REASONING_PARSER", "TOKENIZER",
        "TOOL_CALL_PARSER", "TRUST_REMOTE_CODE", "GENERATION_CONFIG", "OVERRIDE_GENERATION_CONFIG",
        "DEFAULT_CHAT_TEMPLATE_KWARGS", "STRUCTURED_OUTPUTS_CONFIG", "REASONING_CONFIG", "TOKENIZER_MODE",
    }
)  # fmt: skip
"""Variables of the RunPod worker that are flags by their plain name; others of its image mean other things."""

WRAPPERS = (
    Wrapper("AWS vLLM container", re.compile(r"amazonaws\.com(\.cn)?/vllm|sagemaker"), prefix="SM_VLLM_"),
    Wrapper(
        "AWS LMI",
        re.compile(r"djl-(serving|inference)|lmi"),
        prefix="OPTION_",
        aliases={"HF_MODEL_ID": "model", "OPTION_MODEL_ID": "model"},
    ),
    Wrapper(
        "RunPod worker",
        re.compile(r"runpod|worker-v1-vllm|worker-vllm"),
        aliases={
            **{name: name.lower().replace("_", "-") for name in RUNPOD_FLAGS},
            "MODEL_NAME": "model",
            "CUSTOM_CHAT_TEMPLATE": "chat-template",
        },
        lines=("VLLM_EXTRA_ARGS",),
    ),
    Wrapper("NVIDIA NIM", re.compile(r"nvcr\.io/nim/"), lines=("NIM_PASSTHROUGH_ARGS",)),
    Wrapper("KServe LLMInferenceService", re.compile(r"(?!)"), lines=("VLLM_ADDITIONAL_ARGS",)),
)
"""From each platform's own documentation: AWS Deep Learning Containers, DJL LMI, RunPod worker-vllm, NIM, KServe."""

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Flags out of the environment: their words, the platform, and variables that another platform would read."""

    words: tuple[Word, ...] = ()
    platform: str | None = None
    ignored: tuple[tuple[str, Variable, str], ...] = ()
    """(variable, its value and place, the platform that reads it)."""


def wrapped(env: Mapping[str, Variable], image: str | None) -> Wrapped:
    """The flags that the environment of a container stands for.

    The image decides which platform reads its variables; without one that is known, the platform whose own variables
    are set does, the first of the table where several could.
    """
    reference = (image or "").lower()
    by_image = next((wrapper for wrapper in WRAPPERS if reference and wrapper.image.search(reference)), None)
    chosen = by_image or next((w for w in WRAPPERS if any(_own(w, name) for name in env)), None)
    if chosen is None:
        return Wrapped()
    words = [word for name, variable in env.items() for word in _words(chosen, name, variable)]
    ignored: list[tuple[str, Variable, str]] = []
    if by_image is not None:
        for name, variable in env.items():
            other = next((w for w in WRAPPERS if w is not by_image and _own(w, name)), None)
            if other is not None and not _reads(by_image, name):
                ignored.append((name, variable, other.name))
    return Wrapped(tuple(words), chosen.name if words else None, tuple(ignored))


def _own(wrapper: Wrapper, name: str) -> bool:
    """A variable that nothing but this platform would be given."""
    if name in wrapper.lines:
        return True
    return wrapper.prefix is not None and name.startswith(wrapper.prefix)


def _reads(wrapper: Wrapper, name: str) -> bool:
    return _own(wrapper, name) or name in (wrapper.aliases or {})


def _words(wrapper: Wrapper, name: str, variable: Variable) -> list[Word]:
    if name in wrapper.lines:
        if variable.value is None:
            return []
        return [word for word in split_words(variable.value, lambda _: variable.location) if not word.operator]
    alias = (wrapper.aliases or {}).get(name)
    if alias is None:
        if wrapper.prefix is None or not name.startswith(wrapper.prefix):
            return []
        alias = name.removeprefix(wrapper.prefix).lower().replace("_", "-")
    flag = word_at(f"--{alias}", variable.location)
    if variable.value is None:
        return [word_at(f"--{alias}=$({name})", variable.location, dynamic=True)]
    truth = _BOOLEANS.get(variable.value.strip().lower()) if _alone(alias) else None
    if truth is not None:
        return [flag] if truth else []
    return [word_at(f"--{alias}={variable.value}", variable.location)]


def _alone(flag: str) -> bool:
    from .flags import stands_alone

    return stands_alone(flag, product="vllm")
