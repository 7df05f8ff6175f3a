"""The endpoints that are not commands: texts that are read in pages, answers that name the question as it was seen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial

from agentctl import __version__
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.names import WorkerId, camel
from agentctl.domain.question import Question, question_in
from agentctl.domain.text.nesting import shallow
from agentctl.domain.text.plaintext import whole
from agentctl.errors import UsageError
from agentctl.interfaces.web.endpoint import BODY, NAME, PATH, CheckedRequest, Endpoint, Input, JsonAnswer, RawAnswer
from agentctl.interfaces.web.output_endpoints import OutputEndpoints, shown_in
from agentctl.interfaces.web.paging import PAGED, behind_page
from agentctl.interfaces.web.raw_content import BYTES, MOST_RAW, PLAIN, RawContent
from agentctl.interfaces.words.activity import row_label, words_in_row
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.fleet.seen import SeenEnds, ends_to_look_at, nothing_to_look_at
from agentctl.operations.show.event_pages import page_of_events
from agentctl.operations.show.result_files import open_result_file
from agentctl.operations.show.text_pages import page_of_activity
from agentctl.operations.show.timeline import read_timeline
from agentctl.operations.show.tree_view import Tree
from agentctl.operations.start.batch import batch_waits, request_from
from agentctl.operations.start.options import FLAG, NUMBER, OPTIONS, TABLE, TEXT, TEXTS, WHOLE
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.operations.where.locating import find_task, find_worker

if TYPE_CHECKING:
    from typing import IO

    from agentctl.domain.documents.server_answers import (
        ActivityPage,
        EventsPage,
        LookNoted,
        RecordedAnswer,
        ServerAbout,
    )
    from agentctl.domain.documents.views import TreeItem

_QUEUED = "Wait for a slot instead of being refused; by default as the task says."
_TASK = Input("task", NAME, "The task.", PATH, is_required=True)
_INSTANCE = Input("instance", NAME, "The worker.", PATH, is_required=True)
_TEXT = {"type": "string", "maxLength": 1 << 20}
_OBJECT = {"type": "object"}
_WORKER = "/tasks/{task}/workers/{instance}"
#: The header that says what has become of a file since the result was given.
FILE_STATE = "Agentctl-File-State"
#: So much of a file decides whether it is a text, and so much of it is read at once.
_LOOKED_AT, _PIECE = 1 << 12, 1 << 20


_KINDS: Mapping[str, Mapping[str, Any]] = {
    TEXT: _TEXT, NUMBER: {"type": "number", "minimum": -1e9, "maximum": 1e9},
    WHOLE: {"type": "integer", "minimum": -(2**31), "maximum": 2**31},
    FLAG: {"type": "boolean"}, TEXTS: {"type": "array", "items": _TEXT, "maxItems": 10_000},
    TABLE: {"type": "object", "additionalProperties": _TEXT},
}  # fmt: skip
#: What is said of a worker that is to be started.
_OF_WORK = (
    Input("prompt", _TEXT, "Work for an agent; or", BODY),
    Input("argv", {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 10_000},
          "a program and its arguments; or", BODY),
    Input("shell", _TEXT, "a line for /bin/sh -c.", BODY),
    Input("queue", {"type": "boolean"}, _QUEUED, BODY),
    *(Input(one.name, _KINDS[one.kind], one.help, BODY) for one in OPTIONS),
)  # fmt: skip


class OwnEndpoints:
    """Makes the endpoints for the tasks of a root.

    Args:
        url: Where the server is reached.
    """

    def __init__(self, root: Root, *, force: bool, url: str, is_read_only: bool) -> None:
        self._root, self._force = root, force
        self._about: ServerAbout = {
            "version": __version__, "root": str(root.path), "url": url, "readOnly": is_read_only,
        }  # fmt: skip
        self._seen = SeenEnds(root)

    def all(self) -> list[Endpoint]:
        """Return them."""
        return [
            Endpoint("GET", "/about", "about", "Say which server this is.", self._tell, answers="ServerAbout"),
            Endpoint("GET", "/drivers", "drivers", "Say what a start may ask of each driver.", self._drivers,
                     answers="list[DriverRow]"),
            self._events(), self._activity(), *OutputEndpoints(self._root, force=self._force).all(), self._file(),
            self._tree(), self._picture(), self._spawn(), self._spawn_batch(), self._respond(), self._look(),
        ]  # fmt: skip

    def _tell(self, _call: CheckedRequest) -> JsonAnswer:
        return JsonAnswer(self._about)

    def _drivers(self, _call: CheckedRequest) -> JsonAnswer:
        from agentctl.operations.trust.driver_choices import driver_choices  # It reads the rows of programs.

        return JsonAnswer(driver_choices())

    def _task(self, call: CheckedRequest) -> TaskDir:
        return find_task(call.values["task"], root=str(self._root.path), force=self._force)

    def _worker(self, call: CheckedRequest) -> WorkerDir:
        return find_worker(self._task(call), call.values["instance"])

    # -- what is read in pages -------------------------------------------------------------------------------------

    def _events(self) -> Endpoint:
        seq = {"type": "integer", "minimum": 1, "maximum": 1 << 53}

        def carry_out(call: CheckedRequest) -> JsonAnswer:
            task, given = self._task(call), call.values
            page = page_of_events(
                task, begin=given.get("from"), before=behind_page(call), limit=given.get("limit", 500),
                instance=given.get("instance"),
            )  # fmt: skip
            events = [{**shallow(event), "taskId": task.id} for event in page.events]
            found: EventsPage = {
                "events": events, "next": page.next, "more": page.more, "earlier": page.earlier,
            }  # fmt: skip
            return JsonAnswer(found)

        return Endpoint(
            "GET", "/tasks/{task}/events", "events", "Return the events of a task, in pages.", carry_out,
            (_TASK, Input("from", seq, "The seq of the first one; 1."),
             Input("before", seq, "The seq behind the last one, instead."),
             Input("limit", {"type": "integer", "minimum": 1, "maximum": 5000}, "How many; 500."),
             Input("instance", NAME, "Only those about this worker.")),
            "The stream has them as they happen. `more`: there are some behind these, from `next` on; `earlier`: there"
            " are some before them.", "EventsPage",
        )  # fmt: skip

    def _activity(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            worker, given = self._worker(call), call.values
            ended = worker.has_ended  # Before the look: what was written by then is all there is.
            page = page_of_activity(
                worker, begin=given.get("from"), before=behind_page(call), limit=given.get("limit", 200),
                is_whole=given.get("whole", False),
            )  # fmt: skip
            rows = [row if "problem" in row else {**row, "label": row_label(row), **shown_in(row)} for row in page.rows]
            found: ActivityPage = {
                "rows": rows, "begin": page.begin, "end": page.end, "size": page.size, "ended": ended,
            }  # fmt: skip
            return JsonAnswer(found)

        return Endpoint(
            "GET", f"{_WORKER}/activity", "activity", "Return the rows of a worker's activity, in pages.", carry_out,
            (_TASK, _INSTANCE, *PAGED,
             Input("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "How many rows; 200."),
             Input("whole", {"type": "boolean"}, "Do not cut long texts in them.")),
            "Each row has its `offset`, a `label` of one line, and `cut` if a text in it was cut: `cutAt` has each"
            " field of which a part is missing, or `detail` and the argument; what a call returned is `shown` too, in"
            " rows as `logs` has them, where a terminal would show more than its text.",
            "ActivityPage",
        )  # fmt: skip

    def _file(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> RawAnswer:
            path = call.values["path"]
            file, state = open_result_file(self._task(call), call.values["instance"], path)
            content = RawContent(os.fstat(file.fileno()).st_size, partial(_part_of, file), lambda: _pieces_of(file))
            is_text = _is_text(content.between(0, _LOOKED_AT))
            answer = content.answer(call.headers, os.path.basename(path), PLAIN if is_text else BYTES)
            return answer._replace(headers={**answer.headers, FILE_STATE: state})

        return Endpoint(
            "GET", f"{_WORKER}/file", "result.file", "Return a file that the result of a worker names.", carry_out,
            (_TASK, _INSTANCE,
             Input("path", {"type": "string", "minLength": 1, "maxLength": 4096}, "As the result has it.",
                   is_required=True)),
            "Only what the result names, in a folder of the worker, and no link is followed. All of it, or some with"
            f" `Range: bytes=N-M`, at most {MOST_RAW}. `{FILE_STATE}` compares it with the size and hash in the result:"
            " `same`, `changed`, or `not compared`.", None, BYTES,
        )  # fmt: skip

    def _tree(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            name = call.values["instance"]
            tree = Tree(self._task(call), instance=name, expand=[name]).look()[0].to_json()
            tree["items"] = [_with_line(item) for item in tree["items"]]
            return JsonAnswer(tree)

        return Endpoint(
            "GET", f"{_WORKER}/tree", "tree.one", "Return what a worker and its sub-agents did.", carry_out,
            (_TASK, _INSTANCE),
            "Its row, and `items` as `tree` has them with `expand`. `line`: the beginning of what an agent says.",
            "TreeWorker",
        )  # fmt: skip

    def _picture(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> RawAnswer:
            from agentctl.interfaces.words.timeline_svg import svg_of

            return RawAnswer(svg_of(read_timeline(self._task(call))).encode(), "image/svg+xml")

        return Endpoint(
            "GET", "/tasks/{task}/timeline.svg", "timeline.svg", "Return the timeline of a task as a picture.",
            carry_out, (_TASK,), answers=None, media_type="image/svg+xml",
        )  # fmt: skip

    # -- what changes something ------------------------------------------------------------------------------------

    def _spawn(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            request = request_from(_of_worker(call.values), "the body")
            (made,) = spawn_workers(self._task(call), [request], queue=request.queue)
            return JsonAnswer(
                made.to_json(), status=200 if made.reused else 201,
                location=f"/tasks/{made.task_id}/workers/{made.agent_instance}",
            )  # fmt: skip

        return Endpoint(
            "POST", "/tasks/{task}/spawn", "spawn", "Start an agent or a command as a worker.", carry_out,
            (_TASK, *_OF_WORK),
            "The same `key` twice starts one worker, and returns it. Many are started by `spawn-batch`.",
            "SpawnedWorker", creates=True,
            elsewhere={"batch": "POST …/spawn-batch starts many: what was `batch` is `workers` there"},
        )  # fmt: skip

    def _spawn_batch(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            requests = [
                request_from(_of_worker(one), f"worker {number}")
                for number, one in enumerate(call.values["workers"], 1)
            ]
            made = spawn_workers(self._task(call), requests, queue=batch_waits(requests))
            rows = [one.to_json() for one in made]
            return JsonAnswer(rows, status=200 if all(one.reused for one in made) else 201)

        workers = {"type": "array", "minItems": 1, "maxItems": 100_000}
        return Endpoint(
            "POST", "/tasks/{task}/spawn-batch", "spawn-batch", "Start many workers, all of them or none.", carry_out,
            (_TASK, Input("workers", workers, "Each as in `spawn`.", BODY, is_required=True, of_items=_OF_WORK)),
            "The answer has them in the order of the request.", "list[SpawnedWorker]", creates=True,
        )  # fmt: skip

    def _respond(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            given = call.values
            done = answer_open_question(
                self._root, task=self._task(call), instance=given["instance"], question_id=given["id"],
                answer=given["answer"], reason=given.get("reason"),
                shown=_shown(given["id"], given.get("shown")),
            )  # fmt: skip
            found: RecordedAnswer = {
                "taskId": done["taskId"], "agentInstance": done["agentInstance"], "id": done["id"],
                "answer": done["answer"],
            }  # fmt: skip
            return JsonAnswer(found)

        return Endpoint(
            "POST", f"{_WORKER}/interact/{{id}}", "interact.respond", "Answer a question.", carry_out,
            (_TASK, _INSTANCE, Input("id", NAME, "The question.", PATH, is_required=True),
             Input("answer", _TEXT, "The id of an option, or a text; several options with commas.", BODY,
                       is_required=True),
             Input("reason", _TEXT, "Why a permission is denied; the agent reads it.", BODY),
             Input("shown", _OBJECT, "The question as it was shown: a different one is not answered.", BODY)),
            "The first valid answer counts; a second one is refused.", "RecordedAnswer",
        )  # fmt: skip

    def _look(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            worker = self._worker(call)
            end = ends_to_look_at(self._root, worker.task, [worker.instance]).get(worker.instance)
            if end is None:
                raise nothing_to_look_at(worker.instance)
            self._seen.note({WorkerId(worker.task.id, worker.instance): end})
            found: LookNoted = {"agentInstance": worker.instance, "seen": end}
            return JsonAnswer(found)

        return Endpoint(
            "POST", f"{_WORKER}/seen", "seen", "Note that somebody has looked at the end of a worker.", carry_out,
            (_TASK, _INSTANCE), "Of an agent that was kept: at its answer.", "LookNoted",
        )  # fmt: skip


def _part_of(file: IO[bytes], begin: int, end: int) -> bytes:
    return os.pread(file.fileno(), end - begin, begin)


def _pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file of the size that it had; fewer bytes if it was cut meanwhile."""
    left = os.fstat(file.fileno()).st_size
    with file:
        while left and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece


def _is_text(data: bytes) -> bool:
    """Return whether the beginning of a file is that of a text; its last character may be cut."""
    return b"\0" not in data and len(data) - len(data.decode("utf-8", "ignore").encode()) < 4


def _shown(name: str, value: Mapping[str, Any] | None) -> Question | None:
    """Return the question that whoever answers has seen.

    Raises:
        UsageError: What they send is not a question.
    """
    question = None if value is None else question_in(name, value)
    if value is not None and question is None:
        raise UsageError("shown is not a question", hint="send the question as it was received")
    return question


def _with_line(item: TreeItem) -> TreeItem:
    words = words_in_row(item["type"], item["name"], item["text"])
    return item if words is None else {**item, "line": whole(words)}


def _of_worker(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request says of a worker, by the names that it has over HTTP: an error repeats them."""
    return {camel(name): value for name, value in values.items() if name != "task"}
