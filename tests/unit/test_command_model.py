"""At stake: what a command shows is taken before it goes on; what goes wrong meanwhile is raised where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import Raw, Showing, Shown, take_each


class Told(Exception):
    """Something that goes wrong."""


def showing(events: list[str], count: int, code: int | None, *, rescues: bool = False) -> Any:
    """Yield some things; note when each was taken, and what was raised meanwhile."""
    for number in range(count):
        try:
            yield Shown(number)
            events.append(f"taken {number}")
        except BaseException as error:
            events.append(f"{type(error).__name__} at {number}")
            if not rescues:
                raise
            yield Raw("left behind")
            return 130
    return code


@given(st.integers(0, 5), st.sampled_from([None, 0, 4]), st.integers(0, 6), st.booleans())
def test_each_is_taken_before_the_next_and_an_error_is_the_commands(
    count: int, code: int | None, fails_at: int, rescues: bool
) -> None:
    events: list[str] = []

    def take(item: object) -> None:
        if isinstance(item, Shown) and item.value == fails_at:
            raise KeyboardInterrupt
        events.append("rest" if isinstance(item, Raw) else f"printed {item.value}")  # type: ignore[attr-defined]

    def carried() -> int:
        return take_each(showing(events, count, code, rescues=rescues), take)

    before = [event for number in range(min(count, fails_at)) for event in (f"printed {number}", f"taken {number}")]
    if fails_at >= count:
        assert carried() == (code or 0)
        assert events == before
    elif rescues:
        assert carried() == 130
        assert events == [*before, f"KeyboardInterrupt at {fails_at}", "rest"]
    else:
        with pytest.raises(KeyboardInterrupt):
            carried()
        assert events == [*before, f"KeyboardInterrupt at {fails_at}"]


@pytest.mark.parametrize(("carried", "code", "count"), [
    (None, 0, 0), (3, 3, 0), (ExitCode.NOT_FOUND, 3, 0), (Shown(1), 0, 1), (Shown(1, code=7), 7, 1),
])  # fmt: skip
def test_what_is_returned_is_taken_too(carried: Any, code: int, count: int) -> None:
    taken: list[object] = []
    assert take_each(carried, taken.append) == code
    assert len(taken) == count


def test_an_error_of_the_command_itself_comes_out_once() -> None:
    def fails() -> Showing[int]:
        yield Shown(1)
        raise Told

    taken: list[object] = []
    with pytest.raises(Told):
        take_each(fails(), taken.append)
    assert len(taken) == 1


@pytest.mark.parametrize("fails_in", ["the command", "what takes it"])
def test_a_command_that_holds_something_lets_it_go(fails_in: str) -> None:
    """As the block that has claimed an end: it learns whether the end was printed."""
    events: list[str] = []

    def holds() -> Showing[int]:
        try:
            yield Shown(1)
            events.append("given")
            if fails_in == "the command":
                raise Told
        finally:
            events.append("let go")
        return 0

    def refuse(_item: object) -> None:
        raise Told

    take: Callable[[object], None] = refuse if fails_in == "what takes it" else lambda _item: None
    with pytest.raises(Told):
        take_each(holds(), take)
    assert events == (["given", "let go"] if fails_in == "the command" else ["let go"])
