"""openai_gptoss with harmony's own parser: values, where its vocabulary comes from, and that nothing is fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from reasonctl.parsers import build
from reasonctl.parsers.base import Delta, ParserUnsupportedError, Split
from reasonctl.parsers.differential.cases import specs
from reasonctl.parsers.differential.vocabulary import SpecVocabulary
from reasonctl.parsers.models import harmony

VOCABULARY = SpecVocabulary(specs("openai_gptoss")["openai_gptoss/0/plain"])
THOUGHT = "<|channel|>analysis<|message|>Hm<|end|>"
ANSWER = "<|start|>assistant<|channel|>final<|message|>four<|return|>"


def split(output: str) -> tuple[Split, int]:
    model = build("openai_gptoss", VOCABULARY, {})
    ids = VOCABULARY.encode(output)
    return model.split(output, ids), model.count_reasoning_tokens(ids)


def stream(ids: Sequence[int], size: int = 1) -> list[tuple[str | None, str | None] | None]:
    model = build("openai_gptoss", VOCABULARY, {})
    model.begin(VOCABULARY.encode("<|start|>assistant"), streaming=True)
    deltas: list[Delta | None] = [
        model.feed("", ids[at : at + size], finished=at + size >= len(ids)) for at in range(0, len(ids), size)
    ]
    return [delta and (delta.reasoning, delta.content) for delta in deltas]


@pytest.mark.parametrize(
    ("output", "reasoning", "content", "tokens"),
    [
        (THOUGHT + ANSWER, "Hm", "four", 1),
        (THOUGHT + "<|start|>assistant" + THOUGHT + ANSWER, "Hm\nHm", "four", 2),
        (THOUGHT, "Hm", None, 1),
        ("<|channel|>analysis<|message|>Hm so", "Hm so", None, 2),
        ("<|channel|>commentary<|message|>four<|end|>", None, "four", 0),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", None, None, 1),
        ("<|channel|>analysis to=python<|message|>four<|call|>", "four", None, 1),
        ("<|channel|>commentary to=browser.search<|message|>four<|call|>", None, None, 1),
        ("four and no header", None, "four and no header", 0),
        ("", None, None, 0),
        (f"<|channel|>final<|message|>four<|end|>Hm so{ANSWER}", None, "four\nfour", 0),
        (f"{THOUGHT}<|start|>assistant<|channel|>final", "Hm", "<|start|>assistant<|channel|>final", 1),
    ],
)
def test_whole_outputs(output: str, reasoning: str | None, content: str | None, tokens: int) -> None:
    assert split(output) == (Split(reasoning, content), tokens)


def test_a_stream_says_what_each_token_adds() -> None:
    ids = VOCABULARY.encode(THOUGHT + "<|start|>assistant<|channel|>final<|message|>four so<|return|>")
    said = [message for message in stream(ids) if message is not None]
    assert said == [("Hm", None), (None, "four"), (None, " so")]
    assert stream(ids, len(ids)) == [("Hm", "four so")]


def test_an_output_that_stops_in_a_header_comes_with_the_last_delta() -> None:
    ids = VOCABULARY.encode("four Hm")
    assert stream(ids)[-1] == (None, "four Hm")
    assert stream(ids)[:-1] == [None] * (len(ids) - 1)


def test_half_a_character_waits_for_the_rest() -> None:
    ids = VOCABULARY.encode("<|channel|>final<|message|>ï")
    assert [message for message in stream(ids) if message is not None] == [(None, "ï")]


def test_tokens_are_counted_in_ids_that_were_not_parsed() -> None:
    model = build("openai_gptoss", VOCABULARY, {})
    assert model.count_reasoning_tokens(VOCABULARY.encode(THOUGHT + ANSWER)) == 1


def test_ids_that_are_none_raise_as_in_vllm() -> None:
    from reasonctl.parsers import ParserRaisedError

    with pytest.raises(ParserRaisedError) as caught:
        build("openai_gptoss", VOCABULARY, {}).split("", [-1])
    assert caught.value.exception == "OverflowError"


def test_a_token_costs_the_same_late_in_a_stream() -> None:
    """No message is asked for before it is complete: that costs as much as the message is long."""
    asked = []

    class Counting(harmony.HarmonyModel):
        def _message(self) -> object:  # type: ignore[override]
            asked.append(1)
            return super()._message()

    model = Counting(VOCABULARY, harmony._load())
    ids = VOCABULARY.encode("<|channel|>analysis<|message|>" + "Hm" * 5000 + "<|end|>")
    for token_id in ids:
        model.feed("", [token_id])
    assert len(asked) == 1
    assert model.count_reasoning_tokens(ids) == 5000


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    harmony._loaded.cache_clear()
    monkeypatch.delenv(harmony.VARIABLE, raising=False)
    return monkeypatch


def test_the_original_library_is_not_let_download_its_vocabulary(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(harmony, "is_fork", lambda: False)
    with pytest.raises(ParserUnsupportedError) as caught:
        build("openai_gptoss", VOCABULARY, {})
    assert str(caught.value) == (
        "openai-harmony would download its vocabulary: pip install 'reasonctl[harmony]' for the fork that has it, "
        "or set TIKTOKEN_ENCODINGS_BASE to a folder with o200k_base.tiktoken"
    )


def test_the_fork_reads_no_file_and_no_network(tmp_path: Path) -> None:
    assert harmony.is_fork()
    program = (
        "from reasonctl.parsers import build\n"
        "from reasonctl.parsers.differential.cases import specs\n"
        "from reasonctl.parsers.differential.vocabulary import SpecVocabulary\n"
        "vocabulary = SpecVocabulary(specs('openai_gptoss')['openai_gptoss/0/plain'])\n"
        "ids = vocabulary.encode('<|channel|>final<|message|>four')\n"
        "print(build('openai_gptoss', vocabulary, {}).split('', ids).content)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != harmony.VARIABLE}
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | nowhere, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("four\n", 0), done.stderr
    assert list(tmp_path.iterdir()) == []
