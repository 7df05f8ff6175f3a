"""A task for Python programs: each method does what the command of the same name does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.tree.limits import KEYS, RESULT_BYTES
from agentctl.errors import UsageError
from agentctl.interfaces.python.questions import Question, question_from
from agentctl.interfaces.python.spawn_options import SpawnOptions, plain_options
from agentctl.interfaces.python.wording import for_python
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.delegate.subtasks import SubtaskRequest, run_subtask
from agentctl.operations.show.listing import list_workers
from agentctl.operations.show.one_worker import show_worker
from agentctl.operations.show.results import read_result
from agentctl.operations.show.subtask_answer import SubtaskEnd
from agentctl.operations.start.batch import batch_waits, request_from
from agentctl.operations.start.new_task import create_task, find_or_create_task
from agentctl.operations.start.requests import Spawned
from agentctl.operations.start.spawning import spawn_workers, task_for_spawn
from agentctl.operations.stop.cancelling import Cancelled, cancel_workers
from agentctl.operations.stop.holding import hold_task, let_task_go
from agentctl.operations.stop.pausing import pause_worker, unpause_worker
from agentctl.operations.talk.interacting import answer_open_question, list_questions
from agentctl.operations.wait.waiting import WaitedEnd, next_end, wait_all
from agentctl.operations.where.locating import find_root, find_task

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import ShownWorker, WorkerResult, WorkerRow


class Task:
    """A task, and the operations on it; `Task.create` makes one, `Task.find` finds one.

    Every method returns once its effect is on disk. Errors are `agentctl.AgentctlError`s, which say what to do next.
    The methods block: in a coroutine use a `TaskExecutor`, or `asyncio.to_thread`.
    """

    def __init__(self, folder: TaskDir) -> None:
        self.folder = folder

    @classmethod
    @for_python()
    def create(cls, title: str, *, task_id: str | None = None, root: str | None = None, **limits: float) -> Task:
        """Make a task, and choose it as the root's current one.

        Args:
            root: The folder that holds the tasks; by default AGENTCTL_ROOT, else the nearest `.agentctl` above, up to
                the top of the git repository.
            limits: Those of task.yaml, in snake case: `max_concurrent_agents`, `timeout_seconds`, `max_depth`, ...
        """
        unknown = sorted(set(limits) - set(KEYS))
        if unknown:
            raise UsageError(f"{unknown[0]} is not a limit of a task", hint=f"known: {', '.join(KEYS)}")
        config = {KEYS[name]: value for name, value in limits.items()}
        return cls(create_task(find_root(root, create=True, apart=True), title, task_id=task_id, config=config))

    @classmethod
    @for_python()
    def find(cls, task_id: str | None = None, *, root: str | None = None) -> Task:
        """Return the named task, else the one in which this program works, else the root's current one."""
        return cls(find_task(task_id, root=root))

    @classmethod
    @for_python()
    def find_or_create(cls, task_id: str | None = None, *, root: str | None = None) -> Task:
        """Return the named task, else the one that `find` returns; if it is not there, make it, and its root too."""
        if task_id is None:
            return cls(task_for_spawn(None, root=root, force=False))
        return cls(find_or_create_task(find_root(root, create=True), task_id))

    @property
    def id(self) -> str:
        """Its id."""
        return self.folder.id

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder.path)

    def __repr__(self) -> str:
        return f"<Task {self.id} in {self.folder.root.path}>"

    # -- starting ----------------------------------------------------------------------------------------------

    @for_python()
    def spawn(
        self,
        prompt: str | None = None,
        *,
        agent: str | None = None,
        argv: Sequence[str] | None = None,
        queue: bool | None = None,
        timeout_seconds: float | None = None,
        **options: Unpack[SpawnOptions],
    ) -> Spawned:
        """Start an agent with a prompt, or a command; returns once it runs, or is in the queue.

        Args:
            agent: Which agent; by default `general`.
            argv: A command, instead of a prompt.
            queue: Wait for a slot instead of being refused; by default as the task says.
        """
        line = {"prompt": prompt, "agent": agent, "argv": argv and list(argv), "timeout_seconds": timeout_seconds}
        request = request_from(plain_options({**line, **options}), "")
        return spawn_workers(self.folder, [request], queue=queue)[0]

    @for_python()
    def spawn_many(self, items: Iterable[Mapping[str, Any]], *, queue: bool | None = None) -> list[Spawned]:
        """Start all workers or none; each item has the keys of a line of `spawn --batch`.

        Args:
            queue: Wait for slots instead of being refused; by default as the items say, and else they wait.
        """
        lines = [plain_options(item) for item in items]
        where = "items[{}]" if len(lines) > 1 else ""
        requests = [request_from(line, where.format(index)) for index, line in enumerate(lines)]
        if not requests:
            return []
        return spawn_workers(self.folder, requests, queue=batch_waits(requests) if queue is None else queue)

    @for_python()
    def subtask(
        self,
        agent: str,
        title: str,
        *,
        intent: str | None = None,
        artifacts: Sequence[str] = (),
        priority: int = 0,
        timeout_seconds: float | None = None,
        key: str | None = None,
    ) -> SubtaskEnd:
        """Give an agent a sub-task, and wait, through its questions, until it has ended.

        Args:
            artifacts: Files to work with: paths, or `task/instance/file`.
            key: The same key twice makes one sub-task.
        """
        request = SubtaskRequest(
            agent=agent, title=title, intent=intent, artifacts=artifacts, priority=priority,
            timeout_seconds=timeout_seconds, key=key,
        )  # fmt: skip
        return run_subtask(self.folder, request)

    # -- looking -----------------------------------------------------------------------------------------------

    @for_python()
    def workers(self) -> list[WorkerRow]:
        """Return a row for each worker, as `list --json` has it."""
        return list_workers(self.folder)[0]

    @for_python()
    def show(self, instance: str) -> ShownWorker:
        """Return everything that is known about a worker."""
        return show_worker(self.folder, instance)

    @for_python()
    def result(self, instance: str, *, max_bytes: int = RESULT_BYTES) -> WorkerResult:
        """Return a worker's result, cut to a maximum size, with the size, hash and path of the full text."""
        return read_result(self.folder, instance, max_bytes=max_bytes)

    # -- waiting -----------------------------------------------------------------------------------------------

    @for_python()
    def wait_any(
        self,
        *instances: str,
        timeout_seconds: float | None = None,
        consumer: str | None = None,
        kinds: Iterable[str] | None = None,
    ) -> WaitedEnd:
        """Return the earliest end or block that this consumer has not been given; each is given once.

        Args:
            timeout_seconds: The limit of this wait; by default the task's. It stops no worker.
            kinds: Only these: `completed failed cancelled blocked stalled parked`.

        Raises:
            WaitTimedOut: Nothing ended in time.
            NothingLeft: Everything was given out, and no worker is left that could still end.
        """
        wanted = None if kinds is None else frozenset(kinds)
        with next_end(self.folder, instances, timeout_s=timeout_seconds, consumer=consumer, kinds=wanted) as end:
            return end

    @for_python()
    def wait(self, *instances: str, timeout_seconds: float | None = None) -> list[WaitedEnd]:
        """Wait, through questions, until the named workers (by default all) have ended.

        Raises:
            WaitTimedOut: Not all ended in time; no worker was stopped.
        """
        ends = {end.agent_instance: end for end in wait_all(self.folder, instances, timeout_s=timeout_seconds)}
        return [ends[name] for name in dict.fromkeys(instances)] if instances else [*ends.values()]

    # -- stopping and answering --------------------------------------------------------------------------------

    @for_python()
    def cancel(self, *instances: str, grace_seconds: float | None = None, wait: bool = True) -> list[Cancelled]:
        """Cancel the named workers (by default all) and all that they started; returns once each has ended.

        Args:
            wait: If False, return once the requests are on disk.
        """
        return cancel_workers(self.folder, instances, all_=not instances, grace_s=grace_seconds, wait=wait)

    @for_python()
    def pause(self, instance: str | None = None) -> None:
        """Stop a worker's processes and its clock; without an instance, hold the queue: nothing is started any more."""
        if instance is None:
            hold_task(self.folder)
        else:
            pause_worker(self.folder, instance)

    @for_python()
    def unpause(self, instance: str | None = None) -> None:
        """Let a paused worker continue; without an instance, let the queue go."""
        if instance is None:
            let_task_go(self.folder)
        else:
            unpause_worker(self.folder, instance)

    @for_python()
    def questions(self) -> list[Question]:
        """Return the open questions, oldest first."""
        return [question_from(one) for one in list_questions(self.folder.root, self.folder)]

    @for_python()
    def respond(
        self,
        answer: str,
        *,
        question: Question | None = None,
        instance: str | None = None,
        question_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Answer a question. The first valid answer wins.

        Args:
            question: One of `questions`: if it is a different one by now, it is not answered.
            instance: Instead: the worker that asks, with
            question_id: the id of its question.
            reason: Why a permission is denied; the agent reads it.

        Raises:
            UsageError: It is not said which question is meant, or the answer is not one of its options.
            Refused: It was answered before, it is a different one by now, or its worker has ended.
        """
        if question is not None:
            instance, question_id = question.agent_instance, question.id
        if instance is None or question_id is None:
            raise UsageError(
                "it is not clear which question to answer",
                hint="respond(answer, question=...) with one of questions(), or instance= and question_id=",
            )
        task = self.folder if question is None else self.folder.sibling(question.task_id)
        answer_open_question(
            self.folder.root, task=task, instance=instance, question_id=question_id, answer=answer, reason=reason,
            shown=question.shown if question is not None else None,
        )  # fmt: skip
