"""Model sources: whole folders, odd folders, lone files, fixtures, and what is refused."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from reasonctl.errors import InputError
from reasonctl.fixtures import model_path
from reasonctl.prompts import hub
from reasonctl.prompts import typed as typed_room
from reasonctl.prompts.model import Model, Unreadable, load_model
from reasonctl.prompts.survey import special_tokens


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped Qwen3-like model."""
    return Path(shutil.copytree(model_path("qwen3"), tmp_path / "model"))


def edit(path: Path, **values: Any) -> None:
    data = json.loads(path.read_text())
    data.update(values)
    path.write_text(json.dumps(data))


def test_a_whole_folder(folder: Path) -> None:
    model = load_model(str(folder))
    assert (model.kind, model.source, model.model_type) == ("folder", str(folder), "qwen3")
    assert model.template is not None
    assert (model.template.origin, model.template.path) == ("chat_template.jinja", folder / "chat_template.jinja")
    assert model.tokenizer is not None
    assert model.tokenizer_problem is None
    assert model.tokenizer.encode("</think>") == [model.tokenizer.vocab["</think>"]]
    assert model.tokenizer.decode(model.tokenizer.encode("a </think> b")) == "a </think> b"
    assert model.special_tokens["eos_token"] == "<|im_end|>"
    assert model.tokenizer.special_tokens["<|im_end|>"] in model.eos_ids


def test_the_template_file_beats_the_one_in_the_configuration(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", chat_template="inline")
    model = load_model(str(folder))
    assert [(t.origin, t.text == "inline") for t in model.templates] == [
        ("chat_template.jinja", False),
        ("tokenizer_config.json", True),
    ]
    assert model.template is model.templates[0]
    (folder / "chat_template.jinja").unlink()
    alone = load_model(str(folder))
    assert alone.template is not None
    assert alone.template.text == "inline"


def test_named_templates_in_a_list_and_in_files(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    listed = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]
    edit(folder / "tokenizer_config.json", chat_template=listed)
    model = load_model(str(folder))
    for tools, text in ((False, "plain"), (True, "tools")):
        template = model.template_for(tools=tools)
        assert template is not None
        assert template.text == text
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "rag.jinja").write_text("documents")
    # Files replace the whole of the configuration's templates, and none of them is the default one.
    assert load_model(str(folder)).template is None
    (folder / "chat_template.jinja").write_text("file")
    both = load_model(str(folder))
    assert both.template is not None
    assert (both.template.text, [t.name for t in both.templates]) == ("file", ["default", "rag", "default", "tool_use"])


def test_a_folder_without_a_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    model = load_model(str(folder))
    assert model.template is None
    assert model.tokenizer is not None


def test_a_folder_without_a_tokenizer_is_not_guessed_around(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    model = load_model(str(folder))
    assert model.tokenizer is None
    assert model.tokenizer_problem == (
        "the folder has no tokenizer.json and no other vocabulary file"
        " (transformers would make up a toy vocabulary in silence)"
    )
    assert model.template is not None


def test_a_toy_vocabulary_is_said_to_be_one(folder: Path) -> None:
    edit(folder / "config.json", vocab_size=151936)
    model = load_model(str(folder))
    assert model.tokenizer is None
    assert model.tokenizer_problem is not None
    assert "a toy vocabulary" in model.tokenizer_problem
    assert "151936" in model.tokenizer_problem


def test_flags_and_tokens_that_only_the_configuration_has(folder: Path) -> None:
    before = load_model(str(folder)).tokenizer
    assert before is not None
    think = before.vocab["<think>"]
    assert think not in before.special_ids
    entry = {"content": "<think>", "special": True, "normalized": False}
    edit(
        folder / "tokenizer_config.json",
        added_tokens_decoder={str(think): entry},
        extra_special_tokens=["<|extra|>"],
        image_token="<|image|>",
    )
    model = load_model(str(folder))
    after = model.tokenizer
    assert after is not None
    assert think in after.special_ids
    assert len(after.encode("<|extra|><|image|>")) == 2
    assert list(after.special_tokens)[-2:] == ["<|image|>", "<|extra|>"]
    assert model.special_tokens["image_token"] == "<|image|>"
    assert "<|extra|>" not in before.vocab


def test_a_named_special_token_is_special_whatever_the_files_flag(folder: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    (entry,) = [token for token in data["added_tokens"] if token["content"] == "<|im_end|>"]
    entry["special"] = False
    (folder / "tokenizer.json").write_text(json.dumps(data))
    edit(folder / "tokenizer_config.json", added_tokens_decoder=None)
    tokenizer = load_model(str(folder)).tokenizer
    assert tokenizer is not None
    assert entry["id"] in tokenizer.special_ids
    assert tokenizer.decode([entry["id"]], skip_special_tokens=True) == ""


def test_the_eos_ids_of_generation_config_and_config(folder: Path) -> None:
    own = load_model(str(folder))
    assert own.tokenizer is not None
    eos = own.tokenizer.vocab["<|im_end|>"]
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 6]}')
    edit(folder / "config.json", eos_token_id=7)
    assert load_model(str(folder)).eos_ids == {5, 6, eos}
    (folder / "generation_config.json").unlink()
    assert load_model(str(folder)).eos_ids == {7, eos}


def test_a_broken_file_beside_the_model_is_noted_and_the_rest_is_read(folder: Path) -> None:
    (folder / "generation_config.json").write_text("{\n x")
    model = load_model(str(folder))
    reason = "not JSON: Expecting property name enclosed in double quotes"
    assert model.unreadable == (Unreadable("generation_config.json", reason, line=2, column=2),)
    assert model.template is not None


def noted(folder: Path) -> list[tuple[str, str | None]]:
    return [(part.file, part.key) for part in load_model(str(folder)).unreadable]


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config.json", {"model_type": 5, "architectures": "Qwen3ForCausalLM"}),
        ("config.json", {"model_type": ["a"], "architectures": [None, 3, {"a": 1}]}),
        ("config.json", {"vocab_size": "x", "eos_token_id": [True], "text_config": []}),
        ("generation_config.json", {"eos_token_id": {"a": 1}, "skip_special_tokens": "no"}),
        ("tokenizer_config.json", {"chat_template": [{"name": "default"}], "added_tokens_decoder": {"x": 5}}),
        ("tokenizer_config.json", {"additional_special_tokens": 5, "eos_token": 7, "tokenizer_class": []}),
        ("special_tokens_map.json", {"bos_token": [1], "pad_token": {"content": None}}),
    ],
)
def test_a_value_of_a_wrong_type_is_said_and_counts_as_not_there(
    folder: Path, file: str, values: dict[str, Any]
) -> None:
    if not (folder / file).exists():
        (folder / file).write_text("{}")
    edit(folder / file, **values)
    assert sorted(noted(folder), key=str) == sorted(((file, key) for key in values), key=str)


def test_values_under_text_config_are_typed_too(folder: Path) -> None:
    config = {"text_config": {"vocab_size": 1.5, "eos_token_id": 3}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").unlink()
    assert noted(folder) == [("config.json", "text_config.vocab_size")]
    assert 3 in load_model(str(folder)).eos_ids


ANYTHING = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=3),
    lambda inner: strategies.lists(inner, max_size=2) | strategies.dictionaries(strategies.text(max_size=3), inner),
    max_leaves=4,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=strategies.data())
def test_no_value_of_any_type_brings_the_reader_down(folder: Path, data: strategies.DataObject) -> None:
    for file, types in typed_room.TYPES.items():
        values = {key: data.draw(ANYTHING) for key in types}
        (folder / file).write_text(json.dumps(values))
    model = load_model(str(folder))
    assert isinstance(model.model_type, str | None)
    assert all(isinstance(name, str) for name in model.architectures)
    assert all(type(one) is int for one in model.eos_ids)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{{"a": {"1" * 10000}}}', "holds an integer of thousands of digits"),
        ("[" * 100_000, "nested too deeply"),
        (r'{"a": "\ud800"}', r"holds half a character (a lone surrogate such as \ud800)"),
        ("", "is empty where JSON is expected"),
        ("[1]", "holds a list where a JSON object is expected"),
        ("null", "holds null where a JSON object is expected"),
    ],
)
def test_json_without_a_use_is_noted_in_one_file_and_refused_in_another(folder: Path, text: str, reason: str) -> None:
    (folder / "config.json").write_text(text)
    assert [(part.file, part.reason) for part in load_model(str(folder)).unreadable] == [("config.json", reason)]
    (folder / "tokenizer_config.json").write_text(text)
    with pytest.raises(InputError, match=r"tokenizer_config\.json") as caught:
        load_model(str(folder))
    assert caught.value.message == reason
    assert caught.value.mend


@pytest.mark.parametrize("file", ["chat_template.jinja", "config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("kind", ["nothing behind a link", "links in a circle", "a folder", "a pipe"])
def test_what_bears_a_files_name_and_is_none_is_said(folder: Path, file: str, kind: str) -> None:
    path = folder / file
    path.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name if kind == "links in a circle" else "blob")
    model = load_model(str(folder))
    (part,) = model.unreadable
    said = {"nothing behind a link": "which is not there", "links in a circle": "symbolic links"}.get(kind, kind)
    assert part.file == file
    assert said in part.reason
    assert (model.template is None, model.tokenizer is None) == (
        file == "chat_template.jinja",
        file == "tokenizer.json",
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("chat_template.jinja", b"ok \xff", "chat_template.jinja: byte 3 is not UTF-8"),
        ("tokenizer_config.json", b"{\n 1}", "tokenizer_config.json:2:2: not JSON"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json: holds a list where a JSON object is expected"),
        ("tokenizer.json", b"{}", "tokenizer.json: cannot be read as a tokenizer"),
    ],
)
def test_what_the_model_needs_and_cannot_be_read_is_refused(
    folder: Path, file: str, content: bytes, message: str
) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_model(str(folder))
    assert f"{folder}/{message}" in str(caught.value)


@pytest.mark.parametrize(
    ("config", "files", "reason"),
    [
        ({"architectures": ["DeepseekV32ForCausalLM"]}, (), "DeepSeek-V3.2"),
        ({"architectures": [], "model_type": "deepseek_v4"}, (), "DeepSeek-V4"),
        ({}, ("tekken.json", "params.json"), "mistral-common"),
    ],
)
def test_prompts_that_code_builds(folder: Path, config: dict[str, Any], files: tuple[str, ...], reason: str) -> None:
    edit(folder / "config.json", **config)
    for name in files:
        (folder / name).write_text("{}")
    model = load_model(str(folder))
    assert model.code_prompt is not None
    assert reason in model.code_prompt


def test_a_template_beside_tekken_counts_where_mistrals_own_format_is_missing(folder: Path) -> None:
    (folder / "tekken.json").write_text("{}")
    assert load_model(str(folder)).code_prompt is None
    (folder / "chat_template.jinja").unlink()
    assert load_model(str(folder)).code_prompt is not None


def test_harmony_without_a_template_is_built_by_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(folder / "config.json", model_type="gpt_oss")
    assert load_model(str(folder)).code_prompt is None
    (folder / "chat_template.jinja").unlink()
    monkeypatch.setitem(sys.modules, "openai_harmony", None)  # not installed
    said = load_model(str(folder)).code_prompt
    assert said is not None
    assert "reasonctl[harmony]" in said
    assert load_model("fixture:gpt-oss").code_prompt is None


def test_another_template_replaces_all_of_them(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("other")
    model = load_model(str(folder), chat_template=other)
    assert [t.text for t in model.templates] == ["other"]
    # A parser that looks at the tokenizer's template looks at the model's own (vLLM, glm parser).
    assert model.tokenizer is not None
    assert model.tokenizer.chat_template != "other"


def test_a_lone_tokenizer_config(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", chat_template="{{ eos_token }}")
    model = load_model(str(folder / "tokenizer_config.json"))
    assert (model.kind, model.tokenizer) == ("tokenizer_config", None)
    assert model.template is not None
    assert special_tokens(model)["eos_token"] == "<|im_end|>"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", None, "holds no model files"),
        ("weights.bin", "x", "is neither a chat template"),
        ("data.json", "{}", "is neither a chat template"),
        ("model.gguf", "GGUF", "its GGUF header cannot be read"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_model(str(path))


@pytest.mark.parametrize(
    "spec",
    [
        *("nowhere", "a/b/c", "./missing", "../up", "/missing", "~/missing", "~nobody-here/x", ".", "x" * 5000),
        *("bad/nosuch.json", "bad/template.jinja", "bad/model.GGUF", "here/model", "here/model@main", "a/b.j2@v1"),
    ],
)
def test_what_is_nowhere_is_refused_and_never_asked_for_on_the_network(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(spec: str) -> None:
        raise AssertionError(spec)

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "read_hub", never)
    said = "holds no model files" if spec == "." else "no such file or folder"
    with pytest.raises(InputError, match=said) as caught:
        load_model(spec)
    assert caught.value.mend


@pytest.mark.parametrize("spec", ["owner/name", "owner/name.v1", "owner/name@refs/pr/1"])
def test_a_hub_id_is_one(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "read_hub", lambda spec: Model(source=spec, kind="hub", path=None))
    assert load_model(spec).source == spec


def test_an_unknown_fixture_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"fixture:nope: .*qwen3"):
        load_model("fixture:nope")


def test_the_load_check_agrees_with_the_shipped_tokenizer(folder: Path) -> None:
    tokenizer = load_model(str(folder)).tokenizer
    assert tokenizer is not None
    check = tokenizer.check()
    assert (check.ok, check.ids_differ, check.text_lost) == (True, None, None)
    assert check.loader.startswith("transformers 5.")
    assert check.special_tokens == load_model(str(folder)).special_tokens


@pytest.mark.parametrize("python", ["/bin/true", "/bin/false"])
def test_a_python_that_gives_no_answer(folder: Path, python: str) -> None:
    tokenizer = load_model(str(folder)).tokenizer
    assert tokenizer is not None
    error = tokenizer.check(python).error
    assert error is not None
    assert error.endswith("and no answer")


def test_a_load_check_ends_with_the_process_that_started_it(folder: Path) -> None:
    script = (
        "import os, sys\n"
        "from reasonctl.prompts.model import load_model\n"
        "tokenizer = load_model(sys.argv[1]).tokenizer\n"
        "tokenizer.start_check(sys.argv[2])\n"
        "print(tokenizer._checks[sys.argv[2]]._process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    # A Python whose transformers never comes to an end.
    stuck = folder / "python"
    (folder / "transformers.py").write_text("while True: pass\n")
    stuck.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    stuck.chmod(0o755)
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(stuck)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    handle = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    ended, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    assert ended


def test_the_load_check_says_why_there_is_nothing_to_compare(folder: Path) -> None:
    tokenizer = load_model(str(folder)).tokenizer
    assert tokenizer is not None
    shutil.rmtree(folder)
    check = tokenizer.check()
    assert not check.ok
    assert check.error
