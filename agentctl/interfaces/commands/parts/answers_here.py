"""Puts questions to whoever waits at this terminal, one after the other, and takes what they type; the wait goes on.

An answer is for what was seen: all of a question is shown, screen by screen if it is long, and what was typed before
that, or too soon behind it, counts for nothing. A call can be allowed only if it was shown whole. The answer goes to
the question as it was shown. One that is closed meanwhile goes from the terminal, with a line that says why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import answer_meant, check_answer
from agentctl.domain.names import WorkerId
from agentctl.domain.question import SETTLES_S, Question
from agentctl.domain.text.plaintext import plain
from agentctl.domain.text.terminal_rows import edged_rows, most_cells
from agentctl.encoding import typed_in
from agentctl.errors import AgentctlError, AtTerminal, UsageError
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.surface import TypedLines
from agentctl.interfaces.commands.parts.question_lines import accepted_line, answer_command, whole_command, written_rows
from agentctl.interfaces.words.question_pieces import (
    EDGE,
    call_pieces,
    kind_of_asker,
    look_of,
    option_pieces,
    options_of,
    seen_of,
    text_within,
)
from agentctl.lean import NamedTuple
from agentctl.operations.show.askers import PendingQuestion
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.talk.interacting import OpenQuestion, answer_open_question, open_question, what_became_of
from agentctl.operations.wait.rounds import WakeReasons
from agentctl.operations.where.command_lines import root_words

#: Of a screenful, the rows that are left to the line that is typed, and to what the shell has shown before.
_BESIDE = 3
_FEWEST_ROWS = 4
#: What is typed to see the arguments of a call as they are.
_RAW = "raw"
#: A terminal cuts a longer line, and says nothing.
_MOST_BYTES = 1000 if sys.platform == "darwin" else 4095


class QuestionKey(NamedTuple):
    """Names a question among all of a root."""

    worker: WorkerId
    id: str


class _Shown(NamedTuple):
    """The question that is on the terminal."""

    key: QuestionKey
    asked: OpenQuestion
    #: What has yet to be shown of it.
    rest: list[str]
    #: When a line is asked for.
    due: float
    is_prompted: bool = False


def answers_here(call: Invocation, root: Root, make_room: Callable[[], None]) -> AnswersHere | None:
    """Return what puts questions to a person at this terminal; None if a program or a worker runs this command."""
    typed = call.typed_lines()
    with suppress(AgentctlError):
        who = who_answers()
        if typed is not None and who.worker is None and not who.is_agent:
            return AnswersHere(call, root, typed, make_room)
    return None


class AnswersHere:
    """The questions that are put here, and what has become of them.

    Args:
        make_room: Called before a question is shown.
    """

    def __init__(self, call: Invocation, root: Root, typed: TypedLines, make_room: Callable[[], None]) -> None:
        self._call, self._root, self._typed, self._make_room = call, root, typed, make_room
        self._shown: _Shown | None = None
        #: Those that were closed, or answered; and those that a person has left for later.
        self._closed: set[QuestionKey] = set()
        self._left: set[QuestionKey] = set()

    @property
    def is_asking(self) -> bool:
        """Return whether a question is on the terminal."""
        return self._shown is not None

    def wakes(self) -> WakeReasons:
        """Return what ends the sleep of the wait."""
        shown = self._shown
        is_due = shown is not None and not shown.is_prompted
        return WakeReasons(self._typed.descriptors(), max(0.0, shown.due - monotonic()) if shown and is_due else None)

    def look(self, asked: Sequence[PendingQuestion]) -> list[PendingQuestion]:
        """Go on with what is asked by now; return the questions that have to be answered elsewhere.

        Args:
            asked: It may be somewhat older than what the files say.
        """
        if self._typed.was_resumed() or not self._typed.is_ours:
            self._typed.leave()
            self._shown = None  # The terminal shows something else by now: it is shown again once it can be answered.
        if not self._typed.is_ours:
            return [one for one in asked if _key(one) not in self._closed]
        if self._shown is not None:
            self._go_on(self._shown)
        for one in asked:
            if self._shown is None and _key(one) not in self._closed | self._left:
                self._begin(_key(one))
        return [one for one in asked if _key(one) in self._left]

    # -- the one that is shown -------------------------------------------------------------------------------------

    def _begin(self, key: QuestionKey) -> None:
        asked = self._read(key)
        if asked is None or not asked.is_waiting or asked.question.idle:
            return
        self._make_room()
        self._show_whole(_Shown(key, asked, [], 0.0))

    def _show_whole(self, shown: _Shown, *, is_raw: bool = False) -> None:
        """Show a question from its beginning.

        Args:
            is_raw: Of a call its arguments as they are, and not what it would do.
        """
        columns, _ = self._typed.size
        rows = _rows(shown.asked, root_words(self._root), columns - 1, is_raw=is_raw)
        self._show(shown._replace(rest=list(rows)))

    def _show(self, shown: _Shown) -> None:
        """Show the next screenful."""
        room = max(self._typed.size[1] - _BESIDE, _FEWEST_ROWS)
        rows, rest = shown.rest[:room], shown.rest[room:]
        self._call.note_all(rows)
        self._shown = shown._replace(rest=rest, due=monotonic() + SETTLES_S, is_prompted=False)

    def _go_on(self, shown: _Shown) -> None:
        asked = self._read(shown.key)
        if asked is None or not asked.is_waiting:
            self._closed.add(shown.key)
            self._end(what_became_of(self._root, *shown.key))
        elif asked.question != shown.asked.question:
            self._end(f"{shown.key.id} of {shown.key.worker.instance} is a different question by now")
        elif not shown.is_prompted:
            if monotonic() >= shown.due:
                self._typed.begin(_prompt(shown))
                self._shown = shown._replace(is_prompted=True)
        elif (line := self._typed.take()) is not None:
            self._take(shown, line)

    def _read(self, key: QuestionKey) -> OpenQuestion | None:
        """Return a question as it is now; as it was shown, where that cannot be read."""
        try:
            return open_question(self._root.task(key.worker.task_id), key.worker.instance, key.id)
        except (AgentctlError, OSError):
            return self._shown.asked if self._shown is not None else None

    def _end(self, line: str) -> None:
        self._typed.leave()
        self._shown = None
        self._call.note(line)

    # -- what was typed --------------------------------------------------------------------------------------------

    def _take(self, shown: _Shown, line: str) -> None:
        if shown.rest:
            self._show(shown)
        elif not line.strip():
            self._left.add(shown.key)
            self._shown = None
        elif line.strip() == _RAW and _has_raw(shown.asked.question):
            self._show_whole(shown, is_raw=True)
        else:
            self._answer(shown, line)

    def _answer(self, shown: _Shown, line: str) -> None:
        """Give an answer; one that is not taken is asked for again."""
        worker, question = shown.key.worker, shown.asked.question
        try:
            done = answer_open_question(
                self._root, task=self._root.task(worker.task_id), instance=worker.instance, question_id=question.id,
                answer=self._checked(shown.asked, line), shown=question,
            )  # fmt: skip
        except AgentctlError as error:
            self._call.note_error(error)
            self._shown = shown._replace(is_prompted=False, due=monotonic())
        else:
            self._closed.add(shown.key)
            self._end(accepted_line(done))

    def _checked(self, asked: OpenQuestion, line: str) -> str:
        """Return the answer that a line means.

        Raises:
            UsageError: The question does not take it; or not here, where it is not shown whole.
        """
        question, options = asked.question, options_of(asked.question)
        if "\n" in line or len(line.encode("utf-8", "surrogateescape")) >= _MOST_BYTES:
            raise UsageError(
                f"an answer here is one line of less than {_MOST_BYTES} bytes",
                hint=AtTerminal(answer_command(asked, root=root_words(self._root))),
            )
        answer = check_answer(question, answer_meant(options, line, multiple=question.multiple))
        if question.is_permission and not any(one.id == answer for one in options):
            raise UsageError(
                "this is not the whole call, so it is not allowed from here",
                hint=AtTerminal(_hint(asked, root_words(self._root))),
            )
        return answer


def _key(one: PendingQuestion) -> QuestionKey:
    return QuestionKey(WorkerId(one.task_id, one.instance), one.id)


# -- what is shown -----------------------------------------------------------------------------------------------------


def _rows(asked: OpenQuestion, root: str, width: int, *, is_raw: bool) -> Iterator[str]:
    """Yield the rows that show a question: each fits the terminal, and none can look like the line of somebody else."""
    question = asked.question
    by = f" ({kind_of_asker(question)})" if question.asked_by else ""
    what = "asks for permission" if question.is_permission else "asks"
    yield from _fitting(f"{plain(asked.instance)}{by} of {plain(asked.task_id)} {what}:", width)
    if question.is_permission:
        yield from _fitting("".join(text for text, _ in call_pieces(question, width, is_raw=is_raw)), width)
    else:
        edge = _as_printed(EDGE)
        yield from (edge + row for row in written_rows(text_within(question.text), width - most_cells(edge)))
    yield from _fitting("".join(_below(asked, root, width)), width)


def _fitting(text: str, width: int) -> Iterator[str]:
    for line in text.removesuffix("\n").split("\n"):
        yield from edged_rows(_as_printed(line), "| ", width).split("\n")


def _as_printed(line: str) -> str:
    """Return a line as the terminal gets it: what is not in its locale as an escape, which is longer."""
    encoding = typed_in()
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return line.replace(EDGE, "| ").encode(encoding, "backslashreplace").decode(encoding)
    return line


def _below(asked: OpenQuestion, root: str, width: int) -> Iterator[str]:
    """Yield what stands below what is asked: the answers, and how one is given."""
    question = asked.question
    if not seen_of(question).is_whole:
        yield f"  {_hint(asked, root)}\n"
    yield from (text for text, _ in option_pieces(question, width))
    if question.default is not None and not options_of(question):
        yield f"  default: {plain(question.default)}\n"
    yield f"{_how(question)}\n"


def _hint(asked: OpenQuestion, root: str) -> str:
    return f"all of it: {whole_command(asked, root)}"


def _how(question: Question) -> str:
    """Return how a question is answered here."""
    count = len(options_of(question))
    ways = [f"1-{count}" if count > 1 else "1"] if count else []
    ways += ["a text"] if question.takes_text else []
    several = ", several with commas between them" if question.multiple else ""
    raw = f"; {_RAW} shows the arguments" if _has_raw(question) else ""
    return f"{' or '.join(ways) or 'nothing'} answers{several}{raw}; Enter alone leaves it for later"


def _has_raw(question: Question) -> bool:
    """Return whether the arguments of a call can be asked for here, since something else is shown."""
    return question.is_permission and look_of(question) is not None and all(one.id != _RAW for one in question.choices)


def _prompt(shown: _Shown) -> str:
    if shown.rest:
        return f"Enter shows the rest ({len(shown.rest)} rows): "
    return f"answer to {shown.key.worker.instance}: "
