"""Stands for a vLLM in another interpreter where none is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reasonctl.parsers.differential.answers import model_answer
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.target import Target


class Twin:
    """Another interpreter that answers as the models do, with `change` made to the answers."""

    def __init__(self, change: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer) -> None:
        self._change = change
        self._vocabularies: dict[str, SpecVocabulary] = {}
        self.runs = 0

    def ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
        if op == "tokenizer":
            spec = fields["spec"]
            self._vocabularies[fields["key"]] = SpecVocabulary(
                Spec(
                    tuple(bytes(piece) if isinstance(piece, list) else piece for piece in spec["pieces"]),
                    tuple((text, flag) for text, flag in spec["markers"]),
                    spec["chat_template"],
                    spec["init_kwargs"],
                )
            )
            return {"ok": True, "id": 1}
        self.runs += 1
        if fields["tokenizer"] not in self._vocabularies:
            return {"failed": "KeyError: no such tokenizer", "id": 2}
        return {**self._change(model_answer(fields, self._vocabularies[fields["tokenizer"]], Target())), "id": 3}

    def crash(self) -> None:
        self._vocabularies.clear()
