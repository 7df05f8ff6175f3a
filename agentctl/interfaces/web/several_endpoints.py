"""The endpoints that act on several workers, of any tasks, by one request, and say what became of each.

About the workers of a task it is one decision, of a cancel about all of them; one that cannot be acted on is left alone
and told with the reason. Nothing here answers a question: each is read and answered by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.names import WorkerId
from agentctl.domain.same_request import digests_of
from agentctl.errors import AgentctlError, Conflict, Next, Refused, steps_in_words
from agentctl.interfaces.web.endpoint import BODY, NAME, CheckedRequest, Endpoint, Input, JsonAnswer
from agentctl.interfaces.web.next_requests import in_task, words_over_http
from agentctl.interfaces.web.problems import error_and_steps, is_foreseen, step_documents
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.delegate.telling import tell_worker
from agentctl.operations.fleet.seen import SeenEnds, ends_to_look_at, nothing_to_look_at
from agentctl.operations.show.current_state import read_task
from agentctl.operations.start.again import retry_workers
from agentctl.operations.start.request_keys import each_keyed
from agentctl.operations.start.requests import Spawned
from agentctl.operations.stop.cancelling import Cancelled, cancel_found
from agentctl.operations.stop.pausing import turn_as_far_as_possible
from agentctl.operations.where.locating import find_task, find_worker
from agentctl.operations.where.ownership import check_may_be_stopped

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import WorkerOutcome, WorkerOutcomes

_WORKERS = Input(
    "workers",
    {
        "type": "array", "minItems": 1, "maxItems": 10_000,
        "items": {
            "type": "object", "properties": {"taskId": NAME, "agentInstance": NAME},
            "required": ["taskId", "agentInstance"], "additionalProperties": False,
        },
    },
    "{taskId, agentInstance} of each.", BODY, is_required=True,
)  # fmt: skip
_TEXT = Input("text", {"type": "string", "maxLength": 1 << 20}, "The message.", BODY, is_required=True)
_KEY = Input("key", {"type": "string", "minLength": 1, "maxLength": 900}, "The same key twice acts once on each.", BODY)


class AskedWorkers:
    """The workers of a request, and what has become of them so far.

    Args:
        ids: Of workers; the same one twice is one.
    """

    def __init__(self, ids: Iterable[WorkerId], root: Root, *, force: bool) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._tasks: dict[str, TaskDir] = {}
        self._found: dict[WorkerId, WorkerDir] = {}
        self._outcomes: dict[WorkerId, WorkerOutcome] = {}
        #: What became of the workers below them.
        self.below: list[WorkerOutcome] = []
        for name in dict.fromkeys(one.task_id for one in self._ids):
            ids_here = [one for one in self._ids if one.task_id == name]
            with self.refusing(ids_here):
                self._tasks[name] = find_task(name, root=str(root.path), force=force)
        for one in self.left():
            with self.refusing([one]):
                self._found[one] = find_worker(self._tasks[one.task_id], one.instance)

    def left(self) -> list[WorkerId]:
        """Return those of which nothing has become yet."""
        return [one for one in self._ids if one not in self._outcomes]

    def tasks(self) -> list[tuple[TaskDir, list[WorkerId]]]:
        """Return the same by their tasks."""
        left: dict[str, list[WorkerId]] = {}
        for one in self.left():
            left.setdefault(one.task_id, []).append(one)
        return [(self._tasks[name], ids) for name, ids in left.items()]

    def named_in(self, task: TaskDir) -> list[str]:
        """Return the names of all workers of a task in the request, also of those that are not there."""
        return sorted(one.instance for one in self._ids if one.task_id == task.id)

    def folder(self, one: WorkerId) -> WorkerDir:
        """Return the folder of a worker."""
        return self._found[one]

    def became(self, one: WorkerId, *notes: str | None, **more: Any) -> None:
        """Note what became of a worker; see `_outcome`."""
        self._outcomes[one] = _outcome(one, *notes, **more)

    def refused(self, one: WorkerId, error: AgentctlError | OSError) -> None:
        """Note why nothing was done to a worker."""
        detail, found = error_and_steps(error)
        steps = [in_task(step, one.task_id) for step in found]
        documents = step_documents(steps)
        first = next((one for one in documents if one["step"]), None)
        more: dict[str, Any] = {"steps": documents} | ({"next": first} if first else {})
        if isinstance(error, Conflict):
            more["conflict"] = True
        self.became(one, detail, hint=steps_in_words(steps, words_over_http), done=False, **more)

    @contextlib.contextmanager
    def refusing(self, ids: Sequence[WorkerId]) -> Iterator[None]:
        """Have an error within the block tell why nothing was done to those of these that are left."""
        try:
            yield
        except (AgentctlError, OSError) as error:
            if isinstance(error, OSError) and not is_foreseen(error):
                raise
            for one in ids:
                if one not in self._outcomes:
                    self.refused(one, error)

    def told(self) -> WorkerOutcomes:
        """Return what became of all."""
        return {"workers": [self._outcomes[one] for one in self._ids], "below": self.below}


def _outcome(
    one: WorkerId, *notes: str | None, done: bool = True, hint: str | None = None, **more: Any
) -> WorkerOutcome:
    """Return what became of a worker.

    Args:
        notes: What there is to say of it.
        more: Further keys.
    """
    found: Any = {"taskId": one.task_id, "agentInstance": one.instance, "done": done}
    found |= {"detail": "; ".join(filter(None, notes)) or None, "hint": hint, **more}
    outcome: WorkerOutcome = found
    return outcome


_Act = Callable[[AskedWorkers, Mapping[str, Any]], None]


class SeveralEndpoints:
    """Makes the endpoints for the tasks of a root."""

    def __init__(self, root: Root, *, force: bool) -> None:
        self._root, self._force = root, force
        self._seen = SeenEnds(root)

    def all(self) -> list[Endpoint]:
        """Return them."""
        return [
            self._endpoint("cancel", "Stop workers with all their processes, by one decision.", _cancel),
            self._endpoint("pause", "Pause workers.", _each_task(partial(_turn, paused=True))),
            self._endpoint("unpause", "Let paused workers continue.", _each_task(partial(_turn, paused=False))),
            self._endpoint("retry", "Start the work of ended workers once more.", _each_task(_retry), _KEY),
            self._endpoint(
                "send",
                "Send one message to workers; ended agents are continued with it.",
                _each_task(_send),
                _TEXT,
                _KEY,
            ),
            self._endpoint("seen", "Note that somebody has looked at the ends of workers.", self._look),
        ]

    def _endpoint(self, verb: str, summary: str, act: _Act, *more: Input) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            ids = (WorkerId(one["taskId"], one["agentInstance"]) for one in call.values["workers"])
            asked = AskedWorkers(ids, self._root, force=self._force)
            act(asked, call.values)
            return JsonAnswer(asked.told())

        return Endpoint(
            "POST", f"/workers/{verb}", f"workers.{verb}", summary, carry_out, (_WORKERS, *more),
            "The answer is 200 also where some or all are refused: it says of each what became of it.",
            "WorkerOutcomes", waits=True,
        )  # fmt: skip

    def _look(self, asked: AskedWorkers, _values: Mapping[str, Any]) -> None:
        found: dict[WorkerId, str] = {}
        for task, ids in asked.tasks():
            with asked.refusing(ids):
                ends = ends_to_look_at(self._root, task, [one.instance for one in ids])
                found |= {one: ends[one.instance] for one in ids if one.instance in ends}
        with asked.refusing([*found]):
            self._seen.note(found)
        for one in asked.left():
            if one in found:
                asked.became(one)
            else:
                asked.refused(one, nothing_to_look_at(one.instance))


def _each_task(act: Callable[[AskedWorkers, TaskDir, list[WorkerId], Mapping[str, Any]], None]) -> _Act:
    """Return what acts on the workers of one task after those of the other."""

    def act_on_all(asked: AskedWorkers, values: Mapping[str, Any]) -> None:
        for task, ids in asked.tasks():
            with asked.refusing(ids):
                act(asked, task, ids, values)

    return act_on_all


def _cancel(asked: AskedWorkers, _values: Mapping[str, Any]) -> None:
    for task, ids in asked.tasks():
        with asked.refusing(ids):
            check_may_be_stopped(task)
    left = asked.left()
    if not left:
        return
    seen_from = asked.folder(left[0]).task
    with asked.refusing(left):
        ended = cancel_found([asked.folder(one) for one in left], seen_from=seen_from)
        for one, each in zip(left, ended, strict=False):
            asked.became(one, each.note, **_ended(each))
        asked.below = [
            _outcome(WorkerId(each.task_id or seen_from.id, each.agent_instance), each.note, **_ended(each))
            for each in ended[len(left) :]
        ]


def _ended(each: Cancelled) -> dict[str, Any]:
    return {"done": each.cancelled and not each.survivors, "status": each.status, "survivors": each.survivors}


def _turn(
    asked: AskedWorkers, task: TaskDir, ids: list[WorkerId], _values: Mapping[str, Any], *, paused: bool
) -> None:  # fmt: skip
    turned = turn_as_far_as_possible(task, [one.instance for one in ids], paused=paused)
    for row in turned.done:
        asked.became(WorkerId(task.id, row["agentInstance"]))
        for name in row["withIt"]:
            above, _, instance = name.rpartition("/")
            asked.below.append(_outcome(WorkerId(above or task.id, instance)))
    for instance, error in turned.left_out.items():
        asked.refused(WorkerId(task.id, instance), error)


def _retry(asked: AskedWorkers, task: TaskDir, ids: list[WorkerId], values: Mapping[str, Any]) -> None:
    done = retry_workers(
        task, [one.instance for one in ids], queue=True, as_far_as_possible=True, key=values.get("key"),
        among=asked.named_in(task),
    )  # fmt: skip
    tries = read_task(task)[0].tries
    made = {tries.work_of(one.agent_instance): one for one in done.spawned}
    for one in ids:
        work = tries.work_of(one.instance)
        if one.instance in done.left_out:
            asked.refused(one, done.left_out[one.instance])
        elif work in made:
            _started(asked, one, made[work])
        else:
            newest = tries.newest(work)
            why = f"{one.instance} is an earlier try: the newest one of {work} is {newest}"
            asked.refused(one, Refused(why, hint=Next("show", newest)))


def _started(asked: AskedWorkers, one: WorkerId, made: Spawned) -> None:
    asked.became(one, made.message, *made.warnings, status=made.status, startedAs=made.agent_instance)


def _send(asked: AskedWorkers, task: TaskDir, ids: list[WorkerId], values: Mapping[str, Any]) -> None:
    names, text = asked.named_in(task), values["text"]
    keys = each_keyed(task, values.get("key"), names, digests_of("send", {"worker": names, "text": text}))
    for one in ids:
        with asked.refusing([one]):
            among = names if len(names) > 1 else ()
            done = tell_worker(asked.folder(one), text, key=keys[one.instance], among=among)
            if isinstance(done, Spawned):
                _started(asked, one, done)
            else:
                asked.became(one)
