"""What the parsers outside the parser engine look for."""

from __future__ import annotations

from .family import Family

_LEGACY = Family()

_GRANITE = Family(
    start="Here is my thought process:",
    end="Here is my response:",
    think_tokens=(),
    pieces=(
        "Here", "Here's", "Here is", "'s", " is", " my", " my thought", " thought", " process", " process:",
        " response", " response:", "He", "re", " re", "spon", "se:", " is my response:", "ess: ",
    ),
    outputs=(
        "Here is my thought process: foo Here is my response: bar",
        "Here's my thought process:\nLet me see: two.\nHere's my response:\n\nIt is: 4.",
        "Here is my thought process:Here is my response:x",
        "Here is my thought process: Here is my response: x: y",
        "Here's my thought process:aHere's my response:",
        "Here is my thought process: Here is Here is my respo Here's my response: Here is my response: b",
        "It is 4. Here is my thought process: a Here is my response: b",
        "Here Here is my thought process: no",
        "Here is my thought process: a. Here is my thought process: b Here's my res ponse: Here is my response:c",
    ),
    shards=(
        "Here", "Here's", "Here is my", "Here is my re", "Here's my response", "He", "Here is", ":",
        "Here is my thought", "Here's my thought process:", "Here's my response:",
        "H", "r", " my response:", "Here's my thought process",
    ),
)  # fmt: skip
_HUNYUAN = Family(
    start="<think>\n",
    end="\n</think>\n<answer>\n",
    think_tokens=(),
    tools=("\n</answer>", "<answer>"),
    tool_tokens=(),
    calls=("\n</answer>", "\\n</answer>"),
    fixed=(
        (14023, "<th"), (771, "ink"), (397, ">\n"), (1363, ">\n\n"), (198, "\n"), (524, "</"), (27963, "think"),
        (27, "<"), (9399, "answer"), (29, ">"),
    ),
    outputs=(
        "<think>\nplan\n</think>\n<answer>\nfour\n</answer>",
        "<think>\n\n</think>\n<answer>\nfour\n</answer>",
        "<think>\nplan</think>\n<answer>\nfour",
        "<think>\nplan\n</think>\n<answer>\nfour\\n</answer>",
        "x<think>\nplan\n</think>\n<answer>\nfour\n</answer>y\n</answer>",
        "<think>\n\n</think>\n<answer>\n\n</answer>",
        "<think>\na\n</answer>b\n</think>\n<answer>\nc",
    ),
    shards=(
        "<think>", "</think>", "\n</think>", "</think>\n<answer>\n", "\n", "<", ">\n", "</", "answer", "<answer>\n",
        "\n</answer>", "\\n</answer>", "think", "<answer>answer", ">\n\n", "ink", "<th", "\n</think>\n<answer>answer",
    ),
)  # fmt: skip
_OLMO = Family(
    think_tokens=(),
    pieces=(" </", "k>", "<t", "think>", "hi", "hink", "><"),
    outputs=(
        "<think>plan</think>four",
        "plan</think>four",
        "<think>a</think>b<think>c</think>d",
        "x<think>a <think>b</think>c </think>d",
        "a hi h i in nk k <t hi> think> <think</think>",
        "plan </think>\n\n4",
    ),
    shards=("<think>", "</think>", " </", "</", "think", ">", "<", "t", "hi", "<th", "k>", "ink>", "</think", "<<"),
)  # fmt: skip
_K2_HORIZON = Family(
    start="<ifm|think>",
    end="</ifm|think>",
    think_tokens=(
        "<ifm|think>", "</ifm|think>", "<ifm|think_fast>", "</ifm|think_fast>", "<ifm|think_faster>",
        "</ifm|think_faster>",
    ),
    tools=("<ifm|tool_calls>", "</ifm|tool_calls>", "<ifm|think_fast>", "</ifm|think_fast>", "</ifm|think_faster>"),
    tool_tokens=("<ifm|tool_calls>",),
    calls=("<ifm|tool_calls>f(1)</ifm|tool_calls>", "<ifm|tool_calls>"),
    switches=(
        {"reasoning_effort": "high"}, {"reasoning_effort": "medium"}, {"reasoning_effort": "low"},
        {"reasoning_effort": "none"}, {"reasoning_effort": None}, {"reasoning_effort": ["high"]}, {},
    ),
    pieces=("<ifm", "|think", "|tool_calls>", "</ifm", "_fast>", "er>"),
    outputs=(
        "<ifm|think>plan</ifm|think>four",
        "<ifm|think_fast>plan</ifm|think_fast>four",
        "plan</ifm|think_faster>four",
        "plan<ifm|tool_calls>f(1)</ifm|tool_calls>",
        "a<ifm|tool_calls>f</ifm|think>b",
        "<ifm|think><ifm|think>a</ifm|think></ifm|think>",
    ),
    shards=("<ifm", "<ifm|", "<ifm|think", "</ifm|think", "</ifm|tool", "<ifm|tool_call", "<", "</", ">", "_fast>"),
)  # fmt: skip
_MINIMAX_M3 = Family(
    start="<mm:think>",
    end="</mm:think>",
    tools=("<minimax:tool_call>", "</minimax:tool_call>"),
    tool_tokens=("<minimax:tool_call>",),
    calls=("<minimax:tool_call><invoke name=f></invoke></minimax:tool_call>",),
    switches=({"thinking_mode": "enabled"}, {"thinking_mode": "enabled"}, {"thinking_mode": "disabled"}),
    pieces=("<mm", ":think", "</mm", "mm:", "think>"),
    outputs=(
        "<mm:think>plan</mm:think>four",
        "plan</mm:think>four",
        "</mm:think>four",
        "four",
        "plan <mm:think>again</mm:think>four",
        "<mm:think>a</mm:think>b<mm:think>c</mm:think>d",
        "<mm:think><mm:think>a</mm:think>b</mm:think>",
        "</mm:think><mm:think>a</mm:think>b",
        "a</mm:think>b<mm:think>c",
        "plan <mm:think>plan",
    ),
    shards=("<mm", "<mm:", "<mm:think", "</mm:think", "</", "</mm", "<", ">", "</mm:", "think>"),
)
_KIMI_K3 = Family(
    start="<|open|>think<|sep|>",
    end="<|close|>think<|sep|>",
    think_tokens=("<|open|>", "<|close|>", "<|sep|>"),
    turns=("<|open|>message<|sep|>", "<|close|>message<|sep|>"),
    tools=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|open|>tools<|sep|>"),
    tool_tokens=(),
    calls=(
        "<|open|>tools<|sep|><|open|>call tool=f<|sep|>1<|close|>call<|sep|><|close|>tools<|sep|>",
        "<|open|>response<|sep|>four<|close|>response<|sep|><|close|>message<|sep|>",
    ),
    pieces=("response", "message", " think", "think ", " response ", "res", "<|", "|>", "open", "close", "<|sep"),
    outputs=(
        "<|open|>think<|sep|>plan<|close|>think<|sep|><|open|>response<|sep|>four<|close|>response<|sep|>"
        "<|close|>message<|sep|>",
        "plan<|close|>think<|sep|><|open|>response<|sep|>four<|close|>response<|sep|><|close|>message<|sep|>",
        "<|open|> think <|sep|>plan<|close|> think\n<|sep|><|open|> response<|sep|>four<|close|>  response <|sep|>",
        "<|open|>response<|sep|>four<|close|>response<|sep|>more<|close|>message<|sep|>",
        "<|open|>response<|sep|>a<|close|> mess<|close|>response<|sep|>age<|sep|>b<|close|>response <|sep|>c",
        "foo<|open|>think<|sep|>foobar<|close|>think<|sep|>x",
        "a<|close|>response<|sep|>b<|close|> message<|sep|>c<|open|>response<|sep|>abc",
        "a<|close|>think<|sep|>b<|open|>think<|sep|>c<|close|>think<|sep|>d",
    ),
    shards=(
        "<|open|>", "<|close|>", "<|sep|>", "think", "response", "message", " ", "\n", "<|", "<|close|> ", "<|open|>th",
        "<|close|>response", "<|close|>message ", "<|open|>response", "<", "<|close|>think", "|>", "\x1c",
    ),
)  # fmt: skip

_MUSE = Family(
    start=" to=self<|message|>",
    end="<|eom|>",
    think_tokens=("<|message|>", "<|eom|>"),
    turns=("<|start|>", "<|eot|>"),
    tools=(
        "<|start|>assistant", "<|start|>user", "<|eot|>", " to=user<|message|>", " to=skill.f<|message|>",
        "<atem:function_calls>", "<atem:invoke", " to=commentary<|message|>", "<|message|>", " to=developer<|message|>",
    ),
    tool_tokens=(),
    calls=(
        "<|start|>assistant to=skill.f<|message|><atem:function_calls><atem:invoke name=f></atem:invoke>"
        "</atem:function_calls><|eot|>",
        " to=skill<|message|><atem:invoke name=f><|eom|>",
        " to=user<|message|>four <atem:invoke x",
        "<atem:function_calls>",
        " to=skill<|message|>no call<|eom|>",
    ),
    pieces=(
        " to", " to=", "to=", "self", "user", " to=self", " to=user", "assistant", " t", "commentary", "skill", "<|",
        "<atem", ":invoke", ":function_calls>", "<|message|", "<|eom", "|>", "message", "<|start|>assis", "tant",
    ),
    outputs=(
        " to=self<|message|>plan it<|eom|><|start|>assistant to=user<|message|>It is 4.<|eot|>",
        " to=self<|message|>plan<|eom|><|start|>assistant to=self<|message|>more<|eom|> to=user<|message|>4\n",
        " to=self<|message|>plan to=skill<|message|><atem:invoke name=f></atem:invoke><|eot|>",
        " to=self<|message|>plan<|eom|><|start|>assistant to=skill.f<|message|><atem:function_calls>x<|eot|>",
        "<|message|>plan<|eom|> to=commentary<|message|>I look.<|eom|> to=skill<|message|><atem:invoke a<|eom|>",
        " to=user<|message|>four <atem:invoke x to=user<|message|>five<|eom|>",
        " to=self<|message|>a <atem:invoke b<|eom|> to=user<|message|>c<|eot|>",
        "<|start|>user<|message|>hi<|eom|><|start|>assistant to=self<|message|>p<|eom|> to=x<|message|><atem:invoke>",
        "to=sk to=self<|message|>x<|eom|>ill<|message|><atem:invto=self<|message|>y<|eom|>oke z",
        "to=skto=self<|message|>x<|eom|>ill<|message|><atem:invto=self<|message|>y<|eom|>oke z",
        "<|start|>assisto=self<|message|>x<|eom|>tant \nto=self<|message|>a to=k<|message|><atem:invoke",
        "to=seto=self<|message|>x<|eom|>lf<|message|>abc <atem:invoke<|eom|> to=k<|message|><atem:invoke q",
        " to=user<|message|>a to=x to=y to\nto=z< t<|eom|>",
        "xto=skill<|message|>a to\n\nb t\nc to=user\n<|eot|>to=self<|message|>xto=skill b",
        "plain words and no header",
    ),
    shards=(
        "to=", "t", "to", " to=", " to", " t", "\n", "to=self", "to=user", "to=skill", "<|message|>", "<|eom|>",
        "<|start|>", "<|start|>assistant", "<|start|>assis", "assistant", "tant", "<|", "<", "|>", "<atem:inv", "oke",
        "<|eot|>", "<atem:function_calls>", "self", "user", "to=self<|message|>", "to=skill<|message|>",
        "<|start|>user", "<atem:invoke", "to=to=self<|message|>",
        "<|start|>assistant\n", "to=commentary<|message|>", "to=developer<|message|>", "\x1c",
    ),
)  # fmt: skip

TEXT_FAMILIES: dict[str, Family] = {
    "deepseek_r1": _LEGACY,
    "step5": _LEGACY,
    "deepseek_v3": _LEGACY,
    "holo2": _LEGACY,
    "step3": _LEGACY,
    "minimax_m2_append_think": _LEGACY,
    "poolside_v1": Family(turns=("<assistant>", "<user>")),
    "ernie45": Family(
        tools=("<response>", "</response>"),
        tool_tokens=("<response>", "</response>", "<0x0A>"),
        calls=("\n<response>\nfour\n</response>\n",),
    ),
    "hy_v3": Family(
        switches=({"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}, {"reasoning_effort": "none"}),
        init_kwargs=({}, {"token_suffix": ":opensource"}),
    ),
    "hy_v4": Family(
        # It takes its suffix from the first structural token of the vocabulary: its think markers are the only ones.
        tool_tokens=(),
        switches=({"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}, {"reasoning_effort": "none"}),
        init_kwargs=(
            {},
            {"token_suffix": ":6124c78e"},
            {"model_specific_special_tokens": {"think_begin_token": "<think>"}},
        ),
    ),
    "granite": _GRANITE,
    "hunyuan_a13b": _HUNYUAN,
    "olmo3": _OLMO,
    "k2_horizon": _K2_HORIZON,
    "minimax_m3": _MINIMAX_M3,
    "kimi_k3": _KIMI_K3,
    "muse": _MUSE,
    "musespark1x": _MUSE,
    "muse_glimmer": _MUSE,
}
