"""The row of tabs of a worker's screen."""

from __future__ import annotations

from enum import StrEnum

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets import Static


class Tab(StrEnum):
    """What is shown of a worker, in the order of the digits that show it."""

    TRANSCRIPT = "transcript"
    LOG = "log"
    FILES = "files"
    DIFF = "diff"
    RESULT = "result"
    QUESTIONS = "questions"
    EVENTS = "events"
    WHY = "why"


TABS = tuple(Tab)


class TabRow(Static):
    """The names of the tabs, each with its digit."""

    DEFAULT_CSS = """
    TabRow { height: 1; padding: 0 1; background: $background; }
    """

    class Picked(Message):
        """A tab was clicked."""

        def __init__(self, tab: Tab) -> None:
            super().__init__()
            self.tab = tab

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._ends: list[int] = []

    def show(self, current: Tab, questions: int) -> None:
        """Draw the row; the tab of the questions says how many are open."""
        text, self._ends = Text(no_wrap=True, overflow="ellipsis"), []
        for number, tab in enumerate(TABS, 1):
            count = f" ({questions})" if tab is Tab.QUESTIONS and questions else ""
            role = "yellow bold" if count else "dim"
            text.append(f"{number} {tab}{count}", "reverse bold" if tab is current else role)
            text.append(" ")
            self._ends.append(text.cell_len)
        self.update(text)

    def on_click(self, event: events.Click) -> None:
        """Show the tab that was clicked."""
        place = event.get_content_offset(self)
        found = next((at for at, end in enumerate(self._ends) if place is not None and place.x < end), None)
        if found is not None:
            self.post_message(self.Picked(TABS[found]))
