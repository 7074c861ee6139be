"""A tokenizer out of nothing but the tokens a trace shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.assumed import table_markers
from reasonctl.parsers.feed import Piece
from reasonctl.traces.tokens import TraceVocabulary, pieces_of
from reasonctl.traces.trace import Trace, TraceDelta


def trace(*tokens: tuple[str, int], text: str | None = None) -> Trace:
    deltas = tuple(TraceDelta(one, (token_id,)) for one, token_id in tokens)
    ids = tuple(token_id for _, token_id in tokens)
    return Trace("t", "f", 1, "trace", output_ids=ids, output_text=text, deltas=deltas)


def test_deltas_of_one_token_show_them_all() -> None:
    assert pieces_of(trace(("hm", 5), ("</think>", 9), ("4", 7))) == [
        Piece("hm", 5),
        Piece("</think>", 9),
        Piece("4", 7),
    ]


def test_token_texts_that_add_up() -> None:
    texts = {1: "h", 2: "m"}
    both = Trace("t", "f", 1, "sse", output_ids=(1, 2), deltas=(TraceDelta(None, (1, 2)),), token_texts=texts)
    assert pieces_of(both) == [Piece("h", 1), Piece("m", 2)]
    assert pieces_of(Trace("t", "f", 1, "sse", output_ids=(1, 3), token_texts=texts)) is None
    assert pieces_of(Trace("t", "f", 1, "sse", output_ids=(1, 2), output_text="hum", token_texts=texts)) is None
    assert pieces_of(Trace("t", "f", 1, "sse", output_text="hm", token_texts=texts)) is None


def test_markers_seen_keep_their_id_others_get_a_new_one() -> None:
    vocabulary = TraceVocabulary([Piece("hm", 5), Piece("</think>", 9)], prompt_ids=[70])
    assert vocabulary.vocab["</think>"] == 9
    assert vocabulary.vocab["<think>"] > 70
    assert vocabulary.encode("a <think>") == [
        vocabulary.encode("a")[0],
        vocabulary.encode(" ")[0],
        vocabulary.vocab["<think>"],
    ]


def test_a_marker_spelled_with_several_tokens_is_none() -> None:
    vocabulary = TraceVocabulary([Piece("</", 1), Piece("think", 2), Piece(">", 3), Piece("<think>", 4)])
    assert "</think>" not in vocabulary.vocab
    assert "<think>" in vocabulary.vocab


def test_an_id_with_two_texts_is_two_tokens() -> None:
    vocabulary = TraceVocabulary([Piece(" 🌟", 256), Piece("", 73), Piece(" 🌍", 256)])
    first, _, second = (piece.id for piece in vocabulary.pieces)
    assert first == 256
    assert second is not None
    assert second != 256
    assert vocabulary.decode([256, 73, second]) == " 🌟 🌍"


@given(
    st.lists(st.tuples(st.text(max_size=4) | st.sampled_from(sorted(table_markers())), st.integers(0, 6))), st.text()
)
def test_what_is_encoded_decodes_again(tokens: list[tuple[str, int]], text: str) -> None:
    vocabulary = TraceVocabulary([Piece(*token) for token in tokens])
    assert "".join(piece.text for piece in vocabulary.pieces) == "".join(one for one, _ in tokens)
    ids = [piece.id for piece in vocabulary.pieces if piece.id is not None]
    assert vocabulary.decode(ids) == "".join(one for one, _ in tokens)
    assert vocabulary.decode(vocabulary.encode(text)) == text
