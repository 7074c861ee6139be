"""The bridge to another interpreter, over a tiny fake vLLM: what is asked, what comes back, what a bad parser costs."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.bridge.bridge import Bridge, open_bridge
from reasonctl.parsers.bridge.plugin import Plugin
from reasonctl.parsers.bridge.process import BridgeError, LostError
from reasonctl.parsers.bridge.spec import EngineSpec, parse_engine
from reasonctl.parsers.feed import Chunking
from reasonctl.parsers.run import ModeResult, Output, ParserRun
from reasonctl.parsers.target import Target

from .fake_vllm import UNRULY, fake_vllm

TOKEN, WHOLE = Chunking("tokens"), Chunking("whole")
PLUGIN = Plugin("unruly.py", UNRULY)
linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="tells a process's end by its pidfd")


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake_vllm(tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="module")
def bridge(fake: str) -> Iterator[Bridge]:
    """One for all tests: what one does to it must not matter to the next."""
    with Bridge(parse_engine(fake), plugin=PLUGIN, seconds=1.0) as opened:
        yield opened


def put(bridge: Bridge, text: str, name: str = "deepseek_r1", prompt: str | None = None, **kwargs: object) -> ParserRun:
    vocabulary = AssumedVocabulary()
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    output = Output(vocabulary, text=text, prompt_ids=prompt_ids)
    return bridge.run(name, vocabulary, kwargs, output, chunkings=(TOKEN, WHOLE))


def told(bridge: Bridge, word: str) -> str:
    """What the unruly parser answers to a word."""
    run = put(bridge, f"|{word}|", "unruly")
    assert run.lost is None
    return run.full.reasoning or ""


def is_well(bridge: Bridge) -> None:
    run = put(bridge, "I think.</think>It is 4.")
    assert (run.full.reasoning, run.full.content, run.lost) == ("I think.", "It is 4.", None)
    assert put(bridge, "||plain", "unruly").full.reasoning == "||plain"


def test_it_says_what_answers(bridge: Bridge) -> None:
    assert bridge.described == {"kind": "vllm", "vllm_version": "0.33.0", "python": sys.version.split()[0]}
    assert bridge.target == Target("vllm", (0, 33, 0))
    assert bridge.names() == ("deepseek_r1", "qwen3", "unruly")


def test_an_output_goes_through_in_full_and_in_every_chunking(bridge: Bridge) -> None:
    run = put(bridge, "I think.</think>It is 4.")
    tokens = len(AssumedVocabulary().encode("I think.</think>It is 4."))
    assert run == ParserRun(
        "deepseek_r1",
        ModeResult(None, "I think.", "It is 4.", 0),
        (ModeResult("token", "I think.", "It is 4.", tokens), ModeResult("whole", "I think.", "It is 4.", 1)),
        tokens,
        text="I think.</think>It is 4.",
    )


def test_the_prompt_is_handed_over(bridge: Bridge) -> None:
    run = put(bridge, "It is 4.", prompt="<think></think>")
    assert [(mode.reasoning, mode.content) for mode in (run.full, *run.stream)] == [
        ("It is 4.", None),
        (None, "It is 4."),
        (None, "It is 4."),
    ]


def test_what_a_constructor_raises_is_its_result(bridge: Bridge) -> None:
    run = put(bridge, "x", refuse=True)
    assert (run.error, run.full.error, run.stream[0].error, run.text) == (
        "RuntimeError: refused",
        *["RuntimeError"] * 2,
        "",
    )
    vocabulary = AssumedVocabulary()
    assert bridge.refusal("deepseek_r1", vocabulary, {"refuse": True}) == "RuntimeError: refused"
    assert bridge.refusal("deepseek_r1", vocabulary, {}) is None


def test_what_a_parser_raises_is_its_result_and_the_streams_keep_theirs(bridge: Bridge) -> None:
    run = put(bridge, "|raise|", "unruly")
    assert (run.error, run.full.error) == ("ZeroDivisionError: by zero", "ZeroDivisionError")
    assert [mode.error for mode in run.stream] == [None, None]


def test_a_parser_that_returns_no_text_is_refused_as_the_server_refuses_it(bridge: Bridge) -> None:
    assert put(bridge, "|number|", "unruly").full.error == "ValidationError"


def test_a_name_it_has_not_is_unsupported(bridge: Bridge) -> None:
    assert put(bridge, "x", "granite").unsupported == "vLLM 0.33.0 has no such parser"


def test_fixed_ids_mean_nothing_in_an_assumed_vocabulary(bridge: Bridge) -> None:
    assert "give --model" in (put(bridge, "x", "hunyuan_a13b").unsupported or "")


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet='ab \n<>/thinké🙂"\\', max_size=40), st.integers(1, 5))
def test_every_text_comes_through_unchanged(bridge: Bridge, text: str, size: int) -> None:
    vocabulary = AssumedVocabulary()
    output = Output(vocabulary, text=f"{text}</think>{text}")
    run = bridge.run("deepseek_r1", vocabulary, {}, output, chunkings=(Chunking("tokens", size),))
    before, _, after = f"{text}</think>{text}".partition("</think>")
    assert (run.full.reasoning, run.full.content) == (before, after or None)


@pytest.mark.parametrize(
    ("word", "how"),
    [
        ("hang", "no answer within 1 s"),
        ("exit", "its process ended with status 7"),
        ("exit0", "its process ended with status 0"),
        ("sysexit", "its process ended with status 3"),
        ("segv", "its process was ended by SIGSEGV"),
    ],
)
def test_a_parser_that_ends_its_process_costs_one_result(bridge: Bridge, word: str, how: str) -> None:
    lost = put(bridge, f"|{word}|", "unruly")
    assert (lost.lost, lost.full.reasoning, lost.stream) == (how, None, ())
    is_well(bridge)


def test_a_parser_that_turns_the_alarm_off_costs_one_result_too(bridge: Bridge) -> None:
    assert put(bridge, "|sleep|", "unruly").lost == "no answer within 1 s"
    is_well(bridge)


def test_a_parser_that_hangs_every_time_is_not_waited_for_for_ever(fake: str) -> None:
    with Bridge(parse_engine(fake), plugin=PLUGIN, seconds=0.2) as opened:
        lost = [put(opened, "|hang|", "unruly").lost for _ in range(4)]
        assert lost == ["no answer within 0.2 s"] * 3 + ["no answer 3 times in a row; unruly is not asked any more"]
        assert put(opened, "a</think>b").full.content == "b"


@pytest.mark.parametrize("word", ["exit", "hang"])
def test_only_the_one_that_answers_dies(bridge: Bridge, word: str) -> None:
    runner, supervisor = told(bridge, "pids").split()
    assert put(bridge, f"|{word}|", "unruly").lost is not None
    again, same = told(bridge, "pids").split()
    assert same == supervisor
    assert again != runner


@pytest.mark.parametrize("word", ["chatter", "fork"])
def test_what_is_printed_and_who_is_forked_changes_no_result(bridge: Bridge, word: str) -> None:
    assert told(bridge, word) == f"|{word}|"
    is_well(bridge)


def test_requests_cannot_be_read_by_a_parser(bridge: Bridge) -> None:
    assert told(bridge, "stdin") == "nothing to read"
    is_well(bridge)


def test_a_runner_killed_between_two_results_is_replaced(bridge: Bridge) -> None:
    runner = int(told(bridge, "pids").split()[0])
    os.kill(runner, signal.SIGKILL)
    assert "unruly" in bridge.names()
    run = put(bridge, "||after", "unruly")
    assert run.lost is not None or run.full.reasoning == "||after"
    is_well(bridge)


def test_a_tokenizer_given_by_key_is_given_again_after_a_crash(bridge: Bridge) -> None:
    bridge.ask("tokenizer", key="k", vocab={"</think>": 1, "a": 2}, markers=["</think>"])
    case = {"tokenizer": "k", "kwargs": {}, "request_kwargs": {}, "prompt_ids": None, "ids": [2, 1], "streams": []}
    before = bridge.ask("run", parser="deepseek_r1", text="a</think>", **case)
    with pytest.raises(LostError):
        bridge.ask("run", parser="unruly", text="|exit|", **case)
    assert bridge.ask("run", parser="deepseek_r1", text="a</think>", **case) == before
    assert before["full"] == {"reasoning": "a", "content": None, "tokens": 2}


@linux
def test_a_killed_bridge_costs_one_result_and_leaves_no_process(fake: str) -> None:
    with Bridge(parse_engine(fake), plugin=PLUGIN, seconds=2.0) as opened:
        keeper = opened.pid
        assert keeper is not None
        with ends_of([*map(int, told(opened, "pids").split()), keeper]):
            os.kill(keeper, signal.SIGKILL)
        is_well(opened)


@linux
@pytest.mark.parametrize("word", ["daemon", "orphan"])
def test_close_ends_whatever_a_parser_started(fake: str, word: str) -> None:
    opened = Bridge(parse_engine(fake), plugin=PLUGIN, seconds=2.0)
    pids = [int(told(opened, word)), *map(int, told(opened, "pids").split())]
    with ends_of(pids):
        opened.close()


OURS = """
import sys
sys.path.insert(0, {root!r})
from tests.parsers.test_bridge import PLUGIN, put, told
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.spec import parse_engine
bridge = Bridge(parse_engine({engine!r}), plugin=PLUGIN, seconds=600)
print(told(bridge, "daemon"), told(bridge, "orphan"), told(bridge, "pids"), bridge.pid, flush=True)
put(bridge, "|{word}|", "unruly")
"""


@linux
@pytest.mark.parametrize("word", ["hang", "sleep"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_is_left_when_we_are_ended_in_the_middle(
    fake: str, word: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    monkeypatch.setenv("UNRULY_STARTED", str(started))
    script = OURS.format(root=str(Path(__file__).parents[2]), engine=fake, word=word)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ours:
        assert ours.stdout is not None
        pids = [int(pid) for pid in ours.stdout.readline().split()]
        assert len(pids) == 5
        assert started.read_text(encoding="utf-8") == ""
        with ends_of(pids):
            ours.send_signal(number)
            ours.wait()


class ends_of:
    """By the end of the block, and 20 s at most, all these processes are gone."""

    def __init__(self, pids: list[int]) -> None:
        self._watched = {pid: os.pidfd_open(pid) for pid in pids}

    def __enter__(self) -> None:
        for watched in self._watched.values():
            assert not select.select([watched], [], [], 0)[0]

    def __exit__(self, *error: object) -> None:
        for pid, watched in self._watched.items():
            gone = select.select([watched], [], [], 20)[0]
            os.close(watched)
            if not gone:
                os.kill(pid, signal.SIGKILL)
            assert gone or error[0], f"{pid} is left"


@pytest.mark.parametrize(
    ("layout", "streamed", "tokens"),
    [
        ("parser", (None, "It is 4."), 4),
        ("delta", (None, "It is 4."), None),
        ("reasoning", (None, "It is 4."), None),
        ("blind", ("It is 4.", None), None),
    ],
)
def test_every_layout_is_driven_as_its_server_does(
    tmp_path: Path, layout: str, streamed: tuple[str | None, str | None], tokens: int | None
) -> None:
    """The prompt has ended reasoning: a whole output never knows, a stream does where that server looks."""
    with open_bridge(parse_engine(fake_vllm(tmp_path, layout=layout))) as opened:
        run = put(opened, "It is 4.", prompt="<think></think>")
        assert (run.full.reasoning, run.full.content, run.reasoning_tokens) == ("It is 4.", None, tokens)
        assert [(mode.reasoning, mode.content) for mode in run.stream] == [streamed, streamed]
        split = put(opened, "a</think>b")
        assert {(mode.reasoning, mode.content) for mode in (split.full, *split.stream)} == {("a", "b")}


def test_a_vllm_that_is_too_old_says_so(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match=r"vLLM 0\.9\.0 is too old: 0\.12 is the oldest"):
        open_bridge(parse_engine(fake_vllm(tmp_path, version="0.9.0", layout="ancient")))


@pytest.mark.parametrize(
    ("version", "target"),
    [
        ("0.32.0+cpu", (0, 32, 0)),
        ("0.34.1.dev12+g4ba7", (0, 34, 1)),
        ("0.33.0rc2", (0, 33, 0)),
        (None, (0, 19, 0)),
    ],
)
def test_the_version_is_the_targets(tmp_path: Path, version: str | None, target: tuple[int, int, int]) -> None:
    """A checkout that knows no version of its own stands for the newest that brought it a name."""
    value = fake_vllm(tmp_path, version=version)
    if version is None:
        base = tmp_path / "vllm" / "reasoning" / "__init__.py"
        base.write_text(base.read_text().replace('"qwen3"', '"gemma4"'), encoding="utf-8")
    with open_bridge(parse_engine(value)) as opened:
        assert opened.target == Target("vllm", target)


def test_a_python_without_vllm_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        BridgeError, match=r"there is no vLLM in that Python \(ModuleNotFoundError: No module named 'vllm'"
    ):
        open_bridge(parse_engine(sys.executable))


def test_a_vllm_that_lacks_a_package_says_which(tmp_path: Path) -> None:
    value = fake_vllm(tmp_path)
    (tmp_path / "vllm" / "__init__.py").write_text("import gguf_that_is_not_there", encoding="utf-8")
    with pytest.raises(BridgeError, match="install gguf_that_is_not_there there"):
        open_bridge(parse_engine(value))


def test_a_package_that_only_the_server_lacks_is_named_too(tmp_path: Path) -> None:
    """vLLM 0.18 to 0.23 import gguf with the requests of their server, and parsers without it."""
    value = fake_vllm(tmp_path)
    protocol = tmp_path / "vllm" / "entrypoints" / "openai" / "chat_completion" / "protocol" / "__init__.py"
    protocol.write_text(f"import gguf_that_is_not_there\n{protocol.read_text()}", encoding="utf-8")
    with pytest.raises(BridgeError, match=r"No module named 'gguf_that_is_not_there'.*; install gguf_that_is"):
        open_bridge(parse_engine(value))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "it ended with status 0"),
        ("false", "it ended with status 1"),
        ("sh -c 'echo no such pod >&2; exit 3'", r"it ended with status 3 \(no such pod\)"),
        (
            "sh -c 'echo pulling >&2; echo error: no route >&2; echo See --help for more >&2; exit 125'",
            r"it ended with status 125 \(error: no route\)",
        ),
        ("sh -c 'echo one >&2; echo two >&2; exit 3'", r"it ended with status 3 \(two\)"),
    ],
)
def test_a_command_that_leads_to_no_python_says_how_it_ended(command: str, said: str) -> None:
    with pytest.raises(BridgeError, match=f"it did not come up: {said}"):
        open_bridge(parse_engine(f"cmd:{command}"))


def test_a_vllm_that_never_comes_up_is_ended(tmp_path: Path) -> None:
    value = fake_vllm(tmp_path)
    (tmp_path / "vllm" / "__init__.py").write_text("while True: pass", encoding="utf-8")
    with pytest.raises(BridgeError, match=r"no answer within 0\.2 s"):
        Bridge(parse_engine(value), start_seconds=0.2)


def test_what_a_wrapper_prints_before_and_after_is_no_answer(fake: str) -> None:
    folder, _, python = fake.rpartition(":")
    wrapper = f'cmd:sh -c \'echo welcome; echo "{{}}"; PYTHONPATH={folder} {python} "$@"; echo bye\' sh'
    with open_bridge(parse_engine(wrapper)) as opened:
        assert put(opened, "a</think>b").full.content == "b"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import os; os._exit(4)", "its process ended with status 4"),
        ("while True: pass", "no answer within 1 s"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        ("def f(:", "SyntaxError: invalid syntax"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_costs_its_own_parsers(fake: str, text: str, problem: str) -> None:
    with Bridge(parse_engine(fake), plugin=Plugin("mine.py", text), seconds=1.0) as opened:
        assert opened.plugin_problem is not None
        assert opened.plugin_problem.startswith(f"mine.py could not be loaded: {problem}")
        assert put(opened, "a</think>b").full.content == "b"
        assert put(opened, "a", "mine").lost == f"mine: {opened.plugin_problem}"


def test_a_plugin_is_never_loaded_here(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REASONCTL_TEST_LOADED", raising=False)
    text = 'import os; os.environ["REASONCTL_TEST_LOADED"] = "1"\n' + UNRULY
    with Bridge(parse_engine(fake), plugin=Plugin("mine.py", text)) as opened:
        assert "unruly" in opened.names()
    assert "REASONCTL_TEST_LOADED" not in os.environ


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_time_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, fake: str, text: str) -> None:
    monkeypatch.setenv("REASONCTL_VLLM_SECONDS", text)
    with pytest.raises(InputError, match="REASONCTL_VLLM_SECONDS"):
        open_bridge(parse_engine(fake))


def test_a_spec_is_plain_data() -> None:
    spec = EngineSpec("x", ("python3",), "folder")
    assert spec.environment()["PYTHONPATH"].split(os.pathsep)[0] == "folder"
    assert {spec: 1}[EngineSpec("x", ("python3",), "folder")] == 1
