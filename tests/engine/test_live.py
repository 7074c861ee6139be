"""`audit --endpoint`: prompts, tokens and answers of a server that runs already, with and without the model's files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.engine.endpoint import Endpoint
from reasonctl.engine.kinds import Server, identify
from reasonctl.engine.prompts import ServedPrompts
from reasonctl.errors import ReasonctlError
from reasonctl.prompts.model import load_model
from reasonctl.prompts.served import ServedTokenizer

from .fake_server import Asked, FakeServer, llama_cpp, models, plain, sglang, vllm
from .lab_server import LabServer, editing, proxy, renaming

Run = Callable[..., tuple[int, str, str]]
NOTHING: Callable[[dict[str, Any]], dict[str, Any]] = lambda value: value  # noqa: E731


class Served:
    """A lab model that is served, and its folder."""

    def __init__(self, folder: Path, server: FakeServer) -> None:
        self.folder = folder
        self.server = server
        self.url = server.url


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Served]]:
    """Serves a family, once for all tests that ask for it in the same way."""
    with ExitStack() as stack:
        known: dict[tuple[Any, ...], Served] = {}

        def serve(family: str = "qwen3", **how: Any) -> Served:
            key = (family, *sorted(how.items()))
            if key not in known:
                folder = tmp_path_factory.mktemp("lab") / family
                lab = LabServer(folder, family, **how)
                stack.callback(lab.close)
                known[key] = Served(folder, stack.enter_context(lab.serve()))
            return known[key]

        yield serve


def audit(run: Run, url: str, *more: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run("audit", "--endpoint", url, *more, "--quiet", "--format", "json", "--no-config")
    assert out, err
    return code, json.loads(out)


def surface(report: dict[str, Any], name: str) -> tuple[str, str | None]:
    (row,) = [row for row in report["coverage"] if row["surface"] == name]
    return row["status"], row["reason"]


def found(report: dict[str, Any], *severities: str) -> list[str]:
    return [f["rule"] for f in report["findings"] if f["severity"] in (severities or ("error", "warning"))]


def states(report: dict[str, Any]) -> dict[tuple[str, str], tuple[str, int | None]]:
    return {
        (row["conversation"], json.dumps(row["variant"])): (row["state"], row["tokens_after_open"])
        for row in report["facts"]["prompt_states"]
    }


@pytest.mark.parametrize("family", ["qwen3", "gemma4", "plamo3", "mistral", "deepseek_r1"])
def test_without_any_file_the_audit_says_what_it_says_of_the_files(
    run: Run, served: Callable[..., Served], family: str
) -> None:
    lab = served(family)
    parser = load_family(family)
    code, live = audit(run, lab.url, "--parser", parser)
    _, out, _ = run(
        "audit", str(lab.folder), "--parser", parser, "--target", "vllm==0.32.0", "--format", "json", "--no-config"
    )
    files = json.loads(out)
    shared = states(live).keys() & states(files).keys()
    assert len(shared) >= 24
    assert {key: states(live)[key] for key in shared} == {key: states(files)[key] for key in shared}
    assert live["facts"]["history"] == files["facts"]["history"]
    assert [m["ids"] for m in live["facts"]["model"]["markers"]] == [
        m["ids"] for m in files["facts"]["model"]["markers"]
    ]
    fits = {row["name"]: row["fit"] for row in files["facts"]["parser"]["candidates"]}
    assert {row["name"]: row["fit"] for row in live["facts"]["parser"]["candidates"]} == fits
    assert surface(live, "live server") == ("examined", None)
    assert "ENG508" not in found(live)
    assert code == int(bool(found(live, "error")))
    assert live["target"] == "vllm==0.32.0"


def load_family(name: str) -> str:
    from reasonctl.engine.lab_families import family

    parser = family(name).parser
    assert parser is not None
    return parser


def test_the_parser_is_found_by_its_answers(run: Run, served: Callable[..., Served]) -> None:
    code, report = audit(run, served().url)
    assert (code, report["verdict"], found(report)) == (0, "pass", [])
    live = report["facts"]["live"]
    assert live["explained_by"][0] == report["facts"]["parser"]["recommended"] == "qwen3"
    assert "deepseek_r1" not in live["explained_by"]  # it files the answer of a closed prompt as reasoning
    assert (live["parser_known"], live["inferred"], live["server"]) == (False, False, "vllm 0.32.0")
    assert [(a["conversation"], a["variant"], a["stream"]) for a in live["answers"]] == [
        ("single_turn", {}, False),
        ("single_turn", {}, True),
        ("single_turn", {"enable_thinking": False}, False),
        ("single_turn", {"enable_thinking": False}, True),
        ("multi_turn", {}, False),
        ("multi_turn", {}, True),
    ]
    status, reason = surface(report, "live server")
    assert status == "examined"
    assert reason is not None
    assert reason.startswith("which parser it runs is not told; qwen3, ")
    assert {(body["max_tokens"], body["return_token_ids"]) for body in served().server.chats} == {(512, True)}


def test_a_parser_that_does_not_suit_is_judged_by_what_it_sends(run: Run, served: Callable[..., Served]) -> None:
    code, report = audit(run, served(parser="deepseek_r1").url)
    parser = report["facts"]["parser"]
    assert (code, parser["configured"], parser["recommended"]) == (1, "deepseek_r1", "qwen3")
    assert report["facts"]["live"]["inferred"] is True
    (finding,) = [f for f in report["findings"] if f["rule"] == "FIT105"]
    assert finding["confidence"] == "medium"
    assert "ENG508" not in found(report)


def test_a_server_without_a_parser_is_told_by_its_answers(run: Run, served: Callable[..., Served]) -> None:
    code, report = audit(run, served("unparsed").url)
    assert (code, report["facts"]["parser"]["mode"]) == (1, "none")
    assert found(report, "error") == ["FIT101"]
    assert "none" in report["facts"]["live"]["explained_by"]
    assert report["findings"][0]["message"].startswith("the model thinks and its server's answers are not split")


def test_markers_that_decoding_hides_are_told_by_the_answers(run: Run, served: Callable[..., Served]) -> None:
    code, report = audit(run, served("unparsed", special=True).url)
    assert (code, report["facts"]["parser"]["mode"]) == (1, "none")
    assert "none" in report["facts"]["live"]["explained_by"]
    assert [marker["special"] for marker in report["facts"]["model"]["markers"]] == [True, True]
    code, report = audit(run, served("unparsed").url)
    assert [marker["special"] for marker in report["facts"]["model"]["markers"]] == [None, None]


def test_another_parser_than_the_named_one(run: Run, served: Callable[..., Served]) -> None:
    code, report = audit(run, served().url, "--parser", "deepseek_r1")
    (finding,) = [f for f in report["findings"] if f["rule"] == "ENG508"]
    assert code == 1
    assert finding["confidence"] == "high"
    assert finding["evidence"]["request"] == {"chat_template_kwargs": {"enable_thinking": False}}
    assert finding["evidence"]["client"] == {
        "reasoning": None,
        "content": " So the answer to your question is simply four my friend.",
    }
    assert finding["evidence"]["expected"]["content"] is None
    assert finding["evidence"]["also"] == ["RPL405"]
    assert finding["hint"].startswith("qwen3 gives exactly what came")


def test_with_the_serve_command_findings_stand_at_its_place(
    run: Run, served: Callable[..., Served], tmp_path: Path
) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("vllm serve Qwen/Qwen3-8B --reasoning-parser deepseek_r1\n")
    code, report = audit(run, served().url, "--serve", str(script), "--budget", "64")
    assert code == 1
    (finding,) = [f for f in report["findings"] if f["rule"] == "ENG508"]
    assert (finding["location"]["line"], finding["location"]["column"]) == (1, 26)
    assert finding["subject"]["server"] == "Qwen/Qwen3-8B"
    assert report["target"] == "vllm==0.32.0"
    assert report["facts"]["budget"]["prompts"]["template"] == "the server's own"
    assert surface(report, "live server") == ("examined", None)


@pytest.mark.parametrize("named", [True, False])
def test_a_proxy_that_edits_texts(run: Run, served: Callable[..., Served], *, named: bool) -> None:
    with proxy(served().url, answer=editing) as between:
        code, report = audit(run, between.url, *(("--parser", "qwen3") if named else ()))
    (finding,) = [f for f in report["findings"] if f["rule"] == "ENG508"]
    assert code == 1
    assert finding["evidence"]["explained_by"] == []
    assert "(and 5 more answers)" in finding["message"]
    said = "where qwen3 gives" if named else "which no parser of vllm==0.32.0 gives; qwen3 gives"
    assert said in finding["message"]
    assert report["facts"]["parser"]["judged"] == "qwen3"


def test_proxies_that_rename_or_do_nothing(run: Run, served: Callable[..., Served]) -> None:
    with proxy(served().url, answer=NOTHING) as between:
        code, report = audit(run, between.url)
    assert (code, found(report), report["verdict"]) == (0, [], "pass")
    with proxy(served().url, answer=renaming) as between:
        code, report = audit(run, between.url)
    assert (code, found(report)) == (1, ["ENG507"])
    (finding,) = [f for f in report["findings"] if f["rule"] == "ENG507"]
    assert finding["message"] == "plain: the reasoning came as reasoning_content (and 3 more answers)"


def test_prompts_of_another_template_than_the_files(run: Run, served: Callable[..., Served], tmp_path: Path) -> None:
    lab = served()
    code, report = audit(run, lab.url, "--model", str(lab.folder))
    assert (code, report["facts"]["model"]["kind"]) == (0, "folder")
    assert report["facts"]["model"]["prompts"] == {
        "made_by": "the server (vllm 0.32.0)",
        "not_made": None,
        "differing": 0,
        "shown": [],
    }
    other = tmp_path / "other"
    other.mkdir()
    for file in lab.folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    template = (other / "chat_template.jinja").read_text()
    (other / "chat_template.jinja").write_text("{{ 'Once: ' }}" + template)
    code, report = audit(run, lab.url, "--model", str(other))
    status, reason = surface(report, "prompt")
    assert status == "partial"
    assert reason is not None
    assert "prompts of the server (vllm 0.32.0) differ from ours; first single_turn, character 0" in reason
    assert states(report)["single_turn", "{}"] == ("open", 1)  # the server's own


def test_answers_made_of_other_prompts_than_tokenize_tells(run: Run, served: Callable[..., Served]) -> None:
    def longer(value: dict[str, Any]) -> dict[str, Any]:
        if value.get("prompt_token_ids"):
            value["prompt_token_ids"] = [1, *value["prompt_token_ids"]]
        return value

    with proxy(served().url, answer=longer) as between:
        code, report = audit(run, between.url)
    status, reason = surface(report, "live server")
    assert (code, report["verdict"], status) == (0, "incomplete", "partial")
    assert reason is not None
    assert reason.startswith("its answers are made of another prompt than its /tokenize tells: token 0: ")


def test_requests_are_bounded(run: Run, served: Callable[..., Served]) -> None:
    lab = served()
    before = len(lab.server.chats)
    code, report = audit(run, lab.url, "--max-requests", "3")
    assert (code, len(lab.server.chats) - before) == (0, 3)
    assert surface(report, "live server") == ("partial", "3 questions were not put (--max-requests)")
    code, report = audit(run, lab.url, "--max-requests", "0")
    assert (code, len(lab.server.chats) - before, report["verdict"]) == (0, 3, "incomplete")
    assert surface(report, "live server") == ("skipped", "vllm 0.32.0: no question was put (--max-requests)")


def test_the_key_goes_to_the_server_and_nowhere_else(
    run: Run, served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = served()
    guarded = dict(lab.server.routes)

    def guard(answer: Callable[[Asked], None]) -> Callable[[Asked], None]:
        def asked(request: Asked) -> None:
            if request.headers.get("Authorization") != "Bearer sk-secret-7":
                request.json({"error": {"message": f"no such key: {request.headers.get('Authorization')}"}}, 401)
            else:
                answer(request)

        return asked

    monkeypatch.setenv("SOME_KEY", "sk-secret-7")
    with FakeServer({path: guard(answer) for path, answer in guarded.items()}) as server:
        code, out, err = run("audit", "--endpoint", server.url, "--api-key-env", "SOME_KEY", "--verbose", "--no-config")
        assert (code, "sk-secret-7" in out + err) == (0, False)
        code, out, err = run("audit", "--endpoint", server.url, "--no-config")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "HTTP 401" in err
    assert err.rstrip().endswith("name the variable that holds the key with --api-key-env")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--served-model-name", "nope"), 2, "serves lab, and no 'nope'; give one of them"),
        (("--vllm", "python3"), 2, "--vllm: its parsers need the model's files; give --model, or leave it out"),
        (("fixture:qwen3", "fixture:deepseek_r1"), 2, "--endpoint: one server runs there, and these are to be audited"),
        (("--api-key-env", "NO_SUCH_VARIABLE"), 2, "--api-key-env: names no environment variable that is set"),
    ],
)
def test_wrong_calls(run: Run, served: Callable[..., Served], words: tuple[str, ...], code: int, said: str) -> None:
    assert_refused(run("audit", "--endpoint", served().url, *words, "--no-config"), code, said)


def assert_refused(result: tuple[int, str, str], code: int, said: str) -> None:
    assert result[:2] == (code, "")
    assert said in result[2]
    assert result[2].count("\n") == 1


def test_no_server_and_no_endpoint(run: Run) -> None:
    with FakeServer({}) as gone:
        url = gone.url
    assert_refused(run("audit", "--endpoint", url, "--no-config"), 3, "cannot be reached (Connection refused)")
    assert_refused(run("audit", "--endpoint", "localhost", "--no-config"), 2, "localhost is no URL")
    for flag, value in (("--served-model-name", "m"), ("--api-key-env", "HOME"), ("--max-requests", "4")):
        for command in (("audit", "--model", "fixture:qwen3"), ("verify", "--lab", "qwen3")):
            assert_refused(run(*command, flag, value, "--no-config"), 2, f"{flag}: goes with --endpoint")


@pytest.mark.parametrize(
    ("make", "named"),
    [(sglang, "sglang 0.5.13"), (lambda: llama_cpp(stop_id=True), "llama.cpp b8681"), (plain, "OpenAI-compatible")],
)
def test_other_servers_are_not_evaluated_and_not_clean(run: Run, make: Callable[[], FakeServer], named: str) -> None:
    with make() as server:
        code, report = audit(run, server.url, "--served-model-name", "lab")
        assert (code, report["verdict"], server.chats) == (0, "incomplete", [])
        for name in ("prompt", "live server"):
            status, reason = surface(report, name)
            assert status == "skipped"
            assert reason is not None
            assert named in reason
        assert audit(run, server.url, "--served-model-name", "lab", "--fail-on-incomplete")[0] == 1
        # The files are audited all the same.
        code, report = audit(run, server.url, "--served-model-name", "lab", "--model", "fixture:qwen3")
        assert (code, report["facts"]["parser"]["recommended"], server.chats) == (0, "qwen3", [])
        assert (report["verdict"], surface(report, "live server")[0]) == ("incomplete", "skipped")


def test_a_vllm_whose_tokenize_is_not_to_be_had(run: Run, served: Callable[..., Served]) -> None:
    lab = served()
    routes = {path: answer for path, answer in lab.server.routes.items() if path.startswith("/v1/")}
    with FakeServer(routes) as gateway:
        code, report = audit(run, gateway.url)
        assert (code, report["verdict"]) == (0, "incomplete")
        assert surface(report, "prompt") == ("skipped", "the server's /tokenize is not to be had (HTTP 404)")
        # With the files, what it answers is held against the parsers.
        code, report = audit(run, gateway.url, "--model", str(lab.folder), "--parser", "qwen3")
        assert (code, found(report), surface(report, "live server")) == (0, [], ("examined", None))
        assert surface(report, "prompt")[0] == "partial"
    with proxy(lab.url, answer=editing) as between:
        between.routes.pop("/tokenize")
        _, report = audit(run, between.url, "--model", str(lab.folder), "--parser", "qwen3")
        assert "ENG508" in found(report)


def test_a_server_that_sends_no_ids(run: Run, served: Callable[..., Served]) -> None:
    def bare(value: dict[str, Any]) -> dict[str, Any]:
        for choice in value.get("choices") or ():
            choice.pop("token_ids", None)
        return value

    with proxy(served().url, answer=bare) as between:
        code, report = audit(run, between.url)
    assert (code, report["verdict"]) == (0, "incomplete")
    status, reason = surface(report, "live server")
    assert (status, reason) == (
        "skipped",
        "vllm 0.32.0: its answers hold no token ids (return_token_ids), so no parser can be put to them",
    )


def test_answers_that_are_refused_or_break(run: Run, served: Callable[..., Served]) -> None:
    lab = served()

    def refuses(asked: Asked) -> None:
        if asked.body["stream"]:
            asked.events(['data: {"error": {"message": "out of memory"}}\n\n'])
        else:
            asked.json({"error": {"message": "not today"}}, 400)

    with FakeServer({**lab.server.routes, "/v1/chat/completions": refuses}) as server:
        code, report = audit(run, server.url)
    assert (code, found(report, "error")) == (1, ["ENG509", "INT904"])
    messages = {f["rule"]: f["message"] for f in report["findings"]}
    assert messages["ENG509"] == "plain: the server refused it: HTTP 400: not today (and 2 more answers)"
    assert "plain, stream: " in messages["INT904"]
    assert "out of memory" in messages["INT904"]


def test_a_fake_vllm_with_nonsense_tokens_is_survived(run: Run) -> None:
    with vllm() as server:
        code, _, err = run("audit", "--endpoint", server.url, "--format", "json", "--no-config")
    assert code in (0, 1, 3)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"tokens": "none"}, "what answers at the server's /tokenize is not vLLM's"),
        ({"ids": [1]}, "what answers at the server's /tokenize is not vLLM's"),
        ([1], "what answers at the server's /tokenize is not vLLM's"),
    ],
)
def test_a_tokenize_of_another_kind(run: Run, answer: Any, said: str) -> None:
    routes = {"/v1/models": models("vllm", "lab"), "/tokenize": lambda asked: asked.json(answer)}
    with FakeServer(routes) as server:
        code, report = audit(run, server.url)
    assert (code, report["verdict"]) == (0, "incomplete")
    assert said in str(surface(report, "prompt")[1])


def test_several_names_of_one_model(run: Run, served: Callable[..., Served]) -> None:
    entries = [{"id": name, "owned_by": "vllm", "root": "/models/Qwen3-8B"} for name in ("lab", "alias")]
    routes = {**served().server.routes, "/v1/models": lambda asked: asked.json({"data": entries})}
    with FakeServer(routes) as server:
        code, report = audit(run, server.url)
        assert (code, report["facts"]["model"]["source"]) == (0, "lab")
        assert report["facts"]["parser"]["named"][0] == "qwen3"  # by the folder that the server has it from
        entries[1]["root"] = "/models/other"
        assert_refused(
            run("audit", "--endpoint", server.url, "--no-config"), 2, "say which one with --served-model-name"
        )


def test_a_template_that_refuses_is_told_as_the_client_hears_it(served: Callable[..., Served]) -> None:
    with Endpoint(served("mistral").url) as endpoint:
        prompts = ServedPrompts(endpoint, identify(endpoint), "lab")
        good, bad = prompts.answers([{"messages": [{"role": "user", "content": "hi"}]}, {"messages": [{"role": "?"}]}])
    assert good["text"].startswith("<")
    assert len(good["ids"]) > 3
    assert "error" in bad or bad["ids"]


def test_a_busy_server_costs_those_prompts(served: Callable[..., Served]) -> None:
    lab = served()

    def busy(asked: Asked) -> None:
        if "wait" in json.dumps(asked.body):
            asked.json({"error": {"message": "too many requests"}}, 429)
        else:
            lab.server.routes["/tokenize"](asked)

    with FakeServer({**lab.server.routes, "/tokenize": busy}) as server, Endpoint(server.url) as endpoint:
        prompts = ServedPrompts(endpoint, Server("vllm", "0.32.0", ("lab",)), "lab")
        lost, fine = prompts.answers([{"messages": [{"role": "user", "content": c}]} for c in ("wait", "go")])
    assert (lost["lost"].kind, "too many requests" in lost["lost"].message) == ("crashed", True)
    assert fine["text"].endswith("<think>\n")


def test_a_prompt_that_is_never_made_costs_that_prompt(
    served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = served()
    over = threading.Event()

    def slow(asked: Asked) -> None:
        if "wait" in json.dumps(asked.body):
            over.wait(60)
        lab.server.routes["/tokenize"](asked)

    monkeypatch.setattr("reasonctl.engine.prompts._SECONDS", 0.2)
    with FakeServer({**lab.server.routes, "/tokenize": slow}) as server, Endpoint(server.url) as endpoint:
        prompts = ServedPrompts(endpoint, Server("vllm", "0.32.0", ("lab",)), "lab")
        (lost,) = prompts.answers([{"messages": [{"role": "user", "content": "wait"}]}])
        over.set()
        monkeypatch.setattr("reasonctl.engine.prompts._SECONDS", 60.0)
        (fine,) = prompts.answers([{"messages": [{"role": "user", "content": "go"}]}])
    assert (lost["lost"].kind, "no answer within 0.2 s" in lost["lost"].message) == ("timeout", True)
    assert fine["text"].endswith("<think>\n")


@pytest.mark.parametrize("spells", [True, False])
def test_the_served_tokenizer_is_the_model_s(served: Callable[..., Served], *, spells: bool) -> None:
    lab = served(spells=spells)
    own = load_model(str(lab.folder)).tokenizer
    assert own is not None
    with Endpoint(lab.url) as endpoint:
        theirs = ServedPrompts(endpoint, identify(endpoint), "lab").tokenizer

        @settings(max_examples=60, deadline=None)
        @given(
            st.lists(st.sampled_from(["<think>", "</think>", " so", "é", "你", "🙂", "\n\n", "x", " "])).map("".join)
        )
        def agrees(text: str) -> None:
            ids = own.encode(text)
            assert theirs.encode(text) == ids
            assert theirs.decode(ids) == own.decode(ids) == text
            assert [theirs.decode(ids[:n]) for n in range(len(ids))] == [own.decode(ids[:n]) for n in range(len(ids))]
            if text.isascii():
                assert theirs.encode_with_ends(text) == own.encode_with_ends(text)

        agrees()
        assert theirs.vocab["<think>"] == own.vocab["<think>"]
        assert theirs.vocab.get("<seed:think>") is None
        assert theirs.vocab.get("So the answer") is None


def test_special_tokens_are_left_out_where_answers_have_shown_it() -> None:
    table = {1: "<think>", 2: "x"}

    def ask(path: str, body: Any) -> Any:
        if path == "/tokenize":
            return {"tokens": [one for one, text in table.items() if text == body["prompt"]] or [9, 9]}
        return {"prompt": "".join(table.get(one, "?") for one in body["tokens"])}

    tokenizer = ServedTokenizer(ask, "m")
    assert tokenizer.decode([1, 2], skip_special_tokens=True) == "<think>x"
    tokenizer.take_special(frozenset({1}))
    assert tokenizer.decode([1, 2], skip_special_tokens=True) == "x"
    assert tokenizer.decode([1, 2]) == "<think>x"
    with pytest.raises(ReasonctlError, match="answers without a text"):
        ServedTokenizer(lambda path, body: {"tokens": [1]}, "m").decode([1, 2])
