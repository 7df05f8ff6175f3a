"""At stake: names become file names: a bad name that is accepted would be a file outside the task."""

from __future__ import annotations

import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.names import base_name, check_name, first_of, is_name, slug
from agentctl.errors import ExitCode, UsageError

ALLOWED = string.ascii_letters + string.digits + "_-"


@given(st.text(max_size=70))
def test_a_name_is_exactly_what_the_rule_says(text: str) -> None:
    expected = 1 <= len(text) <= 64 and all(c in ALLOWED for c in text) and text[0] != "-"
    assert is_name(text) == expected


@given(st.text(alphabet=ALLOWED, min_size=1, max_size=64).filter(lambda text: text[0] != "-"))
def test_a_name_stays_in_its_folder_and_is_no_option(name: str) -> None:
    assert check_name(name, "the instance") == name
    assert os.path.normpath(f"/tasks/{name}") == f"/tasks/{name}"


@pytest.mark.parametrize(
    "text",
    ["", "-x", "../x", "a/b", "/a", ".", "..", "a.b", "a b", "a\n", "\na", "a\0b", "x" * 65, "é", "\uff11", "a\u200b",
     "\uff41", "\x1b[31m", "\udcff", "ß", "İ"],
)  # fmt: skip
def test_what_is_no_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(UsageError, match=r"the instance .* is not a name") as caught:
        check_name(text, "the instance")
    assert caught.value.exit_code is ExitCode.USAGE
    assert "64" in str(caught.value.hint)


@given(st.text())
def test_whatever_the_title_is_it_makes_a_name(title: str) -> None:
    assert is_name(slug(title))
    assert len(slug(title)) <= 40


@given(st.text())
def test_whatever_the_program_is_it_makes_a_name_with_room_for_a_number(argv0: str) -> None:
    assert is_name(f"{base_name(argv0)}-1000000")


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=3), max_size=20), st.integers(1, 20))
def test_a_list_of_names_says_how_many_it_leaves_out(names: list[str], limit: int) -> None:
    told = first_of(names, limit)
    assert told.startswith(", ".join(names[:limit]))
    assert told.endswith(f" and {len(names) - limit} more") == (len(names) > limit)
