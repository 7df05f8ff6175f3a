"""At stake: a text that is cut says so, keeps its beginning, and is no longer than it may be."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.text.plaintext import beginning, shortened

LENGTHS = st.integers(0, 12)
MARKS = st.sampled_from(["...", "…", "", " [cut]"])


@given(text=st.text(max_size=12), longest=LENGTHS, mark=MARKS | st.none())
@example(text="abc", longest=3, mark=None)
@example(text="abcd", longest=3, mark=None)
def test_a_beginning_has_all_the_characters_that_it_may(text: str, longest: int, mark: str | None) -> None:
    end = f" [cut: {len(text)} characters]" if mark is None else mark
    assert beginning(text, longest, mark) == (text if len(text) <= longest else text[:longest] + end)


@given(text=st.text(max_size=12), longest=LENGTHS, mark=MARKS)
@example(text="abcd", longest=4, mark="...")
@example(text="abcde", longest=4, mark="...")
@example(text="abcde", longest=2, mark="...")
def test_a_cut_text_has_room_for_its_mark(text: str, longest: int, mark: str) -> None:
    found = shortened(text, longest, mark)
    if len(text) <= longest:
        assert found == text
    else:
        assert len(found) <= max(longest, len(mark))
        assert found.endswith(mark)
        assert text.startswith(found.removesuffix(mark))
