"""What a template does with earlier reasoning that is handed back to it: kept, dropped, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..parsers.markers import MarkerPair
from .conversations import WEATHER, called_tool, tool_answer
from .render import Rendered, RenderRequest

FIELDS = ("reasoning", "reasoning_content", "inline")


@dataclass(frozen=True)
class History:
    """One way to hand earlier reasoning over, and what becomes of it: `kept`, `dropped` or `error`.

    `field` is the message's key, or `inline` where the thought stands between markers in the content. `tool_loop`: the
    thought led to a tool call, whose answer comes last. `next_user_turn`: it led to an answer, and a question follows.

    What a template sees is what transformers hands it: it fills `reasoning_content` from `reasoning`
    (5.24, chat_template_utils.py `_alias_reasoning_fields`), so a template that reads only the one keeps the other.
    """

    field: str
    tool_loop: str
    next_user_turn: str

    def as_json(self) -> dict[str, str]:
        """The row as the JSON report of `audit` shows it."""
        return {"field": self.field, "tool_loop": self.tool_loop, "next_user_turn": self.next_user_turn}


def requests(markers: MarkerPair, thought: str, *, by_code: bool) -> list[RenderRequest]:
    """A plain request of either kind for each of FIELDS, in that order: a tool loop, then a next user turn.

    Args:
        markers: those around an inline thought.
        thought: a text that nothing else contains.
        by_code: prompts are built by code, which sees no `reasoning_content` of its own: the server has renamed it
            (vLLM 0.33.0, entrypoints/openai/chat_completion/protocol.py).
    """
    made = []
    for field in FIELDS:
        turn, content = _told(field, thought, markers, by_code=by_code)
        made += [
            RenderRequest([*called_tool({**turn, "content": content or []}), tool_answer("21 degrees")], [WEATHER]),
            RenderRequest(
                [
                    {"role": "user", "content": "What is 2 + 2?"},
                    {**turn, "content": f"{content}It is 4."},
                    {"role": "user", "content": "And 3 + 3?"},
                ]
            ),
        ]
    return made


def read(results: Sequence[Rendered], thought: str) -> tuple[History, ...]:
    """The rows, from what `requests` rendered to."""
    fates = ["error" if r.text is None else "kept" if thought in r.text else "dropped" for r in results]
    return tuple(History(field, *fates[2 * at : 2 * at + 2]) for at, field in enumerate(FIELDS))


def _told(field: str, thought: str, markers: MarkerPair, *, by_code: bool) -> tuple[Mapping[str, Any], str]:
    """The assistant's turn without its content, and what its content begins with."""
    turn = {"role": "assistant"}
    if field == "inline":
        return turn, f"{markers.start}{thought}{markers.end}\n\n"
    return {**turn, **dict.fromkeys(FIELDS[:2] if by_code else (field,), thought)}, ""
