"""At stake: a search by bytes misses nothing that the text has, and an excerpt shows what was found."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.text.textquery import TextQuery, excerpt_of, terms_of

#: The long s and the sign of the kelvin equal s and k without regard to case, but not as bytes: nobody writes them so.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u017f\u212a"), max_size=60)


@given(before=TEXTS, term=TEXTS.filter(str.strip), after=TEXTS, is_ascii=st.booleans())
def test_what_is_in_a_text_is_found_in_it_and_in_its_json(before: str, term: str, after: str, is_ascii: bool) -> None:
    query = TextQuery([term])
    text = before + term + after
    span = query.find(text)
    assert span is not None
    data = json.dumps({"text": text}, ensure_ascii=is_ascii).encode()
    assert query.may_be_in(data.lower())


@given(TEXTS, st.data())
def test_an_excerpt_is_one_line_with_the_find_in_it(text: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    excerpt = excerpt_of(text, begin, end, width=20)
    shown = excerpt.text[excerpt.begin : excerpt.end]
    assert shown.split() == text[begin : min(end, begin + 20)].split()
    assert len(excerpt.text) <= 20 + 2 * len("...") + 1
    assert not set(excerpt.text) & set("\n\r\t\v\f")


@given(st.lists(st.text('ab "', max_size=5), max_size=5))
def test_a_line_of_terms_never_fails_and_has_no_empty_one(words: list[str]) -> None:
    assert all(term.strip() for term in terms_of(" ".join(words)))


def test_a_pattern_is_tried_on_pieces_of_a_long_line() -> None:
    query = TextQuery(["n(ee)+dle"], is_regex=True)
    text = "x" * 5000 + "\n" + "y" * 50 + "needle"
    assert query.find(text) == (5051, 5057)
    assert TextQuery(["z*"], is_regex=True).find(text) is None, "nothing is not a find"
    assert TextQuery(["d*"], is_regex=True).find(text) == (5054, 5055), "but what is behind nothing is one"
