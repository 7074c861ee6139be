"""How a written test drives a parser: as vLLM's chat server does (see `parsers/bridge/far/layouts.py`)."""

from __future__ import annotations

DRIVER = '''@functools.cache
def parser_class():
    if PLUGIN is not None:
        ReasoningParserManager.import_reasoning_parser(str(PLUGIN))
    harmony = "is_harmony" in inspect.signature(ParserManager.get_parser).parameters and NAME == "openai_gptoss"
    return ParserManager.get_parser(reasoning_parser_name=NAME, **({"is_harmony": True} if harmony else {}))


def make(kwargs):
    """A parser for one request, as the server makes it."""
    config = {"model_config": None} if "model_config" in inspect.signature(parser_class().__init__).parameters else {}
    return parser_class()(tokenizer(), None, chat_template_kwargs=dict(kwargs), **config)


def encode(text):
    return tokenizer().encode(text, add_special_tokens=False)


def reasoning_parser(kwargs):
    """The reasoning parser alone, as the structured-output manager makes it."""
    parser_class()
    return ReasoningParserManager.get_reasoning_parser(NAME)(tokenizer(), chat_template_kwargs=dict(kwargs))


def prepared(kwargs, prompt):
    """The request as the renderer leaves it."""
    request = ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "hi"}], chat_template_kwargs=dict(kwargs)
    )
    parser = make(kwargs)
    if hasattr(parser, "set_prompt_token_ids"):
        parser.set_prompt_token_ids(list(prompt))
    return parser.adjust_request(request=request)


def full(text, ids, prompt, kwargs):
    """(reasoning, content) of a whole output."""
    request, parser = prepared(kwargs, prompt), make(kwargs)
    if hasattr(parser, "set_prompt_token_ids"):
        parser.set_prompt_token_ids(list(prompt))
    more = {"model_output_token_ids": list(ids)} if "model_output_token_ids" in _parameters(parser.parse) else {}
    reasoning, content, *_ = parser.parse(text, request, enable_auto_tools=False, **more)
    return reasoning, content


def messages(deltas, prompt, kwargs):
    """What each delta says to the client."""
    request, parser = prepared(kwargs, prompt), make(kwargs)
    found = []
    for number, (text, ids) in enumerate(deltas, 1):
        last = {"finished": number == len(deltas)} if "finished" in _parameters(parser.parse_delta) else {}
        found.append(parser.parse_delta(text, list(ids), request, prompt_token_ids=list(prompt), **last))
    return found


def streamed(deltas, prompt, kwargs):
    """(reasoning, content) of a stream."""
    return added_up(messages(deltas, prompt, kwargs))


def added_up(said):
    sides = ([getattr(one, side) or "" for one in said if one is not None] for side in ("reasoning", "content"))
    return tuple("".join(side) for side in sides)


def same(split, reasoning, content):
    """Equal but for white space at the ends; nothing and None are one."""
    assert tuple((part or "").strip() for part in split) == ((reasoning or "").strip(), (content or "").strip())


def same_without_markers(split, reasoning, content):
    """Equal but for white space and markers."""
    def plain(text):
        for marker in filter(None, (START, END)):
            text = (text or "").replace(marker.strip(), "")
        return "".join((text or "").split())

    assert tuple(map(plain, split)) == (plain(reasoning), plain(content))


def no_marker(split):
    for marker in filter(None, (START, END)):
        assert marker.strip() not in "".join(part or "" for part in split)


def all_there(split, text):
    """Reasoning and content add up to the output, but for markers and white space."""
    same_without_markers(("".join(part or "" for part in split), ""), text, "")


def grammar_starts(ids, prompt, kwargs):
    """The number of tokens from which on a grammar binds; None where it never does."""
    parser, every = reasoning_parser(kwargs), list(prompt)
    for number, token_id in enumerate(ids, 1):
        every.append(token_id)
        if parser.is_reasoning_end_streaming(list(every), [token_id]):
            return number
    return None


def in_turns(one, other, prompt, kwargs):
    """Two requests, a delta of each in turns: what the first one's client gets."""
    request, parsers = prepared(kwargs, prompt), (make(kwargs), make(kwargs))
    found = []
    for number in range(max(len(one), len(other))):
        for parser, deltas in zip(parsers, (one, other)):
            if number < len(deltas):
                text, ids = deltas[number]
                last = {"finished": number == len(deltas) - 1} if "finished" in _parameters(parser.parse_delta) else {}
                said = parser.parse_delta(text, list(ids), request, prompt_token_ids=list(prompt), **last)
                found += [said] if deltas is one else []
    return added_up(found)


def empty(deltas, said):
    """Deltas with text of which nothing is told, although something is sent."""
    pairs = zip(deltas, said)
    return [text for (text, _), one in pairs if text and one is not None and not (one.reasoning or one.content)]


def _parameters(function):
    return inspect.signature(function).parameters
'''
