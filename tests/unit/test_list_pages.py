"""At stake: pages of a list miss and double nothing, whatever comes and goes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import UsageError
from agentctl.interfaces.web.list_pages import ListChanged, page_of_rows


def rows_of(names: list[int]) -> list[dict[str, Any]]:
    return [{"agentInstance": f"w{name}"} for name in names]


def all_pages(changes: list[tuple[list[int], list[int]]], names: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Return the names on all pages, and those that were there all the time.

    Args:
        changes: What comes at its end and what goes, behind each page.
    """
    found, stayed, cursor, left = list[int](), set(names), None, list(changes)
    while True:
        page = page_of_rows(iter(rows_of(names)), limit, cursor)
        assert len(page.rows) <= limit
        found += [int(row["agentInstance"][1:]) for row in page.rows]
        if page.next is None:
            return found, sorted(stayed)
        cursor = page.next
        if left:
            new, gone = left.pop(0)
            names = [one for one in [*names, *(100 + one for one in new)] if one not in gone]
            names = list(dict.fromkeys(names))
            stayed &= set(names)


def test_behind_a_page_that_is_just_full_there_is_none() -> None:
    assert page_of_rows(rows_of([1, 2, 3]), 3, None).next is None
    assert page_of_rows(rows_of([1, 2, 3]), 2, None).next is not None


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=30).map(sorted),
    st.integers(1, 7),
    st.lists(st.tuples(st.lists(st.integers(0, 20), max_size=3), st.lists(st.integers(0, 40), max_size=6)), max_size=8),
)
def test_what_was_there_all_the_time_is_on_one_page(
    names: list[int], limit: int, changes: list[tuple[list[int], list[int]]]
) -> None:
    try:
        found, stayed = all_pages(changes, names, limit)
    except ListChanged:
        return  # It is told, and nothing is left out without a word.
    assert len(found) == len(set(found))
    assert set(stayed) <= set(found)


def test_without_changes_they_are_the_list() -> None:
    names = list(range(25))
    for limit in (1, 2, 12, 24, 25, 26):
        assert all_pages([], names, limit)[0] == names


def test_rows_that_say_the_same_are_told_apart() -> None:
    rows = [{"agentInstance": "w", "excerpt": "same"}] * 5
    first = page_of_rows(rows, 2, None)
    second = page_of_rows(rows, 2, first.next)
    assert [len(one.rows) for one in (first, second, page_of_rows(rows, 2, second.next))] == [2, 2, 1]


def test_no_more_rows_are_taken_than_are_needed() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(1000):
            taken.append(number)
            yield {"agentInstance": str(number)}

    cursor = page_of_rows(rows(), 10, None).next
    assert len(taken) == 11
    taken.clear()
    page_of_rows(rows(), 10, cursor)
    assert len(taken) == 21


def test_a_place_that_is_gone_is_told() -> None:
    cursor = page_of_rows(rows_of(list(range(30))), 3, None).next
    with pytest.raises(ListChanged):
        page_of_rows(rows_of(list(range(20, 30))), 3, cursor)
    for text in ("", "x", "0" * 15, "0" * 17, f"{'0' * 16}.", ".".join(["0" * 16] * 13)):
        with pytest.raises(UsageError):
            page_of_rows(rows_of([1]), 3, text)
