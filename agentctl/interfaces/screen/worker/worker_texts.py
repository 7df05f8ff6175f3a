"""The finished texts about one worker that its screen shows: its result, why it is as it is, what it has changed."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.text.patchtext import PatchedFile
from agentctl.domain.text.plaintext import beginning, plain
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.errors import Refused
from agentctl.interfaces.screen.acting.commands import error_line
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import DrawnForm, ShownLine, Spot, shown_lines
from agentctl.interfaces.screen.texts.sources import TextSource
from agentctl.interfaces.words.looks.markdown_lines import markdown_lines
from agentctl.interfaces.words.looks.printed_rows import printed_lines
from agentctl.interfaces.words.value_words import local_time
from agentctl.interfaces.words.why import last_lines_shown, why_lines
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.results import read_result
from agentctl.operations.show.why import why_worker
from agentctl.operations.worktree.diff import Since, Until, WorktreeDiff, make_diff
from agentctl.supervision.worker.questions import read_question

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerResult

#: More of a result, or of a diff, is not read by a person on a screen.
_RESULT_BYTES, _DIFF_BYTES = 1 << 20, 4 << 20
_LIMIT_S = 20.0
#: So many answered questions are shown, and so much of each and of its answer.
_MOST_ANSWERED, _LONGEST_ANSWERED = 20, 500
#: After a look it rests so many times as long as that took.
_SHARE = 10
_SINCE = {Since.BASE: "its base", Since.TURN: "its last turn began"}
_UNTIL = {Until.NOW: "as it is now", Until.END: "as it was at its end"}
_BINARY = b"GIT binary patch"
#: The line with the ids of a file's content before and after; as much of them as git shows to people.
_INDEX = re.compile(rb"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})", re.MULTILINE)


def _in_any_case(load: Callable[[], str]) -> str:
    """Return a text; where it cannot be made, why."""
    try:
        return load()
    except Exception as error:  # noqa: BLE001 - whatever it is, the person reads it in place of the text
        return error_line(error)


def _shortened(index: re.Match[bytes]) -> bytes:
    return b"index %b..%b" % (index[1][:7], index[2][:7])


class RenewedText(TextSource):
    """A text that is made anew now and then: what was at the top of the pager stays there."""

    def __init__(self, load: Callable[[], str], *, is_diff: bool = False) -> None:
        super().__init__(lambda: _in_any_case(load), is_diff=is_diff)
        self._make = load

    def renew(self) -> None:
        """Have the text made anew at the next `grow`."""
        self._load = lambda: _in_any_case(self._make)

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return a line; an empty one where the text has become shorter meanwhile."""
        try:
            return super().paragraph(number)
        except IndexError:
            return (ShownLine(""),)

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`."""
        return super().hits(needle, first, min(last, len(self)))


class ResultText(RenewedText, DrawnForm):
    """A worker's result as `agentctl result` knows it: how it ended, what it declared, its files, its words.

    The words of an agent are Markdown; a command's output is shown as a terminal shows it.
    """

    def __init__(self, task: TaskDir, instance: str, *, is_source: bool = True) -> None:
        DrawnForm.__init__(self, is_source=is_source)
        RenewedText.__init__(self, self._find)
        self._task, self._instance = task, instance
        #: How many lines stand before the words, and behind them; None: there are none that can be drawn.
        self._around: tuple[int, int] | None = None
        self._is_output = self._is_end = False
        self._drawn: list[ShownLine] | None = None

    def _find(self) -> str:
        found = read_result(self._task, self._instance, max_bytes=_RESULT_BYTES)
        head, tail = list(_result_head(found)), list(_result_tail(found))
        self._around = (_count(head), len(tail)) if found["source"] != "none" else None
        self._is_output, self._is_end = found["source"] == "stdout", found["truncated"]
        return "\n".join([*head, str(found["text"]), *tail])

    def grow(self) -> bool:
        """Have the text made, where that is due."""
        super().grow()
        self.draw_anew()
        return False

    def draw_anew(self) -> None:
        """Lay the words out, for the width."""
        if self._around is None or self.is_source:
            self._drawn = None
            return
        before, behind = self._around
        lines = [super(ResultText, self).paragraph(number) for number in range(len(self._lines))]
        end = len(lines) - behind
        text = "\n".join(self._lines[before:end])
        words = printed_lines(text, is_end=self._is_end) if self._is_output else markdown_lines(text, self.width)
        drawn = [shown for line in words for shown in shown_lines(line)]
        self._drawn = [*chain.from_iterable(lines[:before]), *drawn, *chain.from_iterable(lines[end:])]

    def __len__(self) -> int:
        return super().__len__() if self._drawn is None else len(self._drawn)

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return a line; an empty one where the text has become shorter meanwhile."""
        drawn = self._drawn
        if drawn is None:
            return super().paragraph(number)
        return (drawn[number] if number < len(drawn) else ShownLine(""),)


def _count(texts: Sequence[str]) -> int:
    """Return how many lines some texts are."""
    return sum(text.count("\n") + 1 for text in texts)


def _result_head(found: WorkerResult) -> Iterator[str]:
    ended = end_in_words(found["status"], found["reason"], found["exitCode"], found["signal"])
    yield plain(": ".join([ended, *filter(None, ["; ".join(said_at_end(found["message"], found["lastLine"]))])]))
    yield from last_lines_shown(found, without=found["source"])
    if found.get("summary"):
        yield f"declared: {found['summary']}"
    for file in found["files"]:
        yield plain(f"file: {file['path']}")
    yield "" if found["source"] != "none" else "There is no result yet."


def _result_tail(found: WorkerResult) -> Iterator[str]:
    if found["truncated"]:
        where = f", all of it in {found['path']}" if found.get("path") else ""
        yield plain(f"[cut: {found['size']:,} bytes{where}]")


def why_text(task: TaskDir, instance: str) -> str:
    """Return why a worker is as it is, as `agentctl why` says it."""
    return "\n".join(why_lines(why_worker(task, instance)))


def answered_text(worker: WorkerDir) -> str:
    """Return the last questions of a worker that were answered, each with its answer, oldest first."""
    answered = [name for name in worker.question_ids() if worker.answer(name).exists()]
    return "\n".join(filter(None, (_answered(worker, name) for name in answered[-_MOST_ANSWERED:])))


def _answered(worker: WorkerDir, name: str) -> str:
    question, answer = read_question(worker, name), read_known(worker.answer(name))
    if question is None or question.idle:
        return ""
    asked, said = (beginning(str(text), _LONGEST_ANSWERED) for text in (question.text, answer.get("answer")))
    when, who = local_time(answer.get("at")), plain(str(answer.get("by") or "?"))
    return plain(f"{name}: {asked}") + plain(f"\n    {when} {who}: {said}", keep="\n")


class FoundDiff(NamedTuple):
    """What a worker had changed when it was looked at, with the patch in which its files have their places.

    Both are one value: in the patch of another look the same files may lie elsewhere.
    """

    diff: WorktreeDiff
    patch: bytes

    @property
    def files(self) -> tuple[PatchedFile, ...]:
        """The files that differ."""
        return self.diff.files

    def headline(self) -> str:
        """Return what was compared, and how much of it differs."""
        if self.diff.since is None:
            return "It has no worktree. Its driver says that it touched these files:"
        added = sum(file.added or 0 for file in self.files)
        removed = sum(file.removed or 0 for file in self.files)
        size = len(self.files) + self.diff.more_files
        what = f"{size} file{'' if size == 1 else 's'}  +{added} -{removed}" if size else "nothing was changed"
        return f"Since {_SINCE[self.diff.since]}, {_UNTIL[self.diff.until]}: {what}"

    def text(self) -> str:
        """Return the whole diff below the headline."""
        return "\n".join([self.headline(), *self._notes(), *map(self.text_of, self.files)])

    def _notes(self) -> Iterator[str]:
        for one in self.diff.left_out:
            yield plain(f"not compared: {one.get('path')}: {one.get('why')}")
        if self.diff.is_cut:
            yield "The diff is too long: it was cut."

    def text_of(self, file: PatchedFile) -> str:
        """Return the diff of one of the files; of one that is not text, only that it differs."""
        if file.status == "touched":
            return os.fsdecode(file.path)
        data = self.patch[file.start : file.end]
        if file.added is None:
            data = data.partition(_BINARY)[0] + b"(not text)\n"
        return _INDEX.sub(_shortened, data, count=1).decode(errors="backslashreplace").removesuffix("\n")


class WorkerDiff:
    """What a worker has changed, looked at anew for each showing; two threads may ask for it."""

    def __init__(self, task: TaskDir, instance: str) -> None:
        self._task, self._instance = task, instance
        self._lock = threading.Lock()
        self.since = Since.BASE
        self.found: FoundDiff | None = None
        self.problem: str | None = None
        self._began = self._ended = 0.0

    @property
    def is_due(self) -> bool:
        """Whether to look anew by itself: a look at a large worktree is to leave the machine to others."""
        return monotonic() >= self._ended + _SHARE * (self._ended - self._began)

    def look(self) -> FoundDiff | None:
        """Look at the worktree; return None where that fails: what is wrong is in `problem`."""
        with self._lock:
            self._began = monotonic()
            try:
                self.found, self.problem = self._look(), None
            except Exception as error:  # noqa: BLE001 - whatever it is, the tabs say it, and may look again
                self.found, self.problem = None, error_line(error)
            self._ended = monotonic()
            return self.found

    def _look(self) -> FoundDiff:
        with tempfile.TemporaryFile() as file:
            found = make_diff(self._task, self._instance, self.since, file, most_bytes=_DIFF_BYTES, limit_s=_LIMIT_S)
            file.seek(0)
            return FoundDiff(found, file.read())

    def text(self) -> str:
        """Look, and return the whole diff below a line that says what was compared.

        Raises:
            AgentctlError: It cannot be told.
        """
        return self._looked().text()

    def patch(self) -> bytes:
        """Look, and return the diff as `git apply` takes it.

        Raises:
            AgentctlError: It cannot be told.
        """
        return self._looked().patch

    def _looked(self) -> FoundDiff:
        found = self.look()
        if found is None:
            raise Refused(self.problem or "it is not known what was changed")
        return found
