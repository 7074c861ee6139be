"""What is asked of a server to see its thinking budget work: one request a case, for every state and every limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .lab_families import PromptState
from .speech import Speaker

Api = Literal["chat", "completions", "messages"]

MAX_TOKENS = 256
"""The ceiling of a request that does not test ceilings."""
NOT_AN_INTEGER = "must be a non-negative integer or -1 for unlimited"
NOT_CONFIGURED = "thinking_token_budget is set but reasoning_config is not configured"
TOO_SMALL = "1024"
_SPENT = "what vLLM does, not what you want: a marker in the user's text spends the budget (BUD326)"
_QUESTION = "What is 2 + 2?"
_FILLER = " ".join(["on and on"] * 8)


@dataclass(frozen=True)
class Case:
    """One request.

    Args:
        name: says what is tried.
        state: what its prompt leaves the model in, in words of the table.
        body: the request's body, without model and stream.
        api: where it is sent.
        stream: whether the answer is streamed.
        refused: words that the refusal must hold; None where the request must be answered.
        together: cases of one such name are sent at the same time.
    """

    name: str
    state: str
    body: Mapping[str, Any]
    api: Api = "chat"
    stream: bool = False
    refused: str | None = None
    together: str | None = None
    note: str | None = None
    """What is to be said of it beside its outcome."""
    wants_prompt: bool = False
    """The body lacks its prompt: the token ids of the plain question's in this state are put in."""

    @property
    def is_plain(self) -> bool:
        """It asks the plain question, so that its prompt stands for its state."""
        return self.api == "chat" and self.body["messages"] == _body(None)["messages"]

    @property
    def budget(self) -> int | None:
        """The budget the server is to keep to, None where it is not given or no budget at all."""
        asked = self.body.get("thinking_token_budget")
        thinking = self.body.get("thinking")
        if self.api == "messages" and isinstance(thinking, dict):
            asked = thinking.get("budget_tokens")
        return asked if type(asked) is int else None

    @property
    def max_tokens(self) -> int:
        return int(self.body.get("max_tokens", MAX_TOKENS))


def lab_cases(lab: Speaker, budgets: Sequence[tuple[str, int | None]] | None) -> list[Case]:
    """The cases for a lab model.

    Args:
        lab: the model.
        budgets: (label, budget) pairs to try instead of the ladder around its natural length.
    """
    if lab.family.parser is None:
        return [
            _chat("budget without a parser", "open", 5, refused=NOT_CONFIGURED),
            _chat("no budget", "open", None),
            _chat("no budget, stream", "open", None, stream=True),
        ]
    ladder = list(budgets) if budgets else [(_name(budget), budget) for budget in _ladder(lab)]
    middle = next((budget for _, budget in ladder if budget is not None and budget > 1), 7)
    cases = [_chat(name, lab.family.on, budget, lab=lab) for name, budget in ladder]
    cases += [
        _chat(f"{name}, stream", lab.family.on, budget, lab=lab, stream=True)
        for name, budget in ladder
        if budget in (None, 0, middle)
    ]
    if budgets is None:
        cases += _states(lab, middle)
        cases += _limits(lab, middle)
        cases += _texts(lab, middle)
        cases += _endpoints(lab, middle)
    cases += [
        _chat("two at once, this one", lab.family.on, middle, lab=lab, together="two"),
        _chat("two at once, the other", lab.family.on, max(0, middle - 3), lab=lab, together="two", stream=True),
    ]
    return cases + list(_refusals(lab))


def real_cases(budgets: Sequence[tuple[str, int | None]]) -> list[Case]:
    """The cases for a model that says what it likes: the first, without a budget, shows how long it thinks."""
    greedy = {"temperature": 0, "seed": 1, "max_tokens": 4096}
    cases = [_chat("no budget", "default", None, more=greedy)]
    for name, budget in budgets:
        if budget is not None:
            cases.append(_chat(name, "default", budget, more=greedy))
            cases.append(_chat(f"{name}, stream", "default", budget, stream=True, more=greedy))
    return cases + [
        _chat(f"refused: {_shown(value)}", "default", value, refused=NOT_AN_INTEGER) for value in (64.5, -2)
    ]


def _ladder(lab: Speaker) -> list[int | None]:
    """None, -1 and 0, and what lies around the natural end: prompt-side tokens are charged, so it lies behind them."""
    end = lab.thinking_tokens + len(_opened(lab)) + 1
    return [None, -1, 0, 1, 5, end - 2, end - 1, end, end + 1, 10_000]


def _opened(lab: Speaker) -> list[int]:
    """The tokens behind the start marker where the block opens: in the prompt, or said as a label."""
    return lab.encode(lab.family.opened)[len(lab.markers.start) :]


def _states(lab: Speaker, middle: int) -> Iterator[Case]:
    on = lab.family.on
    for state in ("open", "silent", "closed"):
        if state != on:
            yield _chat(f"{_name(middle)}, {state} prompt", state, middle, lab=lab)
            yield _chat(f"no budget, {state} prompt", state, None, lab=lab)
    other: PromptState = "silent" if on != "silent" else "open"
    yield _chat(f"budget 0, {other} prompt", other, 0, lab=lab)
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    yield Case("thinking switched off", lab.family.off, _body(middle) | off)
    yield Case("thinking switched off, stream", lab.family.off, _body(middle) | off, stream=True)


def _limits(lab: Speaker, middle: int) -> Iterator[Case]:
    on = lab.family.on
    yield _chat("budget = max_tokens", on, middle, lab=lab, more={"max_tokens": middle})
    yield _chat("budget > max_tokens", on, middle + 9, lab=lab, more={"max_tokens": middle})
    yield _chat("max_tokens = budget + 1", on, middle, lab=lab, more={"max_tokens": middle + 1})
    yield _chat("max_tokens = budget + 3, stream", on, middle, lab=lab, stream=True, more={"max_tokens": middle + 3})


def _texts(lab: Speaker, middle: int) -> Iterator[Case]:
    """Markers where a user typed them, and thoughts that the prompt holds already."""
    start, end = "".join(lab.family.start), "".join(lab.family.end)
    typed = [{"role": "user", "content": f"What does {start} mean? {_FILLER}"}]
    spent = _chat(f"user typed {start}", "silent", middle, lab=lab, more={"messages": typed})
    yield replace(spent, note=_SPENT)
    both = [{"role": "user", "content": f"What do {start} and {end} mean?"}]
    yield _chat(f"user typed {start} and {end}", "silent", middle, lab=lab, more={"messages": both})
    begun = {"role": "assistant", "content": f"{lab.family.opened} 1 2 3"}
    yield Case(
        "a thought to be continued",
        "open",
        _body(middle)
        | {
            "messages": [{"role": "user", "content": _QUESTION}, begun],
            "add_generation_prompt": False,
            "continue_final_message": True,
        },
    )


def _endpoints(lab: Speaker, middle: int) -> Iterator[Case]:
    body = {"thinking_token_budget": middle, "max_tokens": MAX_TOKENS}
    yield Case("completions", lab.family.on, body, api="completions", wants_prompt=True)
    yield Case("completions, stream", lab.family.on, body, api="completions", wants_prompt=True, stream=True)
    question = {"messages": [{"role": "user", "content": _QUESTION}], "max_tokens": 1100}
    enabled = {"type": "enabled", "budget_tokens": 1024}
    state = lab.family.on if lab.family.thinks_unasked else lab.family.off
    yield Case("messages, budget_tokens 1024", state, question | {"thinking": enabled}, api="messages")
    yield Case(
        "messages, budget_tokens 512",
        state,
        question | {"thinking": enabled | {"budget_tokens": 512}},
        api="messages",
        refused=TOO_SMALL,
    )


def _refusals(lab: Speaker) -> Iterator[Case]:
    for value in (64.5, True, "64", -2):
        yield _chat(f"refused: {_shown(value)}", lab.family.on, value, lab=lab, refused=NOT_AN_INTEGER)


def _chat(
    name: str,
    state: PromptState | str,
    budget: Any,
    *,
    lab: Speaker | None = None,
    stream: bool = False,
    refused: str | None = None,
    together: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Case:
    body = _body(budget) | dict(more or {})
    if lab is not None:
        default = lab.family.on if lab.family.thinks_unasked else lab.family.off
        if state == lab.family.on and not lab.family.thinks_unasked:
            body["chat_template_kwargs"] = {"enable_thinking": True}
        elif state != default:
            body["chat_template_kwargs"] = {"prompt_state": state}
    return Case(name, state, body, stream=stream, refused=refused, together=together)


def _body(budget: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": _QUESTION}], "max_tokens": MAX_TOKENS}
    return body if budget is None else body | {"thinking_token_budget": budget}


def _name(budget: int | None) -> str:
    return "no budget" if budget is None else f"budget {budget}"


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
