"""Which of the messages to Claude Code no turn has taken up yet."""

from __future__ import annotations


class UnreadMessages:
    """The ids of these messages.

    >>> unread = UnreadMessages()
    >>> for message in "ab":
    ...     unread.sent(message)
    >>> unread.moved("b", "started")
    >>> unread.turn_ended()  # The program would have told if "a" had been read as well.
    >>> len(unread)
    1
    """

    def __init__(self) -> None:
        self._ids: set[str] = set()
        #: This version tells what happens to each message.
        self._are_told = False

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._ids)

    def sent(self, message_id: str) -> None:
        """Add a message."""
        self._ids.add(message_id)

    def moved(self, message_id: str, state: object) -> None:
        """Take in what the program tells of a message: one that is still queued is unread."""
        self._are_told = True
        if state != "queued":
            self._ids.discard(message_id)

    def turn_ended(self) -> None:
        """Take all of them for read where the program does not tell it."""
        if not self._are_told:
            self._ids.clear()
