"""A tokenizer that is known only through a running server: cut by its `/tokenize`, joined by its `/detokenize`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from ..errors import ReasonctlError
from ..parsers.assumed import table_markers
from ..parsers.detokenizer import spelled_bytes
from .together import together
from .tokenizer import LoadCheck

_TOGETHER = 4
_BEHIND = "a"
"""A token's own text shows behind this one: the first of a text may lose a blank."""
_PART = "\N{REPLACEMENT CHARACTER}"


class ServedTokenizer:
    """What parsers and prompt states ask of a tokenizer (`parsers.base.Vocabulary`), over one server.

    Texts of tokens are put together here from the spellings that `/tokenize` tells (`return_token_strs`), as long as
    that gives what `/detokenize` gives; else each token is asked for once. Which tokens are special, so that decoding
    may leave them out, no server tells: `special_ids` is what its answers have shown.

    Args:
        ask: posts a body to one of the server's paths; gives the JSON object that it answers, or raises.
        model: the name it serves the model under.
    """

    toy = False
    size = sys.maxsize
    """Not told: any id may be one."""
    chat_template: str | None = None
    init_kwargs: Mapping[str, Any] = MappingProxyType({})
    special_tokens: Mapping[str, int] = MappingProxyType({})

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], Mapping[str, Any]], model: str) -> None:
        self.special_ids: frozenset[int] = frozenset()
        self._ask = ask
        self._model = model
        self._ids: dict[str, tuple[int, ...]] = {"": ()}
        self._spellings: dict[int, str] = {}
        self._spelled: bool | None = None
        self._alone: dict[int, str] = {}
        self._whole: dict[tuple[int, ...], str] = {(): ""}
        self._vocab: _Vocabulary | None = None

    @property
    def vocab(self) -> Mapping[str, int]:
        """Every token to its id, in its own spelling; what it holds is asked for as it is looked up."""
        if self._vocab is None:
            together(self.encode, sorted(table_markers()), most=_TOGETHER)
            self._vocab = _Vocabulary(self, self._spellings)
        return self._vocab

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without bos or eos; markers in it become their added tokens. Raises EndpointError."""
        if text not in self._ids:
            asked = {"model": self._model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
            value = self._ask("/tokenize", asked)
            ids = ids_of(value)
            self.learn(ids, value.get("token_strs"))
            self._ids[text] = ids
        return list(self._ids[text])

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """Ids of `text`, and for each the offset in `text`, in characters, at which its token ends.

        Counted from the end of the text: a blank that is lost before the first token moves none of the others.
        """
        ids = self.encode(text)
        sizes = [len(self.decode([one])) for one in ids]
        behind = list(accumulate(reversed(sizes[1:]), initial=0))
        return ids, [max(0, len(text) - size) for size in reversed(behind[: len(ids)])]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of a run of ids. Raises EndpointError."""
        shown = tuple(one for one in ids if not (skip_special_tokens and one in self.special_ids))
        if self._spelled is None and len(shown) > 1 and all(one in self._spellings for one in shown):
            self._spelled = self._joined(shown) == self._detokenized(shown)
        if self._spelled and all(one in self._spellings for one in shown):
            return self._joined(shown)
        if shown in self._whole or (self._spelled is None and len(shown) > 1):
            return self._detokenized(shown)
        parts = [self._shown_alone(one) for one in shown]
        return self._detokenized(shown) if any(_PART in part for part in parts) else "".join(parts)

    def learn(self, ids: Sequence[int], spellings: Any) -> None:
        """Take the spellings of ids, where a server told them."""
        if isinstance(spellings, list) and len(spellings) == len(ids):
            self._spellings |= {one: text for one, text in zip(ids, spellings, strict=True) if isinstance(text, str)}

    def take_special(self, ids: frozenset[int]) -> None:
        """Leave these out where decoding skips special tokens: what answers have shown."""
        self.special_ids = ids

    def take(self, text: str, ids: Sequence[int]) -> None:
        """Keep the ids that the server gave for a prompt of this text."""
        self._ids.setdefault(text, tuple(ids))

    def spelling(self, token_id: int) -> str | None:
        """How the server spells a token, None where it does not tell."""
        return self._spellings.get(token_id)

    def start_check(self, python: str = sys.executable) -> None:
        """Nothing to start: the server's own tokenizer is at work."""

    def check(self, python: str = sys.executable) -> LoadCheck:
        """The server's own tokenizer is the loader, so nothing can differ."""
        return LoadCheck("the server", built=type(self).__name__)

    def _joined(self, ids: Sequence[int]) -> str:
        return b"".join(spelled_bytes(self._spellings[one]) for one in ids).decode("utf-8", "replace")

    def _shown_alone(self, token_id: int) -> str:
        if token_id not in self._alone:
            behind = self.encode(_BEHIND)
            with_it, without = self._detokenized((*behind, token_id)), self._detokenized(tuple(behind))
            self._alone[token_id] = with_it[len(without) :] if with_it.startswith(without) else with_it
        return self._alone[token_id]

    def _detokenized(self, ids: tuple[int, ...]) -> str:
        if ids not in self._whole:
            text = self._ask("/detokenize", {"model": self._model, "tokens": list(ids)}).get("prompt")
            if not isinstance(text, str):
                raise ReasonctlError("the server's /detokenize answers without a text")
            self._whole[ids] = text
        return self._whole[ids]


class _Vocabulary(Mapping[str, int]):
    """Looks tokens up at the server; goes through those that it has told so far."""

    def __init__(self, tokenizer: ServedTokenizer, told: Mapping[int, str]) -> None:
        self._tokenizer = tokenizer
        self._told = told

    def __getitem__(self, text: str) -> int:
        ids = self._tokenizer.encode(text)
        if len(ids) != 1 or (self._tokenizer.spelling(ids[0]) or self._tokenizer.decode(ids)) != text:
            raise KeyError(text)
        return ids[0]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._told.values()))

    def __len__(self) -> int:
        return len(self._told)


def ids_of(value: Mapping[str, Any]) -> tuple[int, ...]:
    """The token ids in an answer of `/tokenize`. Raises ReasonctlError where it holds none."""
    ids = value.get("tokens")
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        raise ReasonctlError("the server's /tokenize answers without tokens")
    return tuple(ids)
