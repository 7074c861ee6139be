"""Lab models: their folders are complete and say what their script says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reasonctl.engine.lab import build_lab
from reasonctl.engine.lab_families import ANSWER, FAMILIES, LabFamily, family, spoken
from reasonctl.engine.lab_tokens import build_tokenizer, vocabulary
from reasonctl.errors import InputError
from reasonctl.parsers import ROWS
from reasonctl.prompts.model import Model, load_model
from reasonctl.prompts.render import RenderRequest
from reasonctl.prompts.rendering import renderers
from reasonctl.prompts.state import prompt_state

Run = Callable[..., tuple[int, str, str]]
NAMES = [each.name for each in FAMILIES]
USER = [{"role": "user", "content": "What is 2 + 2?"}]
STATES = {"open": "open", "closed": "closed", "silent": "none"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    root = tmp_path_factory.mktemp("lab")
    for name in NAMES:
        build_lab(root / name, name, thinking_tokens=5)
    return {name: root / name for name in NAMES}


def prompt(model: Model, **kwargs: object) -> str:
    opened = renderers(model)
    try:
        rendered = opened[False].render(RenderRequest(USER, kwargs=kwargs))
    finally:
        for each in opened.values():
            each.close()
    assert rendered.text is not None, rendered.error
    return rendered.text


def says(folder: Path, prompt_ids: list[int], limit: int) -> list[int]:
    """What the weights say, greedy: a transformer of one layer that adds nothing, from the last token on."""
    import numpy as np
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        assert not weights[f"model.layers.0.{name}.weight"].any()
    embedding, head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
    assert embedding.shape == head.shape == (config["vocab_size"], config["hidden_size"])
    out: list[int] = []
    while len(out) < limit and (not out or out[-1] != config["eos_token_id"]):
        row = embedding[(out or prompt_ids)[-1]].astype(np.float32)
        logits = head @ (row / np.sqrt((row**2).mean() + config["rms_norm_eps"]))
        best, next_best = np.sort(logits)[::-1][:2]
        # So far apart that sampling at temperature 1 would take another token once in 10**20.
        assert best - next_best > 50
        out.append(int(logits.argmax()))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_loads_as_a_model(folders: Mapping[str, Path], name: str) -> None:
    model = load_model(str(folders[name]))
    lab = family(name)
    assert model.tokenizer is not None
    assert not model.unreadable
    assert model.model_type == "qwen3"
    assert lab.parser is None or lab.parser in ROWS
    for marker in (lab.start, lab.end):
        assert len(model.tokenizer.encode("".join(marker))) == len(marker)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_in_the_state_asked_for(folders: Mapping[str, Path], name: str, state: str) -> None:
    text = prompt(load_model(str(folders[name])), prompt_state=state)
    after = text.index(USER[0]["content"]) + len(USER[0]["content"])
    assert prompt_state(text, after).state == STATES[state]


@pytest.mark.parametrize("name", NAMES)
def test_the_switch_and_the_default(folders: Mapping[str, Path], name: str) -> None:
    model, lab = load_model(str(folders[name])), family(name)
    asked = {state: prompt(model, prompt_state=state) for state in STATES}
    assert prompt(model, enable_thinking=True) == asked[lab.on]
    assert prompt(model, enable_thinking=False) == asked[lab.off]
    assert prompt(model) == asked[lab.on if lab.thinks_unasked else lab.off]


def told(name: str, text: str, state: str) -> tuple[str, str]:
    """(thought, answer) in what a lab model said, its own start marker taken off."""
    lab = family(name)
    start, end = "".join(lab.start), "".join(lab.end)
    if state == "closed":
        return "", text
    thought, _, answer = text.removeprefix(start).partition(end)
    return thought, answer


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted({*NAMES} - {"glm45", "minimax_m2", "seed_oss"}))
def test_a_block_and_an_answer_are_said_from_every_state(folders: Mapping[str, Path], name: str, state: str) -> None:
    model = load_model(str(folders[name]))
    assert model.tokenizer is not None
    ids = says(folders[name], model.tokenizer.encode(prompt(model, prompt_state=state)), 60)
    text = model.tokenizer.decode(ids[:-1], skip_special_tokens=False)
    answer = "".join(spoken((ANSWER,)))
    thought, rest = told(name, text, state)
    assert (state == "closed") == (" 1 2 3 4 5" not in thought)
    assert rest.strip() == answer.strip()


def test_a_tool_call_ends_the_block_of_glm45(folders: Mapping[str, Path]) -> None:
    model = load_model(str(folders["glm45"]))
    assert model.tokenizer is not None
    ids = says(folders["glm45"], model.tokenizer.encode(prompt(model)), 60)
    text = model.tokenizer.decode(ids, skip_special_tokens=False)
    assert text.startswith(" 1 2 3 4 5<tool_call>weather<arg_key>city")
    assert text.endswith("</tool_call><|observation|>")
    assert "</think>" not in text


def test_minimax_m2_thinks_again(folders: Mapping[str, Path]) -> None:
    model = load_model(str(folders["minimax_m2"]))
    assert model.tokenizer is not None
    ids = says(folders["minimax_m2"], model.tokenizer.encode(prompt(model)), 90)
    text = model.tokenizer.decode(ids[:-1], skip_special_tokens=False)
    first, _, rest = text.partition("</think>")
    answer, _, again = rest.partition("<think>")
    assert (first, answer) == (" 1 2 3 4 5", "".join(spoken((ANSWER,))))
    assert again.startswith(" Again: what did they ask<minimax:tool_call>")


def test_seed_oss_never_stops(folders: Mapping[str, Path]) -> None:
    model = load_model(str(folders["seed_oss"]))
    assert model.tokenizer is not None
    ids = says(folders["seed_oss"], model.tokenizer.encode(prompt(model)), 37)
    assert model.tokenizer.decode(ids) == " 1 2 3 4 5" * 7 + " 1 2"


@pytest.mark.parametrize("name", NAMES)
def test_other_text_is_bytes_and_comes_back(folders: Mapping[str, Path], name: str) -> None:
    model = load_model(str(folders[name]))
    assert model.tokenizer is not None
    text = "Grüße, 世界!  \n\n\tcafé 77777 <thi nk> assistant\n"
    assert model.tokenizer.decode(model.tokenizer.encode(text), skip_special_tokens=False) == text


def test_a_script_that_contradicts_itself_is_no_script() -> None:
    lab = family("qwen3")
    broken = LabFamily(**{**{f: getattr(lab, f) for f in lab.__dataclass_fields__}, "chains": (("a", "b"), ("a", "c"))})
    with pytest.raises(ValueError, match="'a' is followed by 'b' and by 'c'"):
        vocabulary(broken, 5)


def test_every_text_of_a_script_is_one_token() -> None:
    for lab in FAMILIES:
        words = vocabulary(lab, 40)
        tokenizer = build_tokenizer(lab, words)
        assert all(len(tokenizer.encode(text).ids) == 1 for text in (*words.follows, *words.follows.values()))


def test_building_twice_gives_the_same_bytes(folders: Mapping[str, Path], tmp_path: Path) -> None:
    build_lab(tmp_path, "qwen3", thinking_tokens=5)
    for file in sorted(tmp_path.iterdir()):
        assert file.read_bytes() == (folders["qwen3"] / file.name).read_bytes()


@pytest.mark.parametrize("tokens", [0, -1, 100_000])
def test_a_thought_no_vocabulary_holds_is_refused(tokens: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--thinking-tokens"):
        build_lab(tmp_path / "x", "qwen3", thinking_tokens=tokens)
    assert not (tmp_path / "x").exists()


def test_the_command_builds_and_says_how_to_serve(run: Run, tmp_path: Path) -> None:
    code, out, err = run("lab", "build", str(tmp_path / "m"), "--family", "mistral", "--thinking-tokens", "7")
    assert (code, err) == (0, "")
    assert f"vllm serve {tmp_path / 'm'} --reasoning-parser mistral" in out
    assert json.loads((tmp_path / "m" / "lab.json").read_text())["thinking_tokens"] == 7


def test_an_unknown_family_is_refused_with_the_nearest(run: Run, tmp_path: Path) -> None:
    code, _, err = run("lab", "build", str(tmp_path / "m"), "--family", "qwen")
    assert (code, err.count("\n")) == (2, 1)
    assert "write qwen3" in err
    code, _, err = run("lab", "build", str(tmp_path / "m"), "--family", "zzz")
    assert all(name in err for name in NAMES)


def test_a_folder_that_cannot_be_made_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("lab", "build", str(tmp_path / "file"), "--family", "qwen3")
    assert (code, err.count("\n")) == (2, 1)


def test_the_list_names_every_family(run: Run) -> None:
    code, out, _ = run("lab", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == NAMES


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_text("somebody's weights")
    with pytest.raises(InputError, match="holds files that are no lab model; name a new folder"):
        build_lab(tmp_path, "qwen3")
    assert weights.read_text() == "somebody's weights"
    build_lab(tmp_path / "new", "qwen3")
    build_lab(tmp_path / "new", "qwen3")
