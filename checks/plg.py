"""The PLG rules: is this reasoning-parser plugin one that vLLM can load, and that splits as it should?

`plg_static` finds them in the source, `plg_run` by running the parser.
"""

from __future__ import annotations

from .rule import Rule, register

_BASE = "vLLM 0.33.0 vllm/reasoning/abs_reasoning_parsers.py"
_BASIC = "vLLM 0.33.0 vllm/reasoning/basic_parsers.py"
_DELEGATING = "vLLM 0.33.0 vllm/parser/abstract_parser.py"
_IMPORT = "vLLM 0.33.0 vllm/utils/import_utils.py"
_SERVING = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py"
_PLUGINS = "vLLM 0.33.0 vllm/plugins/__init__.py"


@register
class NotImportable(Rule):
    id = "PLG601"
    slug = "not-importable"
    severity = "error"
    what = """The plugin cannot be imported by the vLLM it is for: a syntax error, a module or a name that this vLLM
        does not have, or code of its own that raises while the file is loaded."""
    why = """vLLM logs the traceback of a plugin that cannot be loaded and goes on without it. What the operator sees is
        that the parser's name is unknown."""
    example = """
        my_parser.py:5:1: error PLG601 not-importable: vLLM 0.33.0 has no module
        vllm.entrypoints.openai.protocol
        """
    instead = """Import ReasoningParser, ReasoningParserManager from vllm.reasoning and DeltaMessage from the module
        that the target version has it in; do no work while the file is loaded."""
    sources = (_IMPORT, "vLLM 0.33.0 vllm/entrypoints/generate/base/protocol.py")


@register
class NotRegistered(Rule):
    id = "PLG602"
    slug = "not-registered"
    severity = "error"
    what = "The plugin registers no parser under the name asked for, or a class that is not there."
    why = """The server refuses to start: `invalid reasoning parser: NAME (chose from {...})`. A class without a
        registration, and a name that differs by a dash, look right in every review."""
    example = """
        my_parser.py:8:2: error PLG602 not-registered: my_parser.py registers no parser 'my-model'; it
        has 'my_model'
        """
    instead = (
        'Put `@ReasoningParserManager.register_module("NAME")` on the class, with the very name the server is given.'
    )
    sources = (_BASE, _PLUGINS)
    facts = ("plugin-entry-points", "headless-plugin")


@register
class ClassLevelState(Rule):
    id = "PLG603"
    slug = "class-level-state"
    severity = "error"
    what = "A method of the parser changes a value that belongs to its class or to the module."
    why = """vLLM makes a parser for each request and each choice, and one server process runs many at once. What the
        class or the module holds is the same for all of them: one request's state reaches another's answer."""
    example = """
        class MyParser(ReasoningParser):
            buffer = []                       # one list for every request
            def extract_reasoning_streaming(self, ...):
                self.buffer.append(delta_text)
        """
    instead = "Set it in `__init__` on self; a constant of the class may stay where no method changes it."
    sources = (_SERVING, _DELEGATING)


@register
class MethodMissing(Rule):
    id = "PLG604"
    slug = "method-missing"
    severity = "error"
    what = """A method that the server calls is missing from the parser, or takes other arguments than the server
        gives."""
    why = """ReasoningParser marks its methods abstract but is no ABC, so that nothing is enforced: the class is made,
        the missing method returns None, and the first request of that kind raises or is answered without a split."""
    example = """
        my_parser.py:9:7: error PLG604 method-missing: MyParser has no extract_content_ids: the base
        class's returns None
        """
    instead = """Write is_reasoning_end, extract_content_ids, extract_reasoning and extract_reasoning_streaming with the
        base class's parameters, or take BaseThinkingReasoningParser as the base and give start_token and end_token."""
    sources = (_BASE, _BASIC, _DELEGATING)


@register
class BaseNeedsSingleToken(Rule):
    id = "PLG605"
    slug = "base-needs-single-token"
    severity = "error"
    what = "The parser's base class asks for markers that are one token each, and this model's tokenizer lacks one."
    why = """BaseThinkingReasoningParser looks its markers up in the vocabulary when it is made. Without them it raises,
        for the first request or at the start of the server (`could not locate think start/end tokens`)."""
    example = """
        my_parser.py:14:16: error PLG605 base-needs-single-token: '<think>' is 3 tokens here
        ('<th', 'ink', '>')
        """
    instead = """Inherit from ReasoningParser and look for the markers in the text, or for the sequence of their ids;
        `reasonctl new-parser` writes such a parser."""
    sources = (_BASIC,)


@register
class LeaksBetweenRequests(Rule):
    id = "PLG606"
    slug = "leaks-between-requests"
    severity = "error"
    what = "Two instances of the parser, fed in turns, give other splits than each of them alone."
    why = "A server has many requests at once: texts of one reach the client of another."
    example = "request A alone: reasoning 'Add two.'; beside request B: reasoning 'Add two.Divide.'"
    instead = "Keep everything a request needs on self, and set it in `__init__`."
    sources = (_SERVING, _DELEGATING)


@register
class PluginStreamDiffers(Rule):
    id = "PLG607"
    slug = "plugin-stream-differs"
    severity = "error"
    what = """The parser's streamed split differs from its full one, depends on how many tokens share a delta, lets a
        marker through, or loses text."""
    why = """The same answer arrives in one shape from `stream: true` and in another without it. Deltas of several
        tokens are ordinary: speculative decoding, multi-token prediction, a busy server, and stop strings make them."""
    example = """
        full:   reasoning 'Add.'  content 'It is 4.'
        3 tokens a delta: reasoning 'Add.</think>'  content ' is 4.'
        """
    instead = """Decide by what has come so far, not by the delta: hold back what may be the beginning of a marker, and
        split a delta that holds one."""
    sources = (_DELEGATING, _BASIC)


@register
class PromptStateWrong(Rule):
    id = "PLG608"
    slug = "prompt-state-wrong"
    severity = "error"
    what = """What the parser reads from the prompt, or from the request's kwargs, is not what the template made of
        them: `is_reasoning_end` has no answer or a wrong one, or the thinking switch is not looked at."""
    why = """Before the first token the server asks `is_reasoning_end(prompt)`. Where the answer is wrong, an answer
        without a thought is filed as reasoning, a grammar never starts or starts inside the thought, and streaming
        goes another way than the full response."""
    example = """
        my_parser.py:21:5: error PLG608 prompt-state-wrong: is_reasoning_end returns None
        """
    instead = """Answer from the ids you are given: True where the last marker among them is the end marker, or where
        the request's kwargs switch thinking off; read `chat_template_kwargs` in `__init__`."""
    sources = (_DELEGATING, "vLLM 0.33.0 vllm/v1/structured_output/__init__.py")
    facts = ("parser-reads-kwargs", "full-reads-prompt")


@register
class NoDelimiterStrings(Rule):
    id = "PLG609"
    slug = "no-delimiter-strings"
    severity = "warning"
    what = "The parser gives no reasoning_start_str or no reasoning_end_str when it is built without kwargs."
    why = """Thinking budgets take their markers from these. Without them the server starts, and every request with a
        thinking_token_budget is refused with HTTP 400."""
    example = """
        my_parser.py:9:7: warning PLG609 no-delimiter-strings: MyParser has no reasoning_start_str and
        no reasoning_end_str
        """
    instead = "Add both properties; each returns the marker's text, whatever the request's kwargs are."
    versions = "vLLM 0.20 and newer make the budget's configuration from the parser"
    sources = ("vLLM 0.33.0 vllm/config/reasoning.py", _BASE)
    facts = ("budget-strings-from-parser",)


@register
class EmptyDelta(Rule):
    id = "PLG610"
    slug = "empty-delta"
    severity = "warning"
    what = "The parser sends deltas that hold neither reasoning nor content."
    why = """Each is a chunk on the wire that says nothing; clients that take the first chunk with a field for the start
        of the answer are misled by an empty one."""
    example = "the delta '</think>' gives DeltaMessage(reasoning='', content=None)"
    instead = "Return None where nothing is to be told."
    sources = (_BASIC, _DELEGATING)


@register
class RaisedHungOrExited(Rule):
    id = "PLG611"
    slug = "raised-hung-or-exited"
    severity = "error"
    what = "The parser raised, gave no answer in time, or ended its process, for an output that a model can write."
    why = "A parser runs inside the server: what raises costs the request, what hangs or exits costs all of them."
    example = "output '<think>': IndexError: list index out of range"
    instead = "Take any text and any ids, the empty ones included; never wait, exit or start processes in a parser."
    sources = (_DELEGATING,)
