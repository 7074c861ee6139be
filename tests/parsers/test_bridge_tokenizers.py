"""What of a tokenizer is handed to another interpreter, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasonctl.parsers.bridge.tokenizers import Tokenizers
from reasonctl.prompts.asked import Served
from reasonctl.prompts.model import load_model


class Flags:
    """A serve command with a tokenizer mode."""

    def text(self, flag: str) -> str | None:
        return {"tokenizer-mode": "slow"}.get(flag)

    def on(self, flag: str) -> bool:
        return False


def test_a_tokenizer_goes_over_in_the_mode_it_is_served_with() -> None:
    told: list[tuple[str, Mapping[str, Any]]] = []

    def tell(op: str, **fields: Any) -> Mapping[str, Any]:
        told.append((op, fields))
        return {}

    keys = Tokenizers()
    model = load_model("fixture:qwen3")
    assert model.tokenizer is not None
    Served().tell(model)
    plain = keys.key(model.tokenizer, None, tell)
    Served().with_flags(Flags()).tell(model)
    slow = keys.key(model.tokenizer, None, tell)
    assert plain != slow
    assert [(op, fields["key"], fields["mode"]) for op, fields in told] == [
        ("tokenizer", plain, "auto"),
        ("tokenizer", slow, "slow"),
    ]
    assert "tokenizer.json" in told[0][1]["files"]
    assert keys.key(model.tokenizer, None, tell) == slow
    Served().tell(model)
    assert keys.key(model.tokenizer, None, tell) == plain
    assert len(told) == 2
