"""Gives a prompt to the agent of a session: starts it, sends it a message, or continues it once it has ended."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.names import is_name
from agentctl.drivers.order import order_from
from agentctl.drivers.registry import choose, driver_for
from agentctl.errors import AgentctlError, NotFound, Refused
from agentctl.interfaces.editor.session.client_servers import ClientServers, passed_on
from agentctl.interfaces.editor.session.prompt_keys import PromptKey
from agentctl.interfaces.editor.session.session_options import Choices
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.resuming import chains_of, newest_run, resume_worker, said_of_resume
from agentctl.operations.start.again import start_anew
from agentctl.operations.start.request_keys import START, done_by_key, started_by_key
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers, task_for_spawn
from agentctl.operations.stop.cancelling import cancel_workers
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.talk.interacting import answer_open_question, question_of_key
from agentctl.operations.talk.messaging import deliver_message, unread
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.lineage import true_caller
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.personal_config import DRIVER_ORDER, section
from agentctl.supervision.worker import questions
from agentctl.supervision.worker.inboxes import is_idle
from agentctl.supervision.worker.kinship import descendants
from agentctl.supervision.worker.questions import read_question
from agentctl.supervision.worker.spec import order_of

#: The names of workers that an editor has had started begin so.
SESSION_PREFIX = "acp-"
_TITLE = "Editor sessions"
#: How often a prompt is given again to an agent that ends, or is continued elsewhere, at that very moment.
_TRIES = 3
_GIVEN_BEFORE = "This prompt was given before, and is not given once more."


class GivenPrompt(NamedTuple):
    """The run that has a prompt now, and what the user should know about it."""

    worker: WorkerDir
    notes: tuple[str, ...] = ()
    #: No message of it comes to the agent now: it was given before, or has answered a question.
    is_known: bool = False


def new_name(root: Root | None) -> str:
    """Return the name of a session that nobody has yet: its worker will have it."""
    while True:
        name = f"{SESSION_PREFIX}{secrets.token_hex(4)}"
        if root is None or not any(root.task(task_id).worker(name).path.exists() for task_id in root.task_ids()):
            return name


def find_session(root: Root, session_id: str) -> WorkerDir:
    """Return the newest run of the agent that a session is: `INSTANCE`, or `TASK/INSTANCE`.

    Raises:
        NotFound: There is none in a task of this person's.
    """
    task_id, _, instance = session_id.rpartition("/")
    if is_name(instance) and (not task_id or is_name(task_id)):
        for name in [task_id] if task_id else root.task_ids():
            task = root.task(name)
            if task.worker(instance).spec.exists() and task.exists and is_own(task) and order_of(task.worker(instance)):
                return newest_run(task, instance)
    raise NotFound(
        f"there is no session {session_id[:100]!r} in {root.path}", hint="session/list names those there are"
    )


def agent_of(worker: WorkerDir) -> str:
    """Return the name of the agent that a run is of."""
    return str(read_known(worker.spec).get("agent") or "general")


class Beginning(NamedTuple):
    """How the agent of a session is started."""

    name: str
    cwd: str
    choices: Choices
    servers: ClientServers
    #: The options --task, --root and --keep.
    task: str | None = None
    root: str | None = None
    is_kept: bool = True


def start_session(begin: Beginning, text: str, key: PromptKey) -> GivenPrompt:
    """Start the agent of a session with its first prompt."""
    choices = begin.choices
    task = _task(begin.task, begin.root)
    spec = find_agent_spec(task.root, choices.agent)
    driver = choose(choices.driver or spec.driver, section(DRIVER_ORDER), os.environ.get("PATH", os.defpath))
    servers, notes = passed_on(begin.servers, spec, driver)
    work = AgentWork(
        prompt=text, agent=spec.name, driver=choices.driver, model=choices.model, permissions=choices.permissions,
        keep=begin.is_kept and "keep" in driver.honours, mcp_servers=servers,
    )  # fmt: skip
    said = said_of_resume([begin.name], text)
    request = SpawnRequest(work=work, name=begin.name, cwd=begin.cwd, key=key.key, said=said)
    given = _given(task, spawn_workers(task, [request], queue=True)[0])
    return given._replace(notes=(*notes, *given.notes))


def _task(named: str | None, root: str | None) -> TaskDir:
    """Return the named task, else that of the worker in which this runs, else the one in which `spawn` would work."""
    me = true_caller()
    if me is not None and named is None:
        return me.task
    return task_for_spawn(named, root=root, force=False, title=_TITLE)


def _given(task: TaskDir, spawned: Spawned) -> GivenPrompt:
    said = (spawned.message,) if spawned.message and spawned.status == "failed" else ()
    known = (_GIVEN_BEFORE,) if spawned.reused else ()
    return GivenPrompt(task.worker(spawned.agent_instance), (*spawned.warnings, *said, *known), spawned.reused)


def prompt_again(worker: WorkerDir, session_id: str, text: str, key: PromptKey) -> GivenPrompt:
    """Give the agent of a session its next prompt, which was not given before.

    Args:
        session_id: By it the client names the session, whichever run of its agent is the newest.

    Raises:
        Refused: The agent cannot be continued.
    """
    task, among = worker.task, [session_id]
    for tries_left in reversed(range(_TRIES)):
        worker = newest_run(task, worker.instance)
        try:
            if worker.has_ended:
                return _continued(worker, text, key.key, among)
            deliver_message(task, worker.instance, text, key=key.key, among=among)
            return GivenPrompt(worker)
        except Refused:
            is_still_newest = newest_run(task, worker.instance).path == worker.path
            if not tries_left or (is_still_newest and not _may_try_again(worker)):
                raise
    raise AssertionError("the last try returns or raises")


def given_before(worker: WorkerDir, session_id: str, text: str, key: PromptKey) -> GivenPrompt | None:
    """Return the newest run of the agent if the prompt was given before: as a start, a message or an answer.

    Raises:
        Conflict: The key has given another prompt.
        Refused: It has given another answer.
    """
    if key.is_new:
        return None
    task, among = worker.task, [session_id]
    done = done_by_key(task, key.key)
    if done == START:
        started_by_key(task, key.key, said_of_resume(among, text))
    elif done is not None:
        deliver_message(task, worker.instance, text, key=key.key, among=among)
    elif not _answered_before(worker, text, key.key):
        return None
    return GivenPrompt(newest_run(task, worker.instance), (_GIVEN_BEFORE,), is_known=True)


def _answered_before(worker: WorkerDir, text: str, key: str) -> bool:
    """Return whether a prompt has answered a question of the session; another answer is refused then."""
    task, agent_id = worker.task, str(read_known(worker.spec).get("agentId"))
    runs = map(task.worker, chains_of(task).get(agent_id, [worker.instance]))
    for one in (asker for run in runs for asker in (run, *descendants(run))):
        name = question_of_key(one, key)
        if name is None:
            continue
        asked = read_question(one, name)
        if asked is not None:
            said = text.strip() if asked.choices else text
            answer_question(EditorQuestion(one, asked, is_own=False), said, PromptKey(key))
        return True
    return False


def _may_try_again(worker: WorkerDir) -> bool:
    """Return whether the worker has ended since it was refused a message."""
    return worker.has_ended and not read_known(worker.session)


def _continued(worker: WorkerDir, text: str | None, key: str | None = None, among: Sequence[str] = ()) -> GivenPrompt:
    """Continue an agent with what it has not read and another text; without a session, by a start anew with these."""
    task, order = worker.task, order_from(order_of(worker))
    if "resume" in driver_for(order).honours:
        try:
            return _given(task, resume_worker(task, worker.instance, text, queue=True, key=key, among=among))
        except NotFound as error:
            why = error.message
    else:
        why = f"{order.driver} cannot continue a session"
    prompt = "\n\n".join([*unread(worker), *([text] if text else [])])
    said = said_of_resume(among, text) if key else None
    given = _given(task, start_anew(task, worker.instance, prompt, queue=True, key=key, said=said))
    note = f"{why}: the agent begins anew, and knows nothing of what was said before"
    return given._replace(notes=(note, *given.notes))


def take_up_messages(worker: WorkerDir) -> GivenPrompt:
    """Continue an agent that has ended before it read its last message: the next run reads it."""
    return _continued(worker, None)


def answer_question(question: EditorQuestion, said: str, key: PromptKey | None = None) -> None:
    """Answer a question as whoever this process works for: a person, unless an agent has started it.

    Raises:
        Refused: Somebody else has answered it, it is no longer open, or the answer is not this caller's to give.
        UsageError: The answer is not one of its options.
    """
    worker = question.worker
    answer_open_question(
        worker.task.root, task=worker.task, instance=worker.instance, question_id=question.asked.id, answer=said,
        answerer=who_answers(), shown=question.asked, key=key and key.key,
    )  # fmt: skip


def waits_for_answer(question: EditorQuestion) -> bool:
    """Return whether a question still waits for an answer."""
    return questions.is_open(question.worker, question.asked.id)


def is_answered(question: EditorQuestion) -> bool:
    """Return whether somebody has answered a question, here or elsewhere."""
    given = read_known(question.worker.answer(question.asked.id))
    return "answer" in given and not given.get("expired")


def cancel_run(worker: WorkerDir) -> None:
    """Request the end of a run and of all workers below it; whoever follows it sees the end."""
    cancel_workers(worker.task, [worker.instance], wait=False)


def stop(worker: WorkerDir) -> None:
    """Cancel a run and all workers below it, and wait until each has ended."""
    cancel_workers(worker.task, [worker.instance])


def let_end(worker: WorkerDir) -> None:
    """Let a run end by itself: now if it is idle, else with its answer."""
    if not worker.has_ended and order_of(worker).get("keep"):
        deliver_message(worker.task, worker.instance, "", close=True)


def leave_alone(workers: Iterator[WorkerDir]) -> None:
    """Let runs end by themselves; what cannot be told so is left as it is."""
    for worker in workers:
        try:
            let_end(worker)
        except (AgentctlError, OSError):
            continue  # It has ended meanwhile, or its disk is full: `agentctl send --close` can still be sent.


def is_at_rest(worker: WorkerDir) -> bool:
    """Return whether a run has read all that was sent to it, and waits for more.

    In this order: a message counts as read once the agent is no longer idle.
    """
    return not unread(worker) and is_idle(worker)
