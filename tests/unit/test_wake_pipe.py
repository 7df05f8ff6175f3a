"""At stake: a wake-up ends a sleep, however many have come before it, and neither blocks nor fails whoever wakes."""

from __future__ import annotations

import os
import select

import pytest

from agentctl.adapters.wake_pipe import WakePipe


def is_awake(pipe: WakePipe) -> bool:
    return pipe.fd in select.select([pipe.fd], [], [], 0)[0]


def test_it_is_readable_from_a_wake_to_the_next_drain() -> None:
    with WakePipe() as pipe:
        assert not is_awake(pipe)
        pipe.drain()
        for _ in range(2):
            pipe.wake()
            pipe.wake()
            assert is_awake(pipe)
            pipe.drain()
            assert not is_awake(pipe)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(pipe.fd)


def test_a_full_pipe_does_not_hold_up_whoever_wakes() -> None:
    with WakePipe() as pipe:
        for _ in range(1 << 17):
            pipe.wake()
        assert is_awake(pipe)


def test_no_child_inherits_it() -> None:
    with WakePipe() as pipe:
        assert not os.get_inheritable(pipe.fd)
        assert not os.get_inheritable(pipe._writing)
