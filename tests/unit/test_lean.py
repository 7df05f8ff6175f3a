"""At stake: the substitute for `typing.NamedTuple` makes the same classes."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from agentctl import lean


class Typed(typing.NamedTuple):
    """A pair."""

    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"

    def turned(self) -> Typed:
        return self._replace(left=-self.left)


class Lean(lean.NamedTuple):
    """A pair."""

    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"

    def turned(self) -> Lean:
        return self._replace(left=-self.left)


def test_it_is_declared_as_one_of_typing_and_behaves_so() -> None:
    for attribute in ("_fields", "_field_defaults", "__doc__", "__module__"):
        assert getattr(Lean, attribute) == getattr(Typed, attribute), attribute
    ours: Any = Lean(1)
    theirs: Any = Typed(1)
    assert ours == theirs == (1, "r")
    assert (ours.both, ours.turned()) == (theirs.both, theirs.turned()) == ("1r", (-1, "r"))
    assert repr(ours) == repr(theirs).replace("Typed", "Lean")
    assert type(ours.turned()) is type(ours) is Lean
    assert pickle.loads(pickle.dumps(ours)) == copy.copy(ours) == ours


def test_a_field_without_a_default_behind_one_with_is_refused() -> None:
    with pytest.raises(TypeError):

        class Wrong(lean.NamedTuple):
            first: int = 1
            second: str  # type: ignore[misc]


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(TypeError):
        Lean()  # type: ignore[call-arg]


def test_one_without_fields_is_an_empty_tuple() -> None:
    class Nothing(lean.NamedTuple):
        """Says only that it is."""

    assert (Nothing(), Nothing._fields, Nothing.__doc__) == ((), (), "Says only that it is.")
