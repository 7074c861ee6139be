"""Prompts that a running vLLM makes: over a tiny fake one behind the real bridge, and over answers made up here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.audit_json import facts_json
from reasonctl.checks.coverage import coverage
from reasonctl.fixtures import ROOT
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.process import BridgeError, HungError, LostError
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.engines import BuiltinEngine
from reasonctl.parsers.target import Target
from reasonctl.prompts.asked import Served, VllmPrompts, vllm_prompts
from reasonctl.prompts.bridged import BridgedPrompts, evaluated
from reasonctl.prompts.difference import Difference
from reasonctl.prompts.kwargs import effective_kwargs
from reasonctl.prompts.messages import as_handed_over
from reasonctl.prompts.model import Model, Template, load_model
from reasonctl.prompts.render import Rendered, Renderer, RenderError, RenderRequest
from reasonctl.prompts.rendering import renderers
from reasonctl.prompts.survey import survey
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.trace import Trace

from ..parsers.fake_server import fake_server

QWEN3 = ROOT / "models" / "qwen3"
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake_server(tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="module")
def bridge(fake: str) -> Iterator[Bridge]:
    with Bridge(parse_engine(fake), seconds=2.0) as opened:
        yield opened


def words(*texts: str) -> list[dict[str, Any]]:
    return [{"messages": [{"role": "user", "content": text}]} for text in texts]


def test_a_server_makes_the_prompt_of_each_body(bridge: Bridge) -> None:
    served = Served({"thinking": True}, content_format="openai", tokenizer_mode="slow")
    asked = VllmPrompts(bridge, load_model("fixture:qwen3"), served)
    bodies = [*words("one", "|ids|"), {**words("two")[0], "chat_template_kwargs": {"a": 1}}]
    one, ids, two = asked.answers(bodies)
    assert (asked.by, asked.problem, asked.mode) == ("vLLM 0.33.0", None, "slow")
    assert one == {"text": "slow openai {'thinking': True} None one", "ids": one["ids"], "shown": None}
    assert "".join(map(chr, one["ids"])) == one["text"]
    assert (ids["text"], ids["shown"]) == (None, "slow openai {'thinking': True} None |ids|")
    assert two["text"].endswith("{'a': 1} two")


@pytest.mark.parametrize("newest", [True, False])
def test_what_goes_wrong_is_told_as_the_client_would_hear_it(tmp_path: Path, *, newest: bool) -> None:
    with Bridge(parse_engine(fake_server(tmp_path, newest=newest)), seconds=5.0) as bridge:
        answers = VllmPrompts(bridge, load_model("fixture:qwen3")).answers(
            words("|refuse|", "|template|", "|break|", "|server|", "fine")
        )
    errors = [answer.get("error") for answer in answers]
    assert errors[0] == {"class": "BadRequestError", "message": "not that", "status": 400, "line": None}
    shown = [(e["class"], e["below"], e["message"], e["status"], e["line"]) for e in errors[1:4] if e is not None]
    assert shown == [
        ("ValueError", "TemplateError", "no such role", 400, None),
        ("ValueError", "ZeroDivisionError", "division by zero", 400, 3),
        ("KeyError", None, "'x'", 500, None),
    ]
    assert errors[4] is None


@pytest.mark.parametrize(("word", "kind"), [("|exit|", "crashed"), ("|hang|", "timeout")])
def test_a_crash_and_a_hang_cost_their_own_prompt(bridge: Bridge, word: str, kind: str) -> None:
    asked = VllmPrompts(bridge, load_model("fixture:qwen3"))
    first, bad, last, again = asked.answers(words("one", word, "two", word))
    assert [first["text"], last["text"]] == ["auto auto {} None one", "auto auto {} None two"]
    assert bad["lost"].kind == kind
    assert bad["lost"].message.startswith("vLLM 0.33.0: ")
    # Nobody waits for the same messages twice.
    assert again["lost"].kind == "unseen"
    assert asked.answers(words("three"))[0]["text"] == "auto auto {} None three"


def test_a_vllm_that_is_too_old_to_render_says_so(tmp_path: Path) -> None:
    value = fake_server(tmp_path)
    shutil.rmtree(tmp_path / "vllm" / "renderers" / "online_renderer")
    with Bridge(parse_engine(value), seconds=5.0) as bridge:
        asked = VllmPrompts(bridge, load_model("fixture:qwen3"))
        (answer,) = asked.answers(words("one"))
    assert asked.problem is not None
    assert "(TooOldError: this vLLM is too old: 0.18 is the oldest" in asked.problem
    assert answer["lost"].kind == "crashed"


def test_an_architecture_gets_the_tokenizer_mode_that_this_vllm_has_for_it(bridge: Bridge, tmp_path: Path) -> None:
    modes = []
    for architecture in ("DeepseekV4ForCausalLM", "KimiK3ForConditionalGeneration"):
        folder = tmp_path / architecture
        shutil.copytree(QWEN3, folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}), encoding="utf-8")
        asked = VllmPrompts(bridge, load_model(str(folder)))
        assert asked.start() is None
        modes.append(asked.mode)
    assert modes == ["deepseek_v4", "auto"]


class Server:
    """Answers with what `make` makes of a body; what it raises is raised."""

    described: Mapping[str, str] = {"vllm_version": "0.33.0", "kind": "vllm", "python": "3"}
    seconds = 1.0

    def __init__(self, make: Callable[[Mapping[str, Any]], Any], mode: str = "auto") -> None:
        self.make, self.mode = make, mode
        self.asked: list[dict[str, Any]] = []
        self.built = 0

    def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        assert op == "render"
        self.asked.append(fields)
        if "files" in fields:
            self.built += 1
            return {"mode": self.mode, "harmony": False, "prompts": []}
        return {"prompts": [self.make(body) for body in fields["bodies"]]}


Make = Callable[[Mapping[str, Any]], Any]


@pytest.fixture(scope="module")
def same() -> Iterator[Make]:
    """A server that renders as we do."""
    model = load_model("fixture:qwen3")
    own = renderers(model)[False]

    def make(body: Mapping[str, Any]) -> Any:
        kwargs = effective_kwargs(
            request_kwargs=body.get("chat_template_kwargs"), reasoning_effort=body.get("reasoning_effort")
        )
        flags = (body.get("add_generation_prompt", True), body.get("continue_final_message", False))
        messages = as_handed_over(body["messages"])
        result = own.render(RenderRequest(messages, body.get("tools"), kwargs, *flags))
        assert result.text is not None, result.error
        assert model.tokenizer is not None
        return {"text": result.text, "ids": model.tokenizer.encode(result.text), "shown": None}

    yield make
    own.close()


def differing(made: Any, body: Mapping[str, Any] | None = None) -> Rendered:
    """What comes of a plain question where the server answers `made`."""
    model = load_model("fixture:qwen3")
    found = renderers(model, vllm=VllmPrompts(Server(lambda _: made), model))
    try:
        request = RenderRequest(HI, kwargs=found[False].reaching({}, effort=None, own=None), sent=body)
        return found[False].render(request)
    finally:
        found[False].close()


PLAIN = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_the_prompt_is_the_servers_and_the_first_difference_is_told() -> None:
    tokenizer = load_model("fixture:qwen3").tokenizer
    assert tokenizer is not None
    ids = tokenizer.encode(PLAIN)
    assert differing({"text": PLAIN, "ids": ids, "shown": None}) == Rendered(PLAIN, token_ids=tuple(ids))
    other = PLAIN.replace("hi", "ho")
    text = differing({"text": other, "ids": tokenizer.encode(other), "shown": None})
    assert (text.text, text.token_ids) == (other, tuple(tokenizer.encode(other)))
    assert text.differs == Difference("text", 18, PLAIN[6:58], other[6:58])
    cut = differing({"text": PLAIN, "ids": [*ids[:2], 0, *ids[2:]], "shown": None}).differs
    assert cut is not None
    assert (cut.what, cut.at, cut.theirs.split()[0]) == ("ids", 2, "0")
    error = {"class": "ValueError", "message": "no", "status": 400, "below": "TemplateError", "line": 3}
    refused = differing({"error": error})
    assert refused.error == RenderError("raised", "no", 3, by_template=True)
    assert refused.differs == Difference("refusal", 0, "a prompt", "error: no")
    broken = differing({"error": {**error, "below": "TypeError"}})
    assert broken.error == RenderError("raised", "TypeError: no", 3)
    assert text.differs.said == f"character 18: {json.dumps(other[6:58])} there, {json.dumps(PLAIN[6:58])} here"


def test_what_holds_an_image_is_not_asked(same: Make) -> None:
    model = load_model("fixture:qwen3")
    server = Server(same)
    found = renderers(model, vllm=VllmPrompts(server, model))[False]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    asked = found.reaching({}, effort=None, own=None)
    plain, shown = found.render_all(
        [RenderRequest(HI, kwargs=asked), RenderRequest([{"role": "user", "content": [image]}], kwargs=asked)]
    )
    found.close()
    assert plain.text == PLAIN
    assert [len(each["bodies"]) for each in server.asked] == [0, 1]
    assert (shown.token_ids, shown.differs) == (None, None)


def test_a_client_s_own_words_reach_the_server(same: Make) -> None:
    model = load_model("fixture:qwen3")
    server = Server(same)
    found = renderers(model, vllm=VllmPrompts(server, model))[False]
    own = {"enable_thinking": True, "x": None}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    messages = [
        *HI,
        {"role": "assistant", "content": [], "reasoning": "r", "reasoning_content": "r", "tool_calls": [call]},
        {"role": "assistant", "content": "c", "reasoning_content": "only"},
    ]
    asked = found.reaching({"enable_thinking": True, "reasoning_effort": "low"}, effort="low", own=own)
    sent = {"messages": HI, "tool_choice": "none", "max_tokens": 5, "add_generation_prompt": True}
    found.render_all(
        [
            RenderRequest(messages, kwargs=asked, sent={**sent, "continue_final_message": False}),
            RenderRequest(messages, kwargs=asked, add_generation_prompt=False),
        ]
    )
    found.close()
    whole, made = server.asked[-1]["bodies"]
    kwargs = {"chat_template_kwargs": own, "reasoning_effort": "low"}
    assert whole == {
        "messages": HI,
        "tool_choice": "none",
        "add_generation_prompt": True,
        "continue_final_message": False,
        **kwargs,
    }
    called = {**call, "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert made == {
        "messages": [
            *HI,
            {"role": "assistant", "reasoning": "r", "tool_calls": [called]},
            {"role": "assistant", "content": "c", "reasoning_content": "only"},
        ],
        "add_generation_prompt": False,
        "continue_final_message": False,
        **kwargs,
    }


def test_another_process_is_told_the_model_again() -> None:
    model = load_model("fixture:qwen3")

    class Forgetful(Server):
        def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
            answer = super().ask(op, seconds=seconds, **fields)
            return {"unknown": True} if "files" not in fields and self.built < 2 else answer

    server = Forgetful(lambda body: {"text": "x", "ids": [], "shown": None})
    assert VllmPrompts(server, model).answers(words("a", "b"))[1]["text"] == "x"
    assert server.built == 2


@pytest.mark.parametrize("error", [LostError("gone"), HungError(1.0), BridgeError("not up")])
def test_a_server_that_is_always_lost_is_not_asked_for_ever(error: Exception) -> None:
    def lose(_: Mapping[str, Any]) -> Any:
        raise error

    server = Server(lose)
    asked = VllmPrompts(server, load_model("fixture:qwen3"))
    kinds = [answer["lost"].kind for answer in asked.answers(words(*"abcde"))]
    kind = "timeout" if isinstance(error, HungError) else "crashed"
    assert kinds == [kind, kind, kind, "unseen", "unseen"]
    assert len(server.asked) == 1 + 1 + 3  # the model, all at once, then one by one


@pytest.mark.parametrize(
    ("name", "message", "mend"),
    [
        ("OSError", "no tokenizer", ""),
        ("ModuleNotFoundError", "No module named 'gguf.constants'", "; install gguf there"),
    ],
)
def test_a_server_that_cannot_take_the_model_leaves_it_to_us(same: Make, name: str, message: str, mend: str) -> None:
    model = load_model("fixture:qwen3")

    class Unable(Server):
        def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
            return {"problem": {"class": name, "message": message}}

    asked = VllmPrompts(Unable(same), model)
    found = survey(model, vllm=asked)
    why = f"vLLM 0.33.0 cannot render this model ({name}: {message}){mend}"
    assert (found.made_by, found.not_made) == (None, why)
    assert [state.prompt for state in found.states] == [state.prompt for state in survey(model).states]
    coded = replace(model, code_prompt="vLLM renders it with its own encoder", template=None)
    assert evaluated(coded, asked).code_prompt == f"vLLM renders it with its own encoder; {why}"
    assert evaluated(coded, None) is coded


@pytest.mark.parametrize(
    ("kind", "said"),
    [("gguf", "vLLM is asked about model folders, not about a GGUF file"), ("template", "vLLM renders no template")],
)
def test_what_no_vllm_can_be_asked(kind: Any, said: str) -> None:
    server = Server(lambda _: {})
    asked = VllmPrompts(server, Model("m", kind, Path("m.gguf")))
    assert (asked.start() or "").startswith(said)
    assert server.asked == []


def test_the_server_is_started_as_the_command_says(tmp_path: Path) -> None:
    class Command:
        def text(self, flag: str) -> str | None:
            return {"chat-template-content-format": "string", "tokenizer-mode": "auto"}.get(flag)

        def on(self, flag: str) -> bool:
            return flag == "exclude-tools-when-tool-choice-none"

    shutil.copytree(QWEN3, tmp_path / "m")
    (tmp_path / "m" / "tekken.json").write_text("{}", encoding="utf-8")
    (tmp_path / "m" / "preprocessor_config.json").write_text("{}", encoding="utf-8")
    model = load_model(str(tmp_path / "m"))
    given = Template("{{ x }}", origin="other.jinja", path=tmp_path / "other.jinja")
    servers = []
    for each in (model, replace(model, template=given, templates=(given,))):
        server = Server(lambda _: {})
        VllmPrompts(server, each, Served({"a": 1}, {"low": "high"}).with_flags(Command())).start()
        assert "preprocessor_config.json" in server.asked[0]["files"]
        servers.append(server.asked[0]["server"])
    common = {"content_format": "string", "default_kwargs": {"a": 1}, "effort_map": {"low": "high"}}
    assert servers == [
        {"chat_template": text, "tokenizer_mode": None, "exclude_tools": True, **common} for text in (None, "{{ x }}")
    ]
    (tmp_path / "m" / "params.json").write_text("{}", encoding="utf-8")
    server = Server(lambda _: {})
    VllmPrompts(server, model).start()
    assert server.asked[0]["server"]["tokenizer_mode"] == "mistral"


class Engine(BuiltinEngine):
    """The built-in parsers, and prompts of a server."""

    def __init__(self, server: Server) -> None:
        super().__init__(Target())
        self.server = server
        self.seconds = server.seconds
        self.described = {**server.described}

    def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        return self.server.ask(op, seconds=seconds, **fields)


def by_code(body: Mapping[str, Any]) -> Any:
    """Prompt code that thinks unless it is told not to, and refuses tools."""
    kwargs = body.get("chat_template_kwargs", {})
    if body.get("tools"):
        return {"error": {"class": "AssertionError", "message": "tools", "status": 500, "below": None, "line": None}}
    if kwargs.get("thinking") == "maybe":
        return {"error": {"class": "ValueError", "message": "maybe", "status": 400, "below": None, "line": None}}
    mark = "" if kwargs.get("enable_thinking") is False else "<think>"
    text = "".join(f"<|im_start|>{m['content']}<|im_end|>" for m in body["messages"]) + mark
    tokenizer = load_model("fixture:qwen3").tokenizer
    assert tokenizer is not None
    return {"text": None, "ids": tokenizer.encode(text), "shown": text}


def test_a_model_built_by_code_is_evaluated_where_a_vllm_builds_it() -> None:
    model = replace(load_model("fixture:qwen3"), code_prompt="vLLM renders it by code", template=None, templates=())
    assert survey(model).states == ()
    facts = audit(model, source="m", parser="qwen3", target=Target(), engine=Engine(Server(by_code, "deepseek_v4")))
    rendered = facts.survey
    assert rendered is not None
    assert rendered.made_by == "vLLM 0.33.0"
    assert rendered.reads == {"thinking", "enable_thinking", "reasoning_effort", "drop_thinking"}
    states = {
        (state.conversation, state.variant.get("enable_thinking")): state
        for state in rendered.states
        if not state.variant.keys() - {"enable_thinking"}
    }
    plain, off = states["single_turn", None], states["single_turn", False]
    assert (plain.state, plain.tokens_after_open, off.state) == ("open", 0, "none")
    assert plain.token_ids is not None
    tools = states["tools", None]
    assert (tools.state, tools.error, tools.refused_by_template) == ("error", "AssertionError: tools", False)
    # The user's own marker is whole tokens here, as the server cut it.
    assert states["user_start_marker", False].state == "none"
    rows = {row.surface: (row.status, row.reason) for row in coverage(facts)}
    assert rows["prompt"] == ("examined", None)
    assert rows["template"] == ("absent", "no template has a say: vLLM 0.33.0 builds the prompts")
    assert facts.judged is not None
    assert facts.judged.trials


def test_differences_are_a_note_and_coverage(same: Make) -> None:
    model = load_model("fixture:qwen3")

    def make(body: Mapping[str, Any]) -> Any:
        made = same(body)
        if body["messages"][0]["role"] == "system":
            made["text"] = made["text"].replace("briefly", "quickly")
        return made

    facts = audit(model, source="m", parser="qwen3", target=Target(), engine=Engine(Server(make)))
    assert facts.survey is not None
    count = sum(state.conversation == "system" for state in facts.survey.states)
    (row,) = [row for row in coverage(facts) if row.surface == "prompt"]
    assert row.status == "partial"
    said = f"{count} of {len(facts.survey.states)} prompts of vLLM 0.33.0 differ from ours; first system, character 26"
    assert row.reason is not None
    assert row.reason.startswith(said)
    shown = facts_json(facts)["model"]
    assert row.reason in shown["notes"]
    assert (shown["prompts"]["made_by"], shown["prompts"]["differing"]) == ("vLLM 0.33.0", count)
    assert (shown["prompts"]["shown"][0]["what"], shown["prompts"]["shown"][0]["at"]) == ("text", 26)
    assert "prompts" not in facts_json(audit(model, source="m", parser="qwen3", target=Target()))["model"]


def test_lost_prompts_are_one_finding(same: Make) -> None:
    model = load_model("fixture:qwen3")

    def make(body: Mapping[str, Any]) -> Any:
        if "mean?" in str(body["messages"][-1]["content"]):
            raise HungError(1.0)
        return same(body)

    facts = audit(model, source="m", parser="qwen3", target=Target(), engine=Engine(Server(make)))
    lost = [finding for finding in findings(facts) if finding.rule == "INT904"]
    assert [finding.message for finding in lost] == [
        "vLLM 0.33.0: no answer within 1 s, over the prompt of user_start_marker, and of 1 more"
    ]


def test_a_capture_gets_the_prompt_and_the_ids_of_the_server() -> None:
    model = load_model("fixture:qwen3")

    def make(body: Mapping[str, Any]) -> Any:
        return {"text": f"<think>{body['chat_template_kwargs']}", "ids": [1, 2, 3], "shown": None}

    server = Server(make)
    trace = Trace(path="t", line=1, id="t", request={"messages": HI}, output_text="x", source="trace")
    setting = Setting(model="fixture:qwen3", kwargs={"enable_thinking": True}, default_kwargs={"a": 1})
    with Context(setting) as context:
        context.made_by(BuiltinEngine(Target()))
        assert context.prepare(trace).prompt == PLAIN
        context.made_by(Engine(server))
        prepared = context.prepare(trace)
    assert prepared.prompt == "<think>{'enable_thinking': True}"
    assert prepared.made_of["prompt_ids"] == [1, 2, 3]
    assert prepared.notes == (
        "the prompt that vLLM 0.33.0 makes differs from ours: character 1: \"<think>{'enable_thinking': True}\" there,"
        f" {json.dumps(PLAIN[:41])} here",
    )
    assert server.asked[0]["server"]["default_kwargs"] == {"a": 1}
    assert model.tokenizer is not None


def test_an_engine_without_prompts_is_not_asked(same: Make) -> None:
    model = load_model("fixture:qwen3")
    assert vllm_prompts(BuiltinEngine(Target()), model) is None
    (found,) = {*renderers(model).values()}
    assert isinstance(found, Renderer)
    found.close()
    asked = vllm_prompts(Server(same), model)
    made = renderers(model, vllm=asked)
    assert made[False] is made[True]
    assert isinstance(made[False], BridgedPrompts)
    made[False].close()


def reasonctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reasonctl", *arguments], capture_output=True, text=True, check=False, encoding="utf-8"
    )


def test_render_prints_the_servers_prompt_and_where_ours_differs(fake: str, tmp_path: Path) -> None:
    body = tmp_path / "b.json"
    body.write_text(json.dumps({"messages": HI, "chat_template_kwargs": {"x": 1}, "continue_final_message": False}))
    done = reasonctl("render", "--model", "fixture:qwen3", "--messages", str(body), "--vllm", fake)
    assert (done.returncode, done.stdout) == (0, "auto auto {} {'x': 1} hi")
    state, made = done.stderr.splitlines()
    assert state.startswith("state none; ")
    theirs = json.dumps("auto auto {} {'x': 1} hi")
    assert made == f"made by vLLM 0.33.0; ours differs: character 0: {theirs} there, {json.dumps(PLAIN[:40])} here"
    body.write_text(json.dumps({"messages": [{"role": "user", "content": "|template|"}]}))
    done = reasonctl("render", "--model", "fixture:qwen3", "--messages", str(body), "--vllm", fake)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gives no prompt for these messages: no such role" in done.stderr
    lone = ROOT / "models" / "qwen3" / "chat_template.jinja"
    done = reasonctl("render", "--model", str(lone), "--vllm", fake)
    assert done.stdout.endswith("<|im_start|>assistant\n")
    assert done.stderr.endswith("vLLM renders no template without a tokenizer beside it; this is our own prompt\n")


def test_every_worker_of_a_replay_takes_the_servers_prompts(fake: str, tmp_path: Path) -> None:
    traces = tmp_path / "t.jsonl"
    rows = [{"id": str(n), "request": {"messages": HI}, "output": {"text": "a</think>b"}} for n in range(3)]
    traces.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for jobs in ("1", "2"):
        done = reasonctl(
            *("replay", str(traces), "--model", "fixture:qwen3", "--parser", "qwen3", "--vllm", fake),
            *("--jobs", jobs, "--format", "json", "--exit-zero"),
        )
        assert done.returncode == 0, done.stderr
        reasons = [row["reason"] or "" for row in json.loads(done.stdout)["coverage"]]
        assert [reason for reason in reasons if "the prompt that vLLM 0.33.0 makes differs from ours" in reason]
