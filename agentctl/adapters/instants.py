"""Instants that processes tell each other by a file: on a clock of this boot, which nobody can set."""

from __future__ import annotations

from agentctl.adapters import processes
from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import AnyPath, number_in, read_quietly, to_json, write_whole


def write_instant(path: AnyPath, from_now_s: float = 0.0) -> None:
    """Note an instant, so many seconds from now."""
    value = {"boot": processes.boot_id(), "at": since_boot() + from_now_s}
    write_whole(path, to_json(value), durable=False)


def seconds_until(path: AnyPath) -> float | None:
    """Return how long it is until the instant in a file, negative behind it; None for none of this boot."""
    at = number_in(path, "at")
    if at is None or read_quietly(path).get("boot") != processes.boot_id():
        return None
    return at - since_boot()
