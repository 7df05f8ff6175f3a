"""Whether a task is this person's own: only then is anything started or written there, and are its files believed.

A repository that somebody else wrote may bring tasks, with everything that a task contains: orders, a queue, records of
worktrees, identities of processes, rules. Such a task can only be looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from agentctl.adapters import origin
from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.files import make_durable, read_known, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_of
from agentctl.domain.agent.permissions import is_allowing
from agentctl.domain.events import SUBTASK_CREATED
from agentctl.errors import Next, Refused
from agentctl.lean import Any
from agentctl.operations.where.calling import caller
from agentctl.supervision import failpoints
from agentctl.supervision.worker.environment import COOKIE, store_folder
from agentctl.supervision.worker.spec import order_of

Rules = Sequence[Mapping[str, str]]
Question = Mapping[str, Any]
_TASK, _RULES, _ANSWER = "task", "rules", "answer"
#: A forged chain of tasks is followed this far up; no honest tree is as deep.
_MOST_ABOVE = 128


# -- a task ------------------------------------------------------------------------------------------------------------


def mark_own(task: TaskDir) -> None:
    """Note that this person makes a task; the caller makes its `origin` durable, with everything else in the task.

    Raises:
        Refused: There is no place for the note.
    """
    nonce, folder = origin.new_nonce(), place_for_marks()
    origin.put_nonce(task, nonce, durable=False)
    origin.mark(folder, task, _TASK)
    origin.note_place(folder, task, nonce)


def make_own(task: TaskDir) -> None:
    """Note that a person makes a task their own, with the orders that were written for it.

    The task gets a new random text, since its maker knows the one that came with it. The text is noted first, and the
    mark comes last: if this is killed in between, the task is not their own yet, and the next call knows both texts.

    Raises:
        Refused: There is no place for the note.
    """
    known = {task.nonce(), *_noted(task)} - {""}
    nonce, folder = origin.new_nonce(), place_for_marks()
    origin.note_place(folder, task, nonce)
    written = [task.origin]
    for worker in map(task.worker, task.instances()):
        spec = read_known(worker.spec)
        if spec.get("origin") in known:
            write_whole(worker.spec, to_json({**spec, "origin": nonce}), durable=False)
            written.append(worker.spec)
            failpoints.reached("trust.after-order")
    origin.put_nonce(task, nonce, durable=False)
    make_durable(written, task.path)
    origin.mark(folder, task, _TASK)


def put_origin_back(task: TaskDir) -> bool:
    """Give a task that was made here its random text back; return whether the order of one of its workers proves it.

    Another task that is in its place now has no order with that text, which nobody else knows.
    """
    noted = _noted(task)
    orders = (read_known(task.worker(name).spec).get("origin") for name in task.instances())
    proven = next((order for order in orders if order in noted), None)
    if proven is not None:
        origin.put_nonce(task, str(proven))
    return proven is not None


def _noted(task: TaskDir) -> list[str]:
    return [nonce for folder in _folders() if (nonce := origin.noted_at(folder, task))]


def was_own_at(place: TaskDir, task: TaskDir) -> bool:
    """Return whether a task was this person's own in another place, before it was put away."""
    nonce = task.nonce()
    return bool(nonce) and any(origin.is_marked_as(folder, place, nonce, _TASK) for folder in _folders())


def note_own_again(task: TaskDir) -> None:
    """Note that the task at its path is this person's, if it is: another one may have been there meanwhile."""
    if _is_marked(task, _TASK):
        origin.note_place(place_for_marks(), task, task.nonce())


def disown_at(place: TaskDir, nonce: str, rules: Rules = ()) -> bool:
    """Forget that a task that is gone was this person's own; return whether it was noted.

    Args:
        place: Where it was; another task may be there by now, which stays theirs.
        nonce: What was in its `origin`.
    """
    found = False
    for folder in _folders() if nonce else ():
        if origin.noted_at(folder, place) == nonce:
            origin.forget_place(folder, place)
        found = origin.unmark_as(folder, place, nonce, _TASK) or found
        origin.unmark_as(folder, place, nonce, _RULES, _text_of(rules))
    return found


def has_own_tasks(root: Root) -> bool:
    """Return whether any task of a root is this person's own: only then those that are not there are surely gone.

    Otherwise another folder may lie in the place of theirs, or nothing is mounted there now.
    """
    return any(is_own(root.task(name)) for name in root.task_ids())


def forget_gone_tasks(root: Root, kept: Collection[str], *, fix: bool) -> int:
    """Return how many tasks of a root are noted as this person's that are gone; with `fix` they are forgotten.

    Args:
        kept: The random texts of tasks that are elsewhere, and may come back.
    """
    if not has_own_tasks(root):
        return 0
    count = 0
    for folder in _folders():
        for task_id, nonce in origin.places_below(folder, root.tasks).items():
            if nonce in kept or os.path.lexists(root.task(task_id).path):
                continue
            count += 1
            if fix:
                disown_at(root.task(task_id), nonce)
    return count


def disown(task: TaskDir) -> bool:
    """Forget that a task is this person's own; return whether it was noted."""
    for folder in _folders():
        origin.forget_place(folder, task)
    return _unmark(task, _TASK)


def is_own(task: TaskDir) -> bool:
    """Return whether this person made a task, in the place where it lies now."""
    return _is_known(task) or any(map(_is_known, _above(task)))


def _is_known(task: TaskDir) -> bool:
    """Return whether a task is noted as this person's, or belongs to the worker that calls."""
    if os.path.islink(task.path) or os.path.islink(task.path.parent):
        return False
    # The caller first: a sandbox may keep the person's own files closed to it.
    return _is_callers(task) or _is_marked(task, _TASK)


def check_own(task: TaskDir) -> None:
    """Raise `Refused` where a task's files may be somebody else's: nothing is started or written there."""
    if not is_own(task):
        raise Refused(
            f"{task.path} was not made here by you, or was moved: it can only be looked at (list, show, logs)",
            hint=(Next("own task"), taking_over(task.path)),
        )


def may_be_stopped(task: TaskDir) -> bool:
    """Return whether what runs in a task may be judged and ended: the task at its path is this person's own, or was.

    A worker can change `origin`; that must not keep the person from stopping it.
    """
    return is_own(task) or (not os.path.islink(task.path) and bool(_noted(task)))


def check_may_be_stopped(task: TaskDir) -> None:
    """Raise `Refused` where a task's files may be somebody else's, and no task of this person was ever at its path."""
    if not may_be_stopped(task):
        check_own(task)


def _is_callers(task: TaskDir) -> bool:
    """Return whether the caller is a worker of the task; its HOME may be another one, without the marks.

    The worker has its cookie from its shim, and shims run only in a person's own tasks and their sub-tasks.
    """
    me, cookie = caller(), os.environ.get(COOKIE)
    if me is None or not cookie or task.path not in (me.task.path, tree_of(me.task).path):
        return False
    return read_known(me.worker.process).get("cookie") == cookie


def _above(task: TaskDir) -> Iterator[TaskDir]:
    """Yield the tasks above one, as long as each names the one below it, which a worker with another HOME may make.

    In a clone, two tasks may name each other.
    """
    seen = {task.path}
    while len(seen) <= _MOST_ABOVE and (config := cached(task)) is not None and config.parent_task_id is not None:
        above = task.sibling(config.parent_task_id)
        if above.path in seen or not _names(above, task):
            return
        seen.add(above.path)
        yield above
        task = above


def _names(above: TaskDir, task: TaskDir) -> bool:
    payloads = (event["payload"] for event in LogReader(above.events).events() if event["type"] == SUBTASK_CREATED)
    return any(one.get("taskId") == task.id and one.get("origin") == task.nonce() for one in payloads)


# -- rules that allow --------------------------------------------------------------------------------------------------


def allowing(rules: Rules) -> list[Mapping[str, str]]:
    """Return the rules by which something is allowed without asking."""
    return [rule for rule in rules if is_allowing(rule)]


def vouch_for_rules(task: TaskDir, rules: Rules) -> None:
    """Note that this person vouches for the rules in a task's task.yaml."""
    if allowing(rules):
        origin.mark(place_for_marks(), task, _RULES, _text_of(rules))


def are_vouched_for(task: TaskDir, rules: Rules) -> bool:
    """Return whether a task's rules allow nothing, or this person has vouched for them as they are."""
    return not allowing(rules) or _is_marked(task, _RULES, _text_of(rules))


def doubt_rules(task: TaskDir, rules: Rules) -> bool:
    """Stop vouching for rules; return whether this person had vouched for them."""
    return _unmark(task, _RULES, _text_of(rules))


def check_rules(task: TaskDir, rules: Rules) -> None:
    """Raise `Refused` where a task's rules allow something that this person has not vouched for."""
    if not are_vouched_for(task, rules):
        first = allowing(rules)[0]
        raise Refused(
            f"{task.task_file} allows agents something that you have not vouched for:"
            f" {first.get('tool')} {first.get('pattern')}",
            hint=("take it out of `permissions` there", Next("vouch", _quoted(task.task_file))),
        )


def _text_of(rules: Rules) -> str:
    return stable_text([dict(rule) for rule in rules])


# -- answers to requests for permission --------------------------------------------------------------------------------


def vouch_for_answer(worker: WorkerDir, question: Question, answer: Mapping[str, Any]) -> None:
    """Note, where the worker's driver looks for it, that an answer to a request for permission came through agentctl.

    Args:
        question: The whole question that was answered: for a differently worded request it is not an answer.
    """
    origin.mark(_marks_in(order_of(worker).get("marks")), worker.task, _ANSWER, *_details_of(worker, question, answer))


def take_answer(marks: str, worker: WorkerDir, question: Question, answer: Mapping[str, Any]) -> bool:
    """Return whether an answer to this very question came through agentctl, and remove the note of that.

    Args:
        marks: Where it is noted, as the driver knows it: the worker may have changed the files in its own folder.
    """
    return origin.unmark(_marks_in(marks), worker.task, _ANSWER, *_details_of(worker, question, answer))


def _marks_in(folder: object) -> FilePath:
    return FilePath(folder) if isinstance(folder, str) and os.path.isabs(folder) else place_for_marks()


def _details_of(worker: WorkerDir, question: Question, answer: Mapping[str, Any]) -> list[str]:
    fields = (str(answer.get(key)) for key in ("id", "answer", "by", "at", "reason"))
    return [worker.instance, *fields, stable_text(question)]


def stable_text(value: object) -> str:
    """Return a text that is the same for equal values, as two JSON files may have them."""
    return json.dumps(value, sort_keys=True)


# -- where marks are ---------------------------------------------------------------------------------------------------


def taking_over(path: str) -> Next:
    """Return the next step by which a person takes a task over."""
    return Next("take over", _quoted(path))


def _quoted(path: str) -> str:
    import shlex  # Only for a refusal.

    return shlex.quote(path)


def _is_marked(task: TaskDir, what: str, *details: str) -> bool:
    return any(origin.is_marked(folder, task, what, *details) for folder in _folders())


def _unmark(task: TaskDir, what: str, *details: str) -> bool:
    """Take a mark back wherever it is; return whether there was one."""
    return bool(sum(origin.unmark(folder, task, what, *details) for folder in _folders()))


def _folders() -> Iterator[FilePath]:
    """Yield where marks may be: among a person's own files, and in memory, for processes without a home folder."""
    yield origin.marks_folder(os.environ)
    try:
        in_memory = store_folder() / "own"
    except Refused:
        return
    yield in_memory


def place_for_marks() -> FilePath:
    """Return where this person's marks go.

    Raises:
        Refused: There is no place for them.
    """
    for folder in _folders():
        if origin.can_be_marked(folder):
            return folder
    raise Refused(
        f"there is no place to note what is yours: {origin.marks_folder(os.environ)} cannot be written",
        hint="make your home folder writable, or set XDG_CONFIG_HOME",
    )
