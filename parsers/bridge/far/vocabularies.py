"""Tokenizers for the parsers: built from a description, from a model's files, or from the texts of tokens."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runner import Far

_WORDS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


def tokenizer(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """Keep a tokenizer under `key`: by `spec` (see `from_spec`), `files` (see `from_files`) or `vocab`
    and `markers` (see `Texts`)."""
    if "spec" in request:
        made: Any = cached(from_spec(request["spec"]))
    elif "files" in request:
        made = from_files(request["files"], request.get("mode", "auto"))
    else:
        made = Texts(request["vocab"], request["markers"])
    far.tokenizers[request["key"]] = made
    return {"class": type(made).__name__}


def texts(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """The tokens of the next output for a tokenizer made from texts: `words`, texts by id."""
    far.tokenizers[request["key"]].use(request["words"])
    return {}


def forget(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """Let go of the tokenizer `key`."""
    far.tokenizers.pop(request["key"], None)
    return {}


def loads(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """What transformers' AutoTokenizer makes of `files` (see `from_files`), on each of `texts`."""
    import transformers

    answer: dict[str, Any] = {"version": transformers.__version__, "error": None}
    with unpacked(request["files"]) as folder:
        try:
            made = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            answer["class"] = type(made).__name__
            answer["size"] = len(made)
            named = made.special_tokens_map.items()
            answer["special_tokens"] = {key: str(value) for key, value in named if isinstance(value, str)}
            ids = [[int(number) for number in made.encode(text, add_special_tokens=False)] for text in request["texts"]]
            answer["results"] = [{"ids": own, "text": made.decode(own, skip_special_tokens=False)} for own in ids]
        except Exception as error:
            answer["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:400]
    return answer


OPS = {"tokenizer": tokenizer, "texts": texts, "forget": forget, "loads": loads}


def from_spec(spec: dict[str, Any]) -> Any:
    """A `PreTrainedTokenizerFast`; id i is byte i below 256, then `pieces`, then `markers`.

    Args:
        spec: `pieces`, texts of ordinary tokens, or lists of bytes where a piece is no whole text; `markers`, lists of
            [text, flag] with flag `plain`, `flagged` (decoding skips it) or `declared` (also in `all_special_tokens`);
            `chat_template` and `init_kwargs`, both optional, as are `placed`, lists of [id, text], and
            `printable_first`, the order of the byte tokens.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    spelling = _byte_spellings()
    order = (
        sorted(range(256), key=lambda byte: spelling[byte] != chr(byte)) if spec.get("printable_first") else range(256)
    )
    vocab = {spelling[byte]: place for place, byte in enumerate(order)}
    for piece in spec["pieces"]:
        raw = bytes(piece) if isinstance(piece, list) else piece.encode()
        vocab["".join(spelling[byte] for byte in raw)] = len(vocab)
    for place, text in spec.get("placed", ()):
        vocab["".join(spelling[byte] for byte in text.encode())] = place
    # Text is cut greedily, the longest piece first: a WordPiece without a prefix, over one word of any length.
    model = models.WordPiece(vocab=vocab, unk_token="", continuing_subword_prefix="", max_input_chars_per_word=10**6)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    for text, flag in spec["markers"]:
        backend.add_tokens([AddedToken(text, special=flag != "plain", normalized=False)])
    declared = [text for text, flag in spec["markers"] if flag == "declared"]
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        extra_special_tokens=declared,
        **{"clean_up_tokenization_spaces": False, **spec.get("init_kwargs", {})},
    )
    if spec.get("chat_template") is not None:
        made.chat_template = spec["chat_template"]
    return made


def from_files(files: dict[str, str], mode: str) -> Any:
    """What this vLLM's own `get_tokenizer` makes of a model's small files.

    Args:
        files: base64 by path inside the model's folder.
        mode: `--tokenizer-mode`.
    """
    with unpacked(files) as folder:
        return _get_tokenizer()(folder, tokenizer_mode=mode, trust_remote_code=False)


@contextlib.contextmanager
def unpacked(files: dict[str, str]) -> Iterator[str]:
    """A folder with these files, as long as it is needed."""
    folder = tempfile.mkdtemp(prefix="reasonctl-model-")
    try:
        for name, data in files.items():
            path = os.path.join(folder, name)  # noqa: PTH118
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(base64.b64decode(data))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cached(made: Any) -> Any:
    """The tokenizer as vLLM's server wraps it."""
    try:
        from vllm.tokenizers.hf import get_cached_tokenizer
    except ImportError:  # before 0.13
        from vllm.transformers_utils.tokenizer import get_cached_tokenizer
    return get_cached_tokenizer(made)


class Texts:
    """A tokenizer known by the texts of its tokens: of an assumed vocabulary, or of a recording.

    Args:
        vocab: all that `get_vocab` gives, with their ids.
        markers: those of them that are cut out of any text first.
    """

    is_fast = True
    chat_template: str | None = None
    bos_token = eos_token = pad_token = unk_token = None
    bos_token_id = eos_token_id = pad_token_id = unk_token_id = None
    name_or_path = ""

    def __init__(self, vocab: dict[str, int], markers: list[str]) -> None:
        self._vocab = vocab
        self.init_kwargs: dict[str, Any] = {}
        self.all_special_tokens: list[str] = []
        self.all_special_ids: list[int] = []
        longest_first = sorted(markers, key=lambda text: (-len(text), text))
        self._cut = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if markers else None
        self.use({})

    def use(self, words: dict[str, str]) -> None:
        """From now on these ids have texts besides those of the vocabulary."""
        self._by_id = {number: text for text, number in self._vocab.items()}
        self._ids = dict(self._vocab)
        for number, text in words.items():
            self._by_id[int(number)] = text
            self._ids.setdefault(text, int(number))

    @property
    def vocab(self) -> dict[str, int]:
        return dict(self._vocab)

    @property
    def vocab_size(self) -> int:
        return len(self)

    @property
    def max_token_id(self) -> int:
        return max(self._by_id, default=0)

    def __len__(self) -> int:
        return self.max_token_id + 1

    def get_vocab(self) -> dict[str, int]:
        return dict(self._vocab)

    def get_added_vocab(self) -> dict[str, int]:
        return dict(self._vocab)

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        parts = self._cut.split(text) if self._cut is not None else [text]
        words = (word for at, part in enumerate(parts) for word in ([part] if at % 2 else _WORDS.findall(part)))
        return [self._ids[word] for word in words if word in self._ids]

    def __call__(self, text: str, *_: Any, **__: Any) -> dict[str, Any]:
        ids = self.encode(text)
        return {"input_ids": ids, "attention_mask": [1] * len(ids)}

    def tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._by_id[number] for number in self.encode(text)]

    def decode(self, ids: Any, *_: Any, **__: Any) -> str:
        numbers = [ids] if isinstance(ids, int) else ids
        return "".join(self._by_id.get(number, "") for number in numbers)

    def convert_ids_to_tokens(self, ids: Any, *_: Any, **__: Any) -> Any:
        if isinstance(ids, int):
            return self._by_id.get(ids, "")
        return [self._by_id.get(number, "") for number in ids]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self._ids.get(tokens)
        return [self._ids.get(token) for token in tokens]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens)


def _get_tokenizer() -> Any:
    try:
        from vllm.tokenizers import get_tokenizer
    except ImportError:  # before 0.13
        from vllm.transformers_utils.tokenizer import get_tokenizer
    return get_tokenizer


def _byte_spellings() -> list[str]:
    """How byte-level BPE spells each byte: printable Latin-1 as itself, the rest from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]
