"""At stake: a diff shows both texts whole, whatever they are, and soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.text.words_diff import ADDED, KEPT, REMOVED, lines_diff, words_diff

TEXTS = st.lists(st.text("ab \t.", max_size=6), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_both_texts_are_in_it_whole(old: str, new: str) -> None:
    lines = [*lines_diff(old, new)]
    assert "\n".join(line.text for line in lines if line.kind != ADDED) == old
    assert "\n".join(line.text for line in lines if line.kind != REMOVED) == new
    for line in lines:
        assert not line.words or line.kind != KEPT
        ends = [0, *(end for words in line.words for end in words), len(line.text)]
        assert ends == sorted(ends)


@given(st.text("ab =", max_size=20), st.text("ab =", max_size=20))
def test_what_is_not_marked_is_the_same_in_both(old: str, new: str) -> None:
    found = words_diff(old, new)
    if any(found):
        left = ["".join(one for at, one in enumerate(text) if not any(begin <= at < end for begin, end in words))
                for text, words in zip((old, new), found, strict=True)]  # fmt: skip
        assert left[0] == left[1]


def test_the_words_of_a_changed_line_are_marked() -> None:
    lines = [*lines_diff("a\nreplicas: 2\nb", "a\nreplicas: 3\nadded\nb")]
    assert [(line.kind, line.text, line.words) for line in lines] == [
        (KEPT, "a", ()), (REMOVED, "replicas: 2", ((10, 11),)), (ADDED, "replicas: 3", ((10, 11),)),
        (ADDED, "added", ()), (KEPT, "b", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"), [("ab\n", "ba\n"), ("a b ", "b a "), ("x\ny\n", "y\n\nx\n"), (" a", "a ")], ids=repr
)
def test_no_texts_take_long(old: str, new: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        list(lines_diff(old * times + "1", new * times + "2"))
        return time.process_time() - began

    assert seconds(16_000) < 10 * seconds(4000) + 0.5
