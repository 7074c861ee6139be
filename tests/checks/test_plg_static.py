"""What the static look finds: each rule on a plugin that has the fault, and on its neighbour that has not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from reasonctl.checks.finding import Finding
from reasonctl.checks.plg_facts import PluginLook
from reasonctl.checks.plg_static import static_findings
from reasonctl.kit.source import read_plugin_source
from reasonctl.parsers.target import Target
from reasonctl.prompts.model import load_model

PLUGINS = Path(__file__).parents[1] / "kit" / "plugins"
ENABLE = (("enable_thinking", False, True),)


def found(path: Path, name: str | None = None, **look: Any) -> list[Finding]:
    return list(static_findings(PluginLook(read_plugin_source(path), name, **look)))


def short(findings: list[Finding]) -> list[tuple[str, str, int, int]]:
    assert all(one.location is not None for one in findings)
    return [(one.rule, one.message, one.location.line, one.location.column) for one in findings if one.location]


def written(tmp_path: Path, text: str, name: str | None = None, **look: Any) -> list[tuple[str, str, int, int]]:
    path = tmp_path / "plugin.py"
    path.write_text(dedent(text), encoding="utf-8")
    return short(found(path, name, **look))


FAULTS: dict[str, tuple[str | None, dict[str, Any], list[tuple[str, str, int, int]]]] = {
    "plg601": (None, {}, [("PLG601", "vLLM 0.33.0 has no module vllm.entrypoints.openai.engine.protocol", 3, 1)]),
    "plg602": (
        "my-glim",
        {},
        [("PLG602", "plg602_fault.py registers no parser 'my-glim'; it has 'my_glim'", 7, 2)],
    ),
    "plg603": (
        None,
        {},
        [
            ("PLG603", "extract_reasoning_streaming changes SharingParser.buffer, which every request shares", 17, 9),
            ("PLG603", "extract_reasoning_streaming changes the module's _seen, which every request shares", 18, 9),
            ("PLG603", "extract_reasoning_streaming changes SharingParser.requests, which every request shares", 19, 9),
        ],
    ),
    "plg604": (
        None,
        {},
        [
            ("PLG604", "LackingParser has no extract_content_ids", 8, 7),
            (
                "PLG604",
                "LackingParser.extract_reasoning_streaming takes 7 arguments, and the server gives 6",
                20,
                9,
            ),
        ],
    ),
    "plg608": (
        None,
        {"switches": ENABLE},
        [
            (
                "PLG608",
                "the template switches thinking with enable_thinking, and BlindParser never reads chat_template_kwargs",
                8,
                7,
            ),
            (
                "PLG608",
                "BlindParser.is_reasoning_end does not look at the ids it is given: before the first token it knows "
                "nothing of the prompt",
                16,
                9,
            ),
        ],
    ),
    "plg609": (
        None,
        {},
        [
            (
                "PLG609",
                "UnnamedParser gives no reasoning_start_str and reasoning_end_str: requests with a thinking budget are "
                "refused",
                8,
                7,
            )
        ],
    ),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_the_fault_is_found_where_it_stands(rule: str) -> None:
    name, look, wanted = FAULTS[rule]
    assert short(found(PLUGINS / f"{rule}_fault.py", name, **look)) == wanted


@pytest.mark.parametrize("rule", FAULTS)
def test_its_neighbour_is_left_alone(rule: str) -> None:
    name, look, _ = FAULTS[rule]
    assert found(PLUGINS / f"{rule}_right.py", name, **look) == []


def test_plg605_base_needs_single_token() -> None:
    split, whole = load_model("fixture:split-markers").tokenizer, load_model("fixture:qwen3").tokenizer
    fault = PLUGINS / "plg605_fault.py"
    assert short(found(fault, vocabulary=split)) == [
        ("PLG605", f"'{text}' is {number}, and the base class of NeedingParser asks for one", line, column)
        for text, number, line, column in (
            ("<think>", "5 tokens here ('<', 't', 'h', 'ink', '>')", 9, 19),
            ("</think>", "6 tokens here ('<', '/', 't', 'h', 'ink', '>')", 10, 17),
        )
    ]
    assert found(fault, vocabulary=whole) == []
    assert found(fault) == []
    assert found(PLUGINS / "plg605_right.py", vocabulary=split) == []


def test_plg605_markers_that_are_inherited(tmp_path: Path) -> None:
    text = """
        from vllm.reasoning import ReasoningParserManager
        from vllm.reasoning.deepseek_r1_reasoning_parser import DeepSeekR1ReasoningParser

        class Middle(DeepSeekR1ReasoningParser):
            @property
            def end_token(self):
                return "</thought>"

        @ReasoningParserManager.register_module("x")
        class Mine(Middle):
            pass
        """
    messages = written(tmp_path, text, vocabulary=load_model("fixture:qwen3").tokenizer)
    assert [(rule, line, column) for rule, _, line, column in messages] == [("PLG605", 8, 16)]
    assert messages[0][1].startswith("'</thought>' is ")


def test_plg601_depends_on_the_version() -> None:
    fault = PLUGINS / "plg601_fault.py"
    assert found(fault, target=Target("vllm", (0, 29, 0))) == []
    assert [one.rule for one in found(fault, target=Target("vllm", (0, 30, 0)))] == ["PLG601"]


def test_plg601_names_that_vllm_reasoning_does_not_offer(tmp_path: Path) -> None:
    text = "from vllm.reasoning import BaseThinkingReasoningParser, ReasoningParser, qwen3_engine_reasoning_parser\n"
    assert ("PLG601", "vllm.reasoning has no BaseThinkingReasoningParser", 1, 1) in written(tmp_path, text)


PARSER = """
from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser
from vllm.tool_parsers import ToolParserManager


class Mine(BaseThinkingReasoningParser):
    start_token, end_token = "<a>", "</a>"
    start_token = "<a>"
    end_token = "</a>"


"""


@pytest.mark.parametrize(
    "code",
    [
        'ReasoningParserManager.register_module("x", module=Mine)',
        'ReasoningParserManager.register_module(name=["w", "x"], module=Mine)',
        'ReasoningParserManager.register_module("x")(Mine)',
        'NAME = "x"\nReasoningParserManager.register_lazy_module(NAME, "plugin", "Mine")',
        'def go():\n    ReasoningParserManager.register_module("x", module=Mine)\n\n\ngo()',
        "for name in names():\n    ReasoningParserManager.register_module(name, module=Mine)",
        'if True:\n    @ReasoningParserManager.register_module("x")\n    class Other(Mine):\n        pass',
    ],
)
def test_plg602_ways_to_register(tmp_path: Path, code: str) -> None:
    assert written(tmp_path, PARSER + code, "x") == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "plugin.py registers no parser 'x'"),
        (
            'ToolParserManager.register_module("x", module=Mine)',
            "plugin.py does not register 'x': it goes to ToolParserManager, which is not the registry of reasoning "
            "parsers",
        ),
        (
            'def go():\n    ReasoningParserManager.register_module("x", module=Mine)',
            "plugin.py does not register 'x': it stands in go(), which loading the file does not call",
        ),
        (
            'if __name__ == "__main__":\n    ReasoningParserManager.register_module("x", module=Mine)',
            "plugin.py does not register 'x': it stands under `if __name__ == \"__main__\"`",
        ),
        (
            "@ReasoningParserManager.register_module\nclass Other(Mine):\n    pass",
            "plugin.py does not register 'x': the decorator is not called: write register_module with the name in "
            "brackets",
        ),
        (
            '@ReasoningParserManager.register_module(("x", "y"))\nclass Other(Mine):\n    pass',
            "plugin.py registers no parser 'x'; it has 'Other'",
        ),
        (
            'ReasoningParserManager.register_lazy_module("x", "plugin", "Nine")',
            "'x' is registered as Nine, and the file has no such class",
        ),
        (
            '@ReasoningParserManager.register_module("x")\nclass Other:\n    pass',
            "Other is registered as 'x' and is no ReasoningParser: vLLM refuses it",
        ),
    ],
)
def test_plg602_ways_not_to(tmp_path: Path, code: str, said: str) -> None:
    assert [(rule, message) for rule, message, _, _ in written(tmp_path, PARSER + code, "x")] == [("PLG602", said)]


def test_plg602_an_entry_point_runs_the_function(tmp_path: Path) -> None:
    code = PARSER + 'def go():\n    ReasoningParserManager.register_module("x", module=Mine)\n'
    assert [rule for rule, *_ in written(tmp_path, code, "x")] == ["PLG602"]
    project = '[project]\nname = "p"\n[project.entry-points."vllm.general_plugins"]\nmine = "p.plugin:go"\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    assert written(tmp_path, code, "x") == []
    (tmp_path / "pyproject.toml").write_text(project.replace("p.plugin:go", "p.other:go"), encoding="utf-8")
    assert [rule for rule, *_ in written(tmp_path, code, "x")] == ["PLG602"]


ROOT = """
from functools import cached_property
from vllm.reasoning import ReasoningParser, ReasoningParserManager

@ReasoningParserManager.register_module("x")
class Mine(ReasoningParser):
    reasoning_start_str = "<a>"
    reasoning_end_str = "</a>"
    {more}
    def is_reasoning_end(self, input_ids):
        {end}
    def extract_content_ids(self, input_ids):
        return input_ids
    def extract_reasoning(self, model_output, request):
        return model_output, None
    def extract_reasoning_streaming(self, *given):
        return None if not given else given[0]
"""
READS = "return self.vocab['</a>'] in input_ids"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", None),
        ("def __init__(self, tokenizer, *args, **kwargs): super().__init__(tokenizer, *args, **kwargs)", None),
        ("def __init__(self, tokenizer, *, model_config=None, chat_template_kwargs=None): pass", None),
        ("def count_reasoning_tokens(self, token_ids, limit=None): return 0", None),
        (
            "def __init__(self, tokenizer): super().__init__(tokenizer)",
            "Mine.__init__ takes no chat_template_kwargs and model_config, with which every request makes it",
        ),
        (
            "def __init__(self, tokenizer, style, **kwargs): super().__init__(tokenizer)",
            "Mine.__init__ takes 2 arguments, and the server gives 1",
        ),
        (
            "def is_reasoning_end_streaming(self, input_ids): return True",
            "Mine.is_reasoning_end_streaming takes 1 arguments, and the server gives 2",
        ),
        (
            "@cached_property\n    def count_reasoning_tokens(self): return 0",
            "Mine.count_reasoning_tokens is a property, and the server calls it",
        ),
        (
            "async def adjust_request(self, request): return request",
            "Mine.adjust_request is async or a generator: the server takes what the call gives",
        ),
    ],
)
def test_plg604_signatures(tmp_path: Path, more: str, said: str | None) -> None:
    messages = written(tmp_path, ROOT.format(more=more, end=READS))
    assert [(rule, message) for rule, message, _, _ in messages] == ([] if said is None else [("PLG604", said)])


def test_plg604_method_missing_looks_at_bases_of_the_file_and_not_beyond_unknown_ones(tmp_path: Path) -> None:
    text = """
        from elsewhere import Mixin
        from vllm.reasoning import ReasoningParser, ReasoningParserManager

        class Half(ReasoningParser):
            reasoning_start_str = reasoning_end_str = "|"
            def is_reasoning_end(self, input_ids): return 1 in input_ids
            def extract_content_ids(self, input_ids): return input_ids
            def extract_reasoning_content(self, model_output, request): return model_output, None

        @ReasoningParserManager.register_module("x")
        class Mine({bases}):
            def extract_reasoning(self, model_output, request): ...
        """
    assert written(tmp_path, text.format(bases="Half")) == [
        (
            "PLG604",
            "Mine has no extract_reasoning_streaming; extract_reasoning_content is the old name",
            12,
            7,
        ),
        ("PLG604", "Mine.extract_reasoning gives no answer: it returns None", 13, 9),
    ]
    assert [message for _, message, _, _ in written(tmp_path, text.format(bases="Mixin, Half"))] == [
        "Mine.extract_reasoning gives no answer: it returns None"
    ]


@pytest.mark.parametrize(
    ("end", "switches", "said"),
    [
        (READS, ENABLE[:0], None),
        ("pass", (), "returns None: the server is told nothing of the prompt"),
        ("return None", (), "returns None: the server is told nothing of the prompt"),
        ("return True", (), "is always true: streamed, every thought is filed as content"),
        ("return False", (), None),
        ("return False", ENABLE, "is always false, although the template can switch thinking off"),
        (
            "return self.state == 2",
            (),
            "does not look at the ids it is given: before the first token it knows nothing of the prompt",
        ),
        ("return self.inner.is_reasoning_end(input_ids)", (), None),
        ("raise NotImplementedError", (), None),
    ],
)
def test_plg608_what_is_reasoning_end_goes_by(tmp_path: Path, end: str, switches: Any, said: str | None) -> None:
    more = "def __init__(self, *args, **kwargs): self.on = kwargs['chat_template_kwargs'].get('enable_thinking')"
    messages = written(tmp_path, ROOT.format(more=more, end=end), switches=switches)
    wanted = [] if said is None else [("PLG608", f"Mine.is_reasoning_end {said}")]
    assert [(rule, message) for rule, message, _, _ in messages] == wanted


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "and Mine never reads chat_template_kwargs"),
        ("def __init__(self, *a, **k): self.t = k['chat_template_kwargs']['thinking']", None),
        ("def __init__(self, *a, **k): self.t = k['chat_template_kwargs']['enable_thinking']", "never reads thinking"),
        ("def __init__(self, *a, **k): self.inner = Other(*a, **k)", None),
        ("def __init__(self, *a, **k): super().__init__(*a, **k)", "and Mine never reads chat_template_kwargs"),
    ],
)
def test_plg608_the_switch_that_the_template_reads(tmp_path: Path, more: str, said: str | None) -> None:
    switches = (("thinking", False, True),)
    messages = written(tmp_path, ROOT.format(more=more, end=READS), switches=switches)
    assert [rule for rule, *_ in messages] == ([] if said is None else ["PLG608"])
    assert all(said is not None and said in message for _, message, _, _ in messages)
    assert written(tmp_path, ROOT.format(more=more, end=READS), switches=()) == []
    assert written(tmp_path, ROOT.format(more=more, end=READS), switches=None) == []


def test_plg609_is_not_asked_of_versions_without_budgets() -> None:
    assert found(PLUGINS / "plg609_fault.py", target=Target("vllm", (0, 19, 0))) == []


def test_plg603_a_cache_by_key_is_told_with_low_confidence(tmp_path: Path) -> None:
    text = """
        _IDS = {}

        def ids(tokenizer, text):
            if text not in _IDS:
                _IDS[text] = tokenizer.encode(text)
            return _IDS[text]
        """
    path = tmp_path / "plugin.py"
    path.write_text(dedent(text), encoding="utf-8")
    assert [(one.rule, one.confidence) for one in found(path) if one.rule == "PLG603"] == [("PLG603", "low")]


def test_only_the_parser_asked_for_is_judged(tmp_path: Path) -> None:
    text = ROOT.format(more="", end="pass") + PARSER + 'ReasoningParserManager.register_module("y", module=Mine2)'
    text = text.replace("class Mine(BaseT", "class Mine2(BaseT")
    assert [rule for rule, *_ in written(tmp_path, text, "x")] == ["PLG608"]
    assert written(tmp_path, text, "y") == []
