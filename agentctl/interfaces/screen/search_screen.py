"""The search through all tasks: what is found, as it is found; Enter opens the worker that said it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.domain.text.plaintext import whole
from agentctl.domain.text.textquery import TextQuery, terms_of
from agentctl.errors import UsageError
from agentctl.interfaces.screen.acting.commands import error_line
from agentctl.interfaces.words.search import found_words, hit_line, more_line
from agentctl.operations.show.searching import MOST_COUNTED, Hit, Search

#: More hits than these are not shown: nobody reads them, and a better word finds fewer.
_MOST = 1000


def query_of(text: str) -> TextQuery:
    """Return what a person looks for.

    Raises:
        UsageError: There is no word.
    """
    try:
        return TextQuery(terms_of(text))
    except ValueError as error:
        raise UsageError(str(error), hint="words that are in one text; in quotes a phrase") from None


class SearchScreen(Screen[None]):
    """What a search has found.

    Args:
        root: Whose tasks are searched.
        text: The words, all of which have to be in one text; those in quotes are one phrase.
        query: The same, understood.
        open_worker: Called with the worker of a hit that was chosen; returns why it cannot be opened, or None.
    """

    CSS = """
    SearchScreen { background: $background; }
    SearchScreen #search-head { height: 1; padding: 0 1; background: $background; }
    SearchScreen OptionList { height: 1fr; border: none; padding: 0; background: $background; }
    SearchScreen OptionList > .option-list--option-highlighted { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,left,h", "leave", "Back"),
        Binding("enter", "choose", "Open"),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
    ]

    def __init__(self, root: Root, text: str, query: TextQuery, open_worker: Callable[[WorkerId], str | None]) -> None:
        super().__init__()
        self._root, self._text, self._query, self._open_worker = root, text, query, open_worker
        self._over = threading.Event()
        self._hits: list[Hit] = []
        self._head, self._found = Static("", id="search-head"), OptionList(compact=True, markup=False)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._found
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to search."""
        self._found.focus()
        self._say("searching…")
        self._search()

    def on_unmount(self) -> None:
        """Stop searching."""
        self._over.set()

    @work(thread=True)
    def _search(self) -> None:
        search = Search(self._root, self._query, stopped=self._over.is_set)
        said = ""
        try:
            for hit in search.hits():
                self.app.call_from_thread(self._add, hit)
                if len(self._hits) >= _MOST or self._over.is_set():
                    said = f"only the first {_MOST:,} are shown"
                    break
        except Exception as error:  # noqa: BLE001 - whatever it is, the screen says it
            said = error_line(error)
        if not self._over.is_set():
            found = found_words(self._hits) if self._hits else "nothing was found"
            self.app.call_from_thread(self._say, said or found)

    def _add(self, hit: Hit) -> None:
        self._hits.append(hit)
        line = more_line(hit, MOST_COUNTED) if hit.more else hit_line(hit)
        self._found.add_option(Text(whole(line), no_wrap=True, overflow="ellipsis"))

    def _say(self, text: str) -> None:
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(f"{whole(self._text)}  ", "bold")
        head.append(text, "dim")
        self._head.update(head)

    def action_move(self, by: int) -> None:
        """Move by lines."""
        (self._found.action_cursor_down if by > 0 else self._found.action_cursor_up)()

    def action_choose(self) -> None:
        """Open the worker of the hit."""
        at = self._found.highlighted
        hit = self._hits[at] if at is not None else None
        if hit is not None and hit.instance is not None:
            problem = self._open_worker(WorkerId(hit.task_id, hit.instance))
            if problem is not None:
                self._say(problem)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the worker of a hit that was clicked, or on which Enter was pressed."""
        event.stop()
        self.action_choose()

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss()
