"""At stake: a cursor that moves on event by event says the same as one made anew from where the reader is."""

from __future__ import annotations

import random

import pytest

from agentctl.operations.fleet import event_stream
from agentctl.operations.fleet.event_stream import MOST_NAMED, MovingCursor, TaskKey, cursor_of


@pytest.mark.parametrize("tasks", [0, 1, MOST_NAMED - 1, MOST_NAMED, MOST_NAMED + 60])
def test_a_cursor_that_moves_is_the_one_of_where_it_is(tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "now_iso", lambda: "2026-01-02T03:04:05.678Z")
    dice = random.Random(tasks)
    at = {TaskKey(f"t{number}", "nonce"): dice.randrange(1000) for number in range(tasks)}
    cursor = MovingCursor(at)
    assert cursor.text() == cursor_of(at)
    for _ in range(300):
        key = TaskKey(f"t{dice.randrange(tasks + 10)}", "nonce")
        at[key] = at.pop(key, 0) + 1
        cursor.move(key, at[key])
        assert cursor.text() == cursor_of(at)
