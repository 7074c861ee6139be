"""The parser table: complete, consistent, and answering who registers what and which model wants which parser."""

from __future__ import annotations

import pytest

from reasonctl import parsers
from reasonctl.errors import InputError
from reasonctl.parsers import ROWS, STATE_MARKERS, Target, names, near_names, paired, row
from reasonctl.parsers.differential.families import FAMILIES

MODELLED = {name for name, found in ROWS.items() if found.modelled}


def vllm(minor: int) -> Target:
    return Target("vllm", (0, minor, 0))


def test_every_name_of_the_newest_version_has_a_row() -> None:
    assert len(ROWS) == 42
    assert list(ROWS) == sorted(ROWS)
    assert all(name == found.name for name, found in ROWS.items())


@pytest.mark.parametrize(
    ("minor", "count"),
    [(14, 16), (15, 16), (16, 17), (20, 22), (24, 27), (30, 34), (31, 35), (32, 38), (33, 42), (40, 42)],
)
def test_versions_register_as_many_names_as_they_had(minor: int, count: int) -> None:
    assert len(names(vllm(minor))) == count


def test_versions_differ_by_the_names_they_added() -> None:
    assert set(names(vllm(33))) - set(names(vllm(32))) == {"beam", "muse", "musespark1x", "step5"}
    assert set(names(vllm(32))) - set(names(vllm(31))) == {"hf", "minicpmv", "plamo3"}
    assert set(names(vllm(31))) - set(names(vllm(30))) == {"granite_thinking_parser"}
    assert names(Target("slimserve")) == names(None) == tuple(ROWS)


def test_every_modelled_name_is_held_against_vllm() -> None:
    assert set(FAMILIES) == MODELLED


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_say_where_they_come_from_and_hang_together(name: str) -> None:
    found = ROWS[name]
    assert found.truncation and found.prompt_rule and found.gates_grammar
    assert found.sources and all(source.startswith("vllm/") and source.endswith(".py") for source in found.sources)
    assert bool(found.start) == bool(found.end) == (found.family != "response-template")
    assert set(found.implicit_ends) <= set(found.tool_markers)
    assert not set(found.start) & set(found.end)
    assert (found.family == "engine") <= (found.skip_special_tokens is False)
    assert found.reads_prompt_full <= found.reads_prompt_stream


def test_defaults_that_are_off() -> None:
    off = {name for name, found in ROWS.items() if not found.default_on}
    assert off == {"deepseek_v3", "poolside_v1", "hy_v3", "minimax_m3", "gemma4"}


def test_an_unknown_name_is_refused_with_its_neighbours() -> None:
    with pytest.raises(InputError, match="registers no reasoning parser 'deepseekr1'; did you mean deepseek_r1"):
        row("deepseekr1")
    assert near_names("Qwen-3") == ("qwen3",)
    assert near_names("zzz") == ()


def test_a_name_of_a_later_version_is_refused_with_that_version() -> None:
    with pytest.raises(InputError, match=r"vllm==0.32.0 registers no reasoning parser 'step5'; vLLM 0.33 and later do"):
        row("step5", vllm(32))
    assert row("step5", vllm(33)).since == "0.33"


@pytest.mark.parametrize(
    ("source", "model_type", "expected"),
    [
        ("Qwen/Qwen3-8B", "qwen3", "qwen3"),
        ("models/mine", "qwen3_5_moe", "qwen3"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3", "deepseek_r1"),
        ("deepseek-r1-distill-llama-8b", "llama", "deepseek_r1"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v3", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V4.1", None, "deepseek_v41"),
        ("Qwen/QwQ-32B", "qwen2", "deepseek_r1"),
        ("XiaomiMiMo/MiMo-V2-Flash", "mimo_v2", "qwen3"),
        ("XiaomiMiMo/MiMo-V2.5", None, "mimo"),
        ("zai-org/GLM-4.6", "glm4_moe", "glm45"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax_m2", "minimax_m2"),
        ("poolside/Laguna-XS.2", None, "poolside_v1"),
        ("openai/gpt-oss-20b", "gpt_oss", "openai_gptoss"),
        ("stepfun-ai/Step-3.5-Flash", "step3p5", "step3p5"),
        ("tencent/Hy3-preview", None, "hy_v3"),
    ],
)
def test_models_are_paired_with_the_parser_their_makers_name(
    source: str, model_type: str | None, expected: str
) -> None:
    assert paired(source, model_type)[0] == expected


def test_a_model_nobody_names_is_paired_with_none() -> None:
    assert paired("meta-llama/Llama-3.1-8B-Instruct", "llama") == ()
    assert paired("x", "deepseek_v3") == ("deepseek_r1", "deepseek_v3")


def test_state_markers_are_pairs_and_no_generic_turn_tokens() -> None:
    texts = [text for pair in STATE_MARKERS for text in (pair.start, pair.end)]
    assert len(texts) == len(set(texts))
    assert not {"<|eom|>", "<|eot|>", "<|end_message|>", "<|message|>", "<response>", "<|channel>"} & set(texts)
    assert {
        "<think>",
        "<|channel>thought",
        "<longcat_think>",
        "<think:opensource>",
        "<|think:start|>",
        "<thought>",
    } <= set(texts)
    for text in texts:
        assert not [other for other in texts if other != text and text in other]


def test_importing_the_table_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    script = "import sys; from reasonctl import parsers; print(*(name for name in sys.modules if '.' not in name))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"tokenizers", "transformers", "torch", "vllm", "httpx", "jinja2"} & set(loaded)


def test_unmodelled_names_say_so() -> None:
    from reasonctl.parsers.assumed import AssumedVocabulary

    for name in set(ROWS) - MODELLED:
        with pytest.raises(parsers.ParserUnsupportedError, match="no built-in model yet"):
            parsers.build(name, AssumedVocabulary(), {})
