"""A model's tokenizer: cut from `tokenizer.json` itself where there is one, else built by transformers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..parsers.detokenizer import Detokenizer
from . import loadcheck

if TYPE_CHECKING:
    import tokenizers

_VOCABULARY_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "merges.txt", "spiece.model")
_BYTES = 256
"""A byte-level vocabulary has at least these; fewer is a toy that transformers makes up for missing files."""
CHECK_SECONDS = 120.0
_TIDIED = (".", "?", "!", ",", "' ", "n't", "'m", "'s", "'ve", "'re")

CHECK_TEXTS = (
    "It is 4, I think. So the answer  is four.",
    "<think>\nTwo and two\n\tmake four.\n</think>\n\nIt is 4.",
    "Größe: 3 × 5 = 15 €, 你好, 🙂",
)
"""What the load check cuts and joins again: words, double spaces, line breaks, tabs, several scripts, markers."""


@dataclass(frozen=True)
class LoadCheck:
    """How the tokenizer that transformers builds from the folder compares with `tokenizer.json` itself (TPL014).

    `loader` is that transformers' version, `built` the class it chose. `ids_differ` and `text_lost` name the first
    sample text that shows it. `special_tokens` is its `special_tokens_map`. `error`: it could not build one.
    """

    loader: str
    built: str | None = None
    size: int | None = None
    ids_differ: str | None = None
    text_lost: str | None = None
    given_back: str | None = None
    special_tokens: Mapping[str, str] | None = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and self.ids_differ is None and self.text_lost is None


class Tokenizer:
    """What parsers and prompt states ask of a tokenizer (`parsers.base.Vocabulary`), over `tokenizers.Tokenizer`.

    Attributes:
        backend: the `tokenizers.Tokenizer`, for its `DecodeStream`.
        mode: the `--tokenizer-mode` that it is served with.
        toy: the vocabulary is far smaller than the model's, so it is not this model's tokenizer.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        folder: Path,
        init_kwargs: Mapping[str, Any],
        declared_special: Sequence[str] = (),
        chat_template: str | None = None,
        expected_size: int | None = None,
    ) -> None:
        self.backend = backend
        self.mode = "auto"
        self.folder = folder
        self.init_kwargs: Mapping[str, Any] = init_kwargs
        self.chat_template = chat_template
        self._declared_special = tuple(declared_special)
        # transformers tidies spaces only for models that are no BPE, and only where the configuration says so.
        self._tidies = bool(init_kwargs.get("clean_up_tokenization_spaces")) and type(backend.model).__name__ != "BPE"
        size = backend.get_vocab_size(with_added_tokens=True)
        self.toy = expected_size is not None and size < expected_size // 2
        self._checks: dict[str, loadcheck.Running | LoadCheck] = {}

    @functools.cached_property
    def detokenizer(self) -> Detokenizer:
        """Gives the text of ids, one by one or all at once."""
        return Detokenizer(self.backend)

    @functools.cached_property
    def kept(self) -> dict[object, Any]:
        """What others have derived from this tokenizer, which never changes; each under a key of its own."""
        return {}

    @functools.cached_property
    def size(self) -> int:
        """How many tokens there are, added ones included."""
        count: int = self.backend.get_vocab_size(with_added_tokens=True)
        return count

    @functools.cached_property
    def vocab(self) -> Mapping[str, int]:
        """Every token in its own spelling, added ones included, to its id."""
        vocab: dict[str, int] = self.backend.get_vocab(with_added_tokens=True)
        return vocab

    @functools.cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that decoding with `skip_special_tokens` leaves out."""
        return frozenset(i for i, token in self.backend.get_added_tokens_decoder().items() if token.special)

    @functools.cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """Tokens the configuration declares special, in transformers' order, with their ids."""
        return {text: self.vocab[text] for text in self._declared_special if text in self.vocab}

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without bos or eos; markers in it become their added tokens."""
        ids: list[int] = self.backend.encode(text, add_special_tokens=False).ids
        return ids

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """Ids of `text`, and for each the offset in `text`, in characters, at which its token ends."""
        encoding = self.backend.encode(text, add_special_tokens=False)
        return encoding.ids, [end for _, end in encoding.offsets]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of a run of ids, as `decode` of transformers' tokenizer gives it."""
        text = self.detokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        if self._tidies:
            for mark in _TIDIED:
                text = text.replace(f" {mark}", mark)
        return text

    def start_check(self, python: str = sys.executable) -> None:
        """Start the load check in that Python, so that it runs while something else is done."""
        if python not in self._checks:
            self._checks[python] = loadcheck.Running(python, self.folder, CHECK_TEXTS)

    def check(self, python: str = sys.executable) -> LoadCheck:
        """What the transformers of that Python builds from the folder, held against `tokenizer.json`; run once each."""
        self.start_check(python)
        running = self._checks[python]
        if isinstance(running, LoadCheck):
            return running
        result = self._compare(running.finish(CHECK_SECONDS))
        self._checks[python] = result
        return result

    def take_check(self, answer: Mapping[str, Any]) -> None:
        """Let what another Python's transformers built count in place of this one's.

        Args:
            answer: its results on CHECK_TEXTS, as `loadcheck.SCRIPT` answers.
        """
        self._checks[sys.executable] = self._compare(answer)

    def _compare(self, answer: Mapping[str, Any]) -> LoadCheck:
        loader = f"transformers {answer.get('version') or '?'}"
        if answer.get("error"):
            return LoadCheck(loader, error=answer["error"])
        ids_differ = text_lost = given_back = None
        for text, got in zip(CHECK_TEXTS, answer["results"], strict=True):
            own = self.encode(text)
            if ids_differ is None and got["ids"] != own:
                ids_differ = text
            # A tokenizer that normalizes gives back another text by design; then so does tokenizer.json.
            if text_lost is None and got["text"] != text and got["text"] != self.decode(own):
                text_lost, given_back = text, got["text"]
        return LoadCheck(
            loader, answer["class"], answer["size"], ids_differ, text_lost, given_back, answer["special_tokens"]
        )


def vocabulary_files(folder: Path) -> list[Path]:
    """The files of a folder that a tokenizer can be built from."""
    named = [folder / name for name in _VOCABULARY_FILES if (folder / name).is_file()]
    return named + sorted(filter(Path.is_file, folder.glob("*.tiktoken")))


def load(
    folder: Path,
    *,
    tokenizer_config: Mapping[str, Any],
    special_tokens: Mapping[str, str],
    chat_template: str | None,
    expected_size: int | None,
) -> tuple[Tokenizer | None, str | None]:
    """The folder's tokenizer, or None and what is wrong.

    Raises:
        InputError: there is a `tokenizer.json` that cannot be read.
    """
    files = vocabulary_files(folder)
    if not files:
        made_up = " (transformers would make up a toy vocabulary in silence)" if tokenizer_config else ""
        return None, f"the folder has no tokenizer.json and no other vocabulary file{made_up}"
    file = folder / "tokenizer.json"
    if file.is_file():
        stat = file.stat()
        backend = _read_backend(file, stat.st_mtime_ns, stat.st_size)
    else:
        built = _built_by_transformers(folder)
        if isinstance(built, str):
            return None, built
        backend = built
    declared = _declared(tokenizer_config, special_tokens)
    backend = _with_added_tokens(backend, tokenizer_config, frozenset(special_tokens.values()), declared)
    tokenizer = Tokenizer(
        backend,
        folder=folder,
        init_kwargs=tokenizer_config,
        declared_special=declared,
        chat_template=chat_template,
        expected_size=expected_size,
    )
    if tokenizer.toy:
        size = backend.get_vocab_size(with_added_tokens=True)
        return (
            None,
            f"the tokenizer has {size} tokens where the model has {expected_size}: a toy vocabulary, not this model's",
        )
    return tokenizer, None


@functools.lru_cache(maxsize=8)
def _read_backend(file: Path, _mtime: int, _size: int) -> tokenizers.Tokenizer:
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises bare Exception
        raise InputError(
            f"cannot be read as a tokenizer: {error}", source=str(file), mend="fetch the file again, or remove it"
        ) from None


def _built_by_transformers(folder: Path) -> tokenizers.Tokenizer | str:
    """The backend of what AutoTokenizer builds where there is no `tokenizer.json`, or why there is none."""
    from transformers import AutoTokenizer

    try:
        built = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # any of a hundred loaders may fail in its own way
        reason = " ".join(str(error).split())[:200]
        return f"transformers cannot build the tokenizer ({type(error).__name__}: {reason})"
    backend: tokenizers.Tokenizer | None = getattr(built, "backend_tokenizer", None)
    if backend is None:
        return f"{type(built).__name__} has no `tokenizers` backend, which token-level facts need"
    if backend.get_vocab_size(with_added_tokens=True) < _BYTES:
        size = backend.get_vocab_size(with_added_tokens=True)
        return f"transformers builds a toy vocabulary of {size} tokens: the folder's vocabulary files are incomplete"
    return backend


def _with_added_tokens(
    backend: tokenizers.Tokenizer, config: Mapping[str, Any], named: Collection[str], declared: Sequence[str]
) -> tokenizers.Tokenizer:
    """The backend with the tokens and flags that only the configuration gives, as transformers adds them.

    `added_tokens_decoder` beats the flags in `tokenizer.json`, a named special token is special whatever they say, and
    a declared one that is missing is added.
    Source: transformers 5.24, tokenization_utils_tokenizers.py `TokenizersBackend.__init__`.
    """
    import tokenizers

    present = backend.get_added_tokens_decoder()
    unchanged = {repr(token) for token in present.values()}
    entries = config.get("added_tokens_decoder")
    if isinstance(entries, dict):
        ordered = sorted(entries.items(), key=lambda item: int(item[0]) if item[0].isdecimal() else -1)
        tokens = [
            tokenizers.AddedToken(
                entry["content"], **{name: bool(entry[name]) for name in _TOKEN_FLAGS if name in entry}
            )
            for _, entry in ordered
            if isinstance(entry, dict) and isinstance(entry.get("content"), str)
        ]
    else:
        tokens = [token for _, token in sorted(present.items())]
    for token in tokens:
        token.special = token.special or token.content in named
    known = {token.content for token in (*present.values(), *tokens)}
    adding = [token for token in tokens if repr(token) not in unchanged]
    adding += [tokenizers.AddedToken(text, special=True) for text in declared if text and text not in known]
    if not adding:
        return backend
    # The backend just read may be shared with another model; tokens are added to a copy.
    backend = tokenizers.Tokenizer.from_str(backend.to_str())
    backend.add_tokens(adding)
    return backend


_TOKEN_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def _declared(config: Mapping[str, Any], special_tokens: Mapping[str, str]) -> list[str]:
    """The tokens declared special, in transformers' order: the named ones, then the extra ones."""
    extra = config.get("extra_special_tokens")
    values = extra if isinstance(extra, list) and extra else config.get("additional_special_tokens") or ()
    texts = [value.get("content") if isinstance(value, dict) else value for value in values]
    return list(dict.fromkeys([*special_tokens.values(), *(text for text in texts if isinstance(text, str))]))
