"""The line of an event, as `agentctl events` and the screen show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.value_words import JSON_ESCAPES, NOTHING, shown_json

_BEFORE_THE_PAYLOAD = ("seq", "ts", "type", "agentInstance", "by")


def event_line(event: Mapping[str, Any], as_json: Callable[[Any], str] = shown_json) -> str:
    r"""Return seq, time, type, instance, who did it and the payload, with tabs between; what is missing as `-`.

    >>> event_line({"seq": 3, "type": "agent.started", "payload": {"pid": 7}})
    '3\t-\tagent.started\t-\t-\t{"pid":7}'
    """
    known = [event.get(key) for key in _BEFORE_THE_PAYLOAD]
    payload = as_json(event.get("payload") or {}).translate(JSON_ESCAPES)
    return "\t".join([*(NOTHING if value in (None, "") else plain(value) for value in known), plain(payload)])
