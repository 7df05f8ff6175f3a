"""The peek: what the worker under the cursor asks, with everything that belongs to the question; else what it says.

A digit gives the answer. One that was pressed before a question has been on the screen for a moment does not count: it
was meant for the question before. A call can be allowed only once all of it has been on the screen: what is dangerous
may stand at its end.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from agentctl.adapters.clock import monotonic
from agentctl.domain.activity.view import Node
from agentctl.domain.answers import check_answer
from agentctl.domain.names import WorkerId
from agentctl.domain.question import DENY, SETTLES_S, Question
from agentctl.domain.states import TERMINAL
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.ends import end_in_words
from agentctl.errors import UsageError
from agentctl.interfaces.screen.acting.activity_item import drawn_pieces, item_pieces
from agentctl.interfaces.screen.fleet.drawing import Piece, since, totals_shown
from agentctl.interfaces.words.activity import one_line
from agentctl.interfaces.words.looks.look import style_of
from agentctl.interfaces.words.question_pieces import (
    call_pieces,
    kind_of_asker,
    look_of,
    option_pieces,
    options_of,
    takes_words,
    text_within,
)
from agentctl.interfaces.words.worker import agent_with_policy, full_standing, progress_words
from agentctl.operations.fleet.glance import FleetWorker, Glance

#: The cells that the padding and the scrollbar take of a row.
_BESIDE = 4


class Peek(VerticalScroll, can_focus=False):
    """The peek at one worker."""

    DEFAULT_CSS = """
    Peek { height: auto; border-top: solid $primary; padding: 0 1; scrollbar-size-vertical: 1; }
    Peek > Static { height: auto; }
    """
    #: The styles of the roles in what is shown.
    STYLES: ClassVar[dict[str, str]] = {
        "dim": "dim", "name": "bold", "blocked": "yellow", "failed": "red", "key": "bold cyan",
        "agent": "cyan", "completed": "green",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._text = Static()
        self._shown: tuple[Piece, ...] | None = None
        self._question: tuple[WorkerId, str] | None = None
        self._asked: Question | None = None
        #: When the question was drawn; infinity until then.
        self._since = math.inf
        self._was_seen_whole = False
        #: Whether it is shown as it was written: a question without its Markdown drawn, of a call the arguments.
        self._is_source = False
        self.chosen: set[str] = set()
        #: What was asked before, shown where nothing is asked now.
        self.before = ""

    def compose(self) -> ComposeResult:
        yield self._text

    @property
    def text(self) -> str:
        """What is shown."""
        return str(self._text.content)

    @property
    def question_key(self) -> tuple[WorkerId, str] | None:
        """Return the worker and the id of the question that is shown."""
        return self._question

    @property
    def has_settled(self) -> bool:
        """Return whether the question has been shown for long enough to be answered by a digit."""
        return self.has_settled_at(monotonic())

    def has_settled_at(self, moment: float) -> bool:
        """Return whether it had been shown for long enough at a moment, as when a key was pressed (monotonic)."""
        return self._question is not None and moment - self._since >= SETTLES_S

    def why_not(self, worker: FleetWorker, question: Question, answer: str, *, is_written: bool = False) -> str | None:
        """Return why an answer cannot be given here; None if it can.

        Args:
            is_written: A person has written it, and not pressed a digit: so they know what it says.
        """
        if not question.is_permission:
            is_read = is_written or self.max_scroll_y == 0 or self._was_seen_whole
            return None if is_read else "not all of the question has been on the screen yet: Ctrl+D scrolls it"
        with contextlib.suppress(UsageError):
            answer = check_answer(question, answer)
        if question.meaning(answer) == DENY:
            return None
        if self._question != (worker.id, question.id) or self._asked != question or not self.display:
            return "this call is not what is on the screen now: look at it again"
        if not any(one.id == answer for one in options_of(question)):
            return "this is not the whole call, so it can only be denied here: agentctl logs --raw has all of it"
        if math.isinf(self._since) or (self.max_scroll_y > 0 and not self._was_seen_whole):
            return "not all of the call has been on the screen yet: Ctrl+D scrolls it"
        return None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note that the end of what is shown was on the screen."""
        super().watch_scroll_y(old_value, new_value)
        self._tell_of_more()
        is_drawn = not math.isinf(self._since)
        self._was_seen_whole = self._was_seen_whole or (is_drawn and new_value >= self.max_scroll_y)

    def _tell_of_more(self) -> None:
        self.border_title = "Ctrl+D shows the rest" if self.scroll_y < self.max_scroll_y else ""

    def on_resize(self) -> None:
        """Say whether there is more than what is visible."""
        self._tell_of_more()

    def show(self, glance: Glance, worker: FleetWorker, node: Node | None = None) -> None:
        """Show a worker, or an item of its activity; nothing is drawn if nothing has changed."""
        question = worker.questions[0] if worker.questions else None
        key = (worker.id, question.id) if question is not None else None
        if key != self._question or question != self._asked:
            self._question, self._asked, self._is_source = key, question, False
            self.begin()
        width = self.app.size.width - _BESIDE
        pieces = tuple(self._pieces(glance, worker, width, node))
        if self.before and question is None:
            pieces += (("\n\nAnswered before:\n", "dim"), (self.before, "text"))
        if pieces != self._shown:
            self._shown = pieces
            text = Text()
            for words, role in pieces:
                text.append(words, Style.parse(self.STYLES.get(role) or style_of(role)))
            self._text.update(text)

    def _pieces(self, glance: Glance, worker: FleetWorker, width: int, node: Node | None) -> Iterator[Piece]:
        if worker.questions:
            now = datetime.now(UTC)
            yield from _asked(worker, worker.questions[0], self.chosen, now, width, is_source=self._is_source)
        else:
            yield from _without_question(glance, worker, width, node)

    def change_source(self) -> None:
        """Show a question as it was written, or drawn again; what is shown then has not been seen yet."""
        self._is_source = not self._is_source
        self.begin()

    def begin(self) -> None:
        """Take nothing of the question for seen: it, or the screen that it is on, is about to be drawn."""
        self._since, self._was_seen_whole = math.inf, False
        self.chosen.clear()
        self.call_after_refresh(self._drawn, self._asked)

    def _drawn(self, asked: Question | None) -> None:
        """Note that a question was drawn, from its beginning on: the place of the one before it does not count."""
        if asked is self._asked:
            self.scroll_home(animate=False, immediate=True)
            self._since = monotonic()

    def show_nothing(self) -> None:
        """Forget what was shown."""
        self._question = self._asked = None


def _without_question(glance: Glance, worker: FleetWorker, width: int, node: Node | None) -> Iterator[Piece]:
    """Yield what the peek says of a worker that asks nothing: the item of its activity, else its last words."""
    if node is not None:
        yield from item_pieces(node, width)
        return
    yield from peek_head(glance, worker)
    doing = glance.doings.get(worker.id)
    if worker.row["command"]:
        yield ("\n" + text_within(worker.row["command"]), "dim")
    words = doing.last_words if doing is not None else worker.row["lastLine"]
    text = "\n".join(part for part in (worker.row["message"], words) if part)
    if text:
        yield ("\n", "text")
        yield from drawn_pieces(text_within(text), width) if worker.row["driver"] else [(text_within(text), "text")]


def peek_head(glance: Glance, worker: FleetWorker) -> Iterator[Piece]:
    """Yield who a worker is, and how it stands."""
    row = worker.row
    yield (row["agentInstance"], "name")
    yield (f" of {worker.task.id}", "dim")
    yield (f"  {plain(agent_with_policy(row))}" if row["agent"] != "command" else "", "agent")
    how = end_in_words(row["status"], row["reason"], row["exitCode"], row["signal"])
    yield (f"  {how}", "failed" if row["status"] == "failed" else "text")
    unusual = None if row["reason"] else full_standing(row)
    yield (f"  {plain(unusual)}" if unusual else "", "blocked")
    done = progress_words(row["progress"])
    yield (f"  {one_line(done)}" if done and row["status"] not in TERMINAL else "", "text")
    totals = totals_shown(glance, worker)
    yield (f"  attempt {row['attempt']}" if row["attempt"] > 1 else "", "dim")
    yield (f"  {totals.calls} call{'s' * (totals.calls > 1)}" if totals.calls else "", "dim")
    yield (f"  {totals.tokens:,} tokens" if totals.tokens else "", "dim")


def _asked(
    worker: FleetWorker, question: Question, chosen: set[str], now: datetime, width: int, *, is_source: bool
) -> Iterator[Piece]:
    row = worker.row
    what = "asks for permission" if question.is_permission else "asks"
    by = f" ({kind_of_asker(question)})" if question.asked_by else ""
    yield (row["agentInstance"], "name")
    yield (f"{by} of {worker.task.id} ", "dim")
    yield (what, "blocked")
    more = f", {len(worker.questions) - 1} more after it" if len(worker.questions) > 1 else ""
    yield (f"  waiting {since(question.asked_at, now)}{more}\n", "dim")
    if question.is_permission:
        yield from call_pieces(question, width, is_raw=is_source)
    elif is_source:
        yield (text_within(question.text) + "\n", "text")
    else:
        yield from drawn_pieces(text_within(question.text), width)
    yield from option_pieces(question, width, chosen)
    yield (_how(question), "dim")


def _how(question: Question) -> str:
    options = options_of(question)
    digits = f"1-{min(9, len(options))}" if len(options) > 1 else "1"
    parts = []
    if options and question.multiple:
        parts.append(f"{digits} chooses, Enter answers")
    elif options:
        parts.append(f"{digits} answers")
    if takes_words(question):
        parts.append("i writes the answer")
    if question.denial is not None:
        parts.append("D denies with a reason")
    if question.is_permission and look_of(question) is not None:
        parts.append("R shows the arguments")
    return ", ".join(parts)
