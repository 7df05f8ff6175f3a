"""Which names of a log belonged to workers that were removed: whoever has such a name later is another worker."""

from __future__ import annotations

from agentctl.domain.events import QUEUED, REMOVED, Event


class Removals:
    """Tells, event by event, whether one is about a worker that there is.

    A process that had looked at a worker before its removal may append an event about it afterwards.
    """

    def __init__(self) -> None:
        self._gone: set[str] = set()

    def hides(self, event: Event) -> bool:
        """Return whether an event is about a worker that was removed; its removal itself is not.

        >>> log = [("agent.removed", "a"), ("agent.failed", "a"), ("agent.queued", "a"), ("agent.failed", "a")]
        >>> removals = Removals()
        >>> [removals.hides({"type": kind, "agentInstance": name, "payload": {}}) for kind, name in log]
        [False, True, False, False]
        """
        if event["type"] == REMOVED:
            self._gone.add(event.get("agentInstance", ""))
            return False
        if not self._gone or event.get("agentInstance") not in self._gone:
            return False
        if event["type"] == QUEUED:
            self._gone.discard(event["agentInstance"])
            return False
        return True


class Accepted:
    """The names of a log that workers have, as far as it was read."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._removals = Removals()

    def take(self, event: Event) -> None:
        """Take in the next event."""
        name = event.get("agentInstance")
        if event["type"] == REMOVED:
            self.names.discard(str(name))
        if name and not self._removals.hides(event) and event["type"] != REMOVED:
            self.names.add(name)
