"""Pieces and deltas in columns are sequences of what they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.columns import Deltas, Piece, Pieces, RawDelta, places

PIECES = st.lists(
    st.builds(Piece, st.text("ab", max_size=3), st.one_of(st.integers(0, 3), st.none()), st.sampled_from(("", "c"))),
    max_size=8,
)
DELTAS = st.lists(st.tuples(st.text("ab", max_size=3), st.lists(st.integers(0, 3), max_size=3).map(tuple)), max_size=8)


@given(PIECES, st.slices(8))
def test_pieces_are_what_they_are_made_of(found: list[Piece], cut: slice) -> None:
    made = Pieces.of(found)
    assert made == found
    assert [made[number] for number in range(len(made))] == found
    assert made[cut] == found[cut]
    assert made.text == "".join(piece.text for piece in found)
    assert list(made.token_ids) == [piece.id for piece in found if piece.id is not None]
    assert made.all_tokens == all(piece.id is not None for piece in found)
    assert [made.text[:end] for end in made.ends] == [
        "".join(p.text for p in found[: n + 1]) for n in range(len(found))
    ]


@given(DELTAS, st.slices(8))
def test_deltas_are_what_they_are_made_of(found: list[tuple[str, tuple[int, ...]]], cut: slice) -> None:
    made = Deltas.of(found)
    assert made == [RawDelta(*delta) for delta in found]
    assert made[cut] == [RawDelta(*delta) for delta in found[cut]]
    assert [made[number] for number in range(len(made))] == list(made)
    assert Deltas.of(made) is made


@given(DELTAS, st.frozensets(st.integers(0, 3)), st.data())
def test_deltas_are_found_by_ids_and_characters(
    found: list[tuple[str, tuple[int, ...]]], wanted: frozenset[int], data: st.DataObject
) -> None:
    made = Deltas.of(found)
    assert made.holding(wanted) == [number for number, (_, ids) in enumerate(found) if wanted & set(ids)]
    if made.text:
        place = data.draw(st.integers(0, len(made.text) - 1))
        number = made.at_character(place)
        before = sum(len(text) for text, _ in found[:number])
        assert before <= place < before + len(found[number][0])
    begin, end = sorted(data.draw(st.tuples(st.integers(0, len(found)), st.integers(0, len(found)))))
    assert made.between(begin, end) == "".join(text for text, _ in found[begin:end])
    assert list(made.ids_between(begin, end)) == [one for _, ids in found[begin:end] for one in ids]


@given(st.lists(st.tuples(st.text("ab", max_size=2), st.integers(0, 3)), max_size=8), st.frozensets(st.integers(0, 3)))
def test_one_id_each(found: list[tuple[str, int]], wanted: frozenset[int]) -> None:
    pieces = Pieces([text for text, _ in found], [token_id for _, token_id in found])
    made = Deltas(pieces.texts, pieces.token_ids, source=pieces)
    assert made == [RawDelta(text, (token_id,)) for text, token_id in found]
    assert made.holding(wanted) == [number for number, (_, token_id) in enumerate(found) if token_id in wanted]
    assert made.text == pieces.text


@given(st.lists(st.integers(0, 5), max_size=20), st.frozensets(st.integers(0, 5)))
def test_places(ids: list[int], wanted: frozenset[int]) -> None:
    assert places(ids, wanted) == [place for place, token_id in enumerate(ids) if token_id in wanted]
