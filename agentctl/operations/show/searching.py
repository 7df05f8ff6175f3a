"""`search`: where words occur in all tasks of a root: titles, names, prompts, questions, transcripts, results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.activity.row import RowType
from agentctl.domain.question import Question
from agentctl.domain.text.terminal_output import rows_of_text
from agentctl.domain.text.textquery import WIDTH, Excerpt, TextQuery, excerpt_of
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.searched_lines import Stopped, lines_that_may_match
from agentctl.operations.where.folding import fold
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.questions import read_question

if TYPE_CHECKING:
    from agentctl.domain.documents.views import SearchHit

#: How many hits of one worker are returned by default.
MOST = 5
#: Beyond those, so many are counted; then the rest of the worker is left out.
MOST_COUNTED = 1000
#: Where a row of an activity is said to be found; a message of the user is one that the agent received.
_SOURCES: Mapping[str, str] = {
    RowType.MESSAGE: "said", RowType.THOUGHT: "thought", RowType.TOOL: "called", RowType.AGENT: "called",
    RowType.QUESTION: "question", RowType.NOTE: "note", RowType.PROGRESS: "reported",
}  # fmt: skip


class Hit(NamedTuple):
    """A text in which something was found; with `more`, how many other hits of the same worker were left out."""

    task_id: str
    #: None for the title of a task.
    instance: str | None
    #: `title name agent command prompt question answer said thought received called note reported result failure
    #: stdout stderr`; None with `more`.
    source: str | None
    at: str | None
    excerpt: Excerpt | None
    #: At most `MOST_COUNTED`.
    more: int = 0
    #: Where the row of the activity, or the line of the output, begins in its file; None for what lies elsewhere.
    offset: int | None = None

    def to_json(self) -> SearchHit:
        """Return it as `search --json` prints it."""
        text, begin, end = self.excerpt or (None, None, None)
        return {
            "taskId": self.task_id, "agentInstance": self.instance, "source": self.source, "at": self.at,
            "excerpt": text, "begin": begin, "end": end, "more": self.more,
            "offset": self.offset,
        }  # fmt: skip


class _Found(NamedTuple):
    """A text in which to look, with its source and its time."""

    source: str
    at: str | None
    text: str
    offset: int | None = None


class Search:
    """A search through tasks; it reads them while its hits are taken.

    Args:
        tasks: In which order; None takes all tasks of the root, the newest first.
        with_logs: Search the raw output of workers too.
        most: How many hits of one worker are returned.
        width: How many characters an excerpt has.
        stopped: Asked again and again; once it returns True, no more hits come.
    """

    def __init__(
        self,
        root: Root,
        query: TextQuery,
        *,
        tasks: Iterable[TaskDir] | None = None,
        with_logs: bool = False,
        most: int = MOST,
        width: int = WIDTH,
        stopped: Stopped = lambda: False,
    ) -> None:
        self._tasks = newest_first(root) if tasks is None else tasks
        self._query, self._with_logs, self._most, self._stopped = query, with_logs, most, stopped
        self._width = width
        #: What could not be read.
        self.warnings: list[str] = []

    def hits(self) -> Iterator[Hit]:
        """Yield the hits as they are found."""
        for task in self._tasks:
            if self._stopped():
                return
            config = usable_config(task)
            title = _Found("title", config.created_at, config.title)
            yield from self._limited(task.id, None, [title, _Found("name", config.created_at, task.id)])
            for worker, view in self._workers(task):
                if self._stopped():
                    return
                yield from self._limited(task.id, worker.instance, self._texts(worker, view))

    def _workers(self, task: TaskDir) -> Iterator[tuple[WorkerDir, WorkerView]]:
        """Yield the workers in the log, then those that only have a folder."""
        try:
            views = fold(task).workers
        except (AgentctlError, OSError) as error:
            views = {}
            self.warnings.append(str(error))
        for name in dict.fromkeys([*views, *task.instances()]):
            yield task.worker(name), views.get(name) or WorkerView(name)

    def _limited(self, task_id: str, instance: str | None, texts: Iterable[_Found]) -> Iterator[Hit]:
        """Yield the hits in some texts, and how many there are beyond the most that are wanted."""
        count = 0
        for one in texts:
            span = self._query.find(one.text)
            if span is None:
                continue
            count += 1
            if count <= self._most:
                found = excerpt_of(one.text, *span, self._width)
                yield Hit(task_id, instance, one.source, one.at, found, offset=one.offset)
            elif count >= self._most + MOST_COUNTED or self._stopped():
                break
        if count > self._most:
            yield Hit(task_id, instance, None, None, None, count - self._most)

    def _texts(self, worker: WorkerDir, view: WorkerView) -> Iterator[_Found]:
        yield from _of_the_start(worker, view)
        yield from self._read(_of_questions(worker))
        yield from self._read(_of_activity(worker, self._query, self._stopped))
        yield from _of_the_end(worker, view)
        for source in ("stdout", "stderr") if self._with_logs else ():
            path = worker.stdout if source == "stdout" else worker.stderr
            lines = lines_that_may_match(path, self._query, self._stopped)
            yield from self._read(_Found(source, None, _as_shown(line), offset) for offset, line in lines)

    def _read(self, texts: Iterator[_Found]) -> Iterator[_Found]:
        """Yield texts until a file cannot be read; note why."""
        try:
            yield from texts
        except (AgentctlError, OSError) as error:
            self.warnings.append(str(error))


def newest_first(root: Root) -> list[TaskDir]:
    """Return all tasks of a root, the newest first."""
    tasks = [root.task(name) for name in root.task_ids()]
    return sorted(tasks, key=lambda task: (usable_config(task).created_at or "", task.id), reverse=True)


def _of_the_start(worker: WorkerDir, view: WorkerView) -> Iterator[_Found]:
    spec, at = read_known(worker.spec), view.queued_at
    yield _Found("name", at, worker.instance)
    yield _Found("agent", at, view.agent)
    order, argv = spec.get("order"), spec.get("argv")
    prompt = order.get("prompt") if isinstance(order, dict) else None
    if isinstance(prompt, str):
        yield _Found("prompt", at, prompt)
    elif isinstance(argv, list):
        yield _Found("command", at, _joined(*argv))
    else:
        yield _Found("command", at, view.command)


def _of_questions(worker: WorkerDir) -> Iterator[_Found]:
    if not worker.interactions.exists():
        return
    for name in worker.question_ids():
        question, answer = read_question(worker, name), read_known(worker.answer(name))
        if question is not None:
            yield _Found("question", question.asked_at, _asked(question))
        if answer:
            yield _Found("answer", _time(answer.get("at")), _joined(answer.get("answer"), answer.get("reason")))


def _asked(question: Question) -> str:
    """Return everything that a question says in words; of a request for permission also the call that it is about."""
    labels = [option.label for option in question.options]
    return _joined(question.text, question.tool, _as_text(question.arguments), *labels)


def _of_activity(worker: WorkerDir, query: TextQuery, stopped: Stopped) -> Iterator[_Found]:
    for offset, line in lines_that_may_match(worker.activity, query, stopped):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and row.get("type") != RowType.USAGE:
            kind = str(row.get("type"))
            source = "received" if kind == RowType.MESSAGE and row.get("name") == "user" else _SOURCES.get(kind, "said")
            yield _Found(source, _time(row.get("at")), _text_of(row, with_name=source != "received"), offset)


def _text_of(row: Mapping[str, Any], *, with_name: bool) -> str:
    """Return everything that a row says in words, as one text."""
    name = row.get("name") if with_name else None
    return _joined(row.get("agentType"), name, row.get("text"), _as_text(row.get("detail")))


def _as_shown(line: bytes) -> str:
    """Return a line of an output as a terminal shows it."""
    text = line.decode("utf-8", "replace")
    return " ".join(row.text for row in rows_of_text(text)) if b"\x1b" in line or b"\r" in line else text


def _joined(*parts: object) -> str:
    """Return the texts among some values from a file as one text."""
    return " ".join(part for part in parts if isinstance(part, str) and part)


def _as_text(value: object) -> str | None:
    """Return a text as it is, any other value as JSON; None for one that cannot be written: lists without end."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None


def _of_the_end(worker: WorkerDir, view: WorkerView) -> Iterator[_Found]:
    if worker.result.exists():
        result = read_known(worker.result)
        for key in ("summary", "finalMessage"):
            if isinstance(result.get(key), str):
                yield _Found("result", _time(result.get("at")), result[key])
    decision = decision_of(worker) if worker.has_ended else None
    message = view.message or (decision.message if decision else None)
    if message:
        yield _Found("failure", view.ended_at, message)


def _time(value: object) -> str | None:
    return value if isinstance(value, str) else None
