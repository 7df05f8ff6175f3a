"""Delegates tasks to sub-agents with asyncio: one thread and one watch serve all of an executor's workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeAlias, TypeVar, Unpack

from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import Refused, WaitStopped, WaitTimedOut
from agentctl.interfaces.python.answering import Answering, OnQuestion
from agentctl.interfaces.python.ends_watch import Watcher
from agentctl.interfaces.python.spawn_options import SpawnOptions, plain_options
from agentctl.interfaces.python.task import Task
from agentctl.interfaces.python.wording import for_python, worded
from agentctl.operations.delegate.delegating import (
    DEFAULT_AGENT,
    DEFAULT_SESSION,
    DEFAULT_TIMEOUT_S,
    Delegated,
    TaskResult,
    Terms,
    delegate,
    delegated_result,
    session_results,
)
from agentctl.operations.start.spare_shims import keep_shims_ready
from agentctl.operations.stop.cancelling import Cancelled, cancel_workers
from agentctl.operations.where.locating import find_worker

#: What happens to the workers of a coroutine that is cancelled.
OnCancel: TypeAlias = Literal["cancel", "leave"]

P = ParamSpec("P")
T = TypeVar("T")


class TaskExecutor:
    """Delegates tasks to sub-agents, each a worker of a task directory, and returns their results.

        async with TaskExecutor() as executor:  # or TaskExecutor(MODEL, FOLDER), TaskExecutor(TASK)
            results = await executor.execute_parallel([
                {"objective": "Where is the configuration read?", "subagent_type": "explore"},
                {"objective": "What do the tests not cover?", "subagent_type": "plan"},
            ])

    If something is wrong with a task, its result says so; nothing is raised. A task without a free slot waits in the
    queue. Within a worker, that worker's own slot is lent to its descendants as long as a result is outstanding.

    Args:
        model: For all tasks that do not name one; `model_id` means the same. A `Task` in its place is taken as `task`.
        working_dir: Where the workers run; by default the working folder.
        task: The task directory, or its id; by default the chosen one. One that is not there is made.
        root: Where the tasks are, as `--root`.
        session_id: Groups the delegated tasks (`get_session_tasks`).
        on_cancel: Whether a cancelled coroutine cancels its workers, or leaves them at work.
        on_question: Called with each question of a worker. Without it, questions wait for an answer from elsewhere; so
            does a request for permission that this program, as a worker itself, may not allow.
    """

    #: How much of an answer a result holds; the full text is in the worker's folder.
    max_result_bytes = 64 * 1024

    def __init__(  # noqa: PLR0913 - all but the first two by keyword only
        self,
        model: str | Task | None = None,
        working_dir: str | None = None,
        *,
        task: Task | str | None = None,
        root: str | None = None,
        model_id: str | None = None,
        session_id: str = DEFAULT_SESSION,
        on_cancel: OnCancel = "cancel",
        on_question: OnQuestion | None = None,
    ) -> None:
        if isinstance(model, Task):
            model, task = None, model if task is None else task
        self.task = task if isinstance(task, Task) else Task.find_or_create(task, root=root)
        self._terms = Terms(session_id=session_id, model=model or model_id, cwd=working_dir)
        self._on_cancel: OnCancel = on_cancel
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentctl")
        self._watcher = Watcher(self._folder, self._thread, self._read)
        self._answering: Answering | None = None
        if on_question is not None:
            self._answering = Answering(self.task, on_question, self._do, self._watcher.fail)
            self._watcher.on_blocked = self._answering.begin
        #: The workers that were started here and whose results are outstanding, and how many are being started.
        self._active: set[str] = set()
        self._starting = 0
        self._is_closed = False

    @property
    def _folder(self) -> TaskDir:
        return self.task.folder

    # -- delegating --------------------------------------------------------------------------------------------

    async def execute_task(
        self,
        objective: str | None = None,
        subagent_type: str = DEFAULT_AGENT,
        context: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = DEFAULT_TIMEOUT_S,
        *,
        argv: Sequence[str] | None = None,
        session_id: str | None = None,
        **options: Unpack[SpawnOptions],
    ) -> TaskResult:
        """Give one task to a sub-agent, and return its result.

        Args:
            objective: What it should do; with `argv` by default the command.
            subagent_type: `explore`, `plan`, `general`, or an agent of your own.
            context: Added below the objective, as JSON.
            timeout_seconds: How long it may work; its time in the queue and open questions do not count.
            argv: A command to run instead of an agent.
            session_id: A session other than the executor's.
            options: More options of the worker, as `agentctl spawn` takes them.
        """
        item: dict[str, Any] = {**options, "objective": objective, "context": context, "argv": argv}
        if argv is None:
            item["subagent_type"] = subagent_type
        return (await self.execute_parallel([item], timeout_seconds, session_id=session_id))[0]

    async def execute_parallel(
        self,
        tasks: Sequence[Mapping[str, Any]],
        timeout_seconds: float | None = DEFAULT_TIMEOUT_S,
        *,
        session_id: str | None = None,
    ) -> list[TaskResult]:
        """Give all tasks to sub-agents at once, and return their results in the same order.

        Args:
            tasks: {objective, subagent_type?, context?, label?}, and any key of a line of `spawn --batch` but `keep`.
        """
        async with self._begun(tasks, timeout_seconds, session_id) as ends:
            return list(await asyncio.gather(*ends))

    async def stream(
        self,
        tasks: Sequence[Mapping[str, Any]],
        timeout_seconds: float | None = DEFAULT_TIMEOUT_S,
        *,
        session_id: str | None = None,
    ) -> AsyncGenerator[TaskResult, None]:
        """Give all tasks to sub-agents at once, and yield each result as its worker ends.

        If you leave the loop early, the others are cancelled or left at work, as `on_cancel` says, once the generator
        is closed (`contextlib.aclosing` closes it at once).
        """
        async with self._begun(tasks, timeout_seconds, session_id) as ends:
            for end in asyncio.as_completed(ends):
                yield await end

    async def wait_task(self, task_id: str, timeout_seconds: float | None = None) -> TaskResult:
        """Wait for a task that was started before, here or anywhere, and return its result.

        Raises:
            NotFound: There is no such worker.
            WaitTimedOut: It has not ended in time. This stops no worker; nor does cancelling this coroutine.
        """
        self._refuse_if_closed()
        await self._do(find_worker, self._folder, task_id)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._watcher.end_of(task_id)
        except TimeoutError as error:
            raise WaitTimedOut(
                f"{task_id} is still at work after {timeout_seconds or 0:g} s", hint="no worker was stopped; wait again"
            ) from error

    @contextlib.asynccontextmanager
    async def _begun(
        self, tasks: Sequence[Mapping[str, Any]], timeout_seconds: float | None, session_id: str | None
    ) -> AsyncIterator[list[asyncio.Future[TaskResult]]]:
        """Start tasks and yield the futures of their results; those without a result at the end are given up."""
        self._refuse_if_closed()
        terms = self._terms.renewed(session_id or self._terms.session_id, timeout_seconds)
        job = self._thread.submit(delegate, self._folder, [plain_options(task) for task in tasks], terms, worded=worded)
        ends: list[asyncio.Future[TaskResult]] | None = None
        is_left = self._on_cancel == "leave"
        try:
            ends = [self._end_of(one) for one in await self._started(job, len(tasks))]
            yield ends
        except WaitStopped:
            is_left = True  # A cancel of this worker reaches those below it without us; after a pause they go on.
            raise
        finally:
            job.cancel()  # A call that is aborted before it starts creates no worker.
            if (ends is None or _give_up(ends)) and not is_left and not self._is_closed:
                await self._do(_withdraw, self._folder, job)

    async def _started(self, job: Future[list[Delegated]], count: int) -> list[Delegated]:
        self._starting += count
        try:
            with for_python():
                return await asyncio.wrap_future(job)
        finally:
            self._starting -= count

    def _end_of(self, one: Delegated) -> asyncio.Future[TaskResult]:
        if one.instance is None:
            refused: asyncio.Future[TaskResult] = asyncio.get_running_loop().create_future()
            refused.set_result(one.refusal())
            return refused
        instance = one.instance
        # The objective of a reused worker may have had other words.
        end = self._watcher.end_of(instance, lambda result: replace(result, objective=one.objective))
        self._active.add(instance)
        end.add_done_callback(lambda _: self._active.discard(instance))
        return end

    def _read(self, instance: str) -> TaskResult:
        return delegated_result(self._folder.worker(instance), max_bytes=self.max_result_bytes)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Refused(
                "this executor is closed",
                hint="make another TaskExecutor; get_session_tasks reads what this one delegated",
            )

    async def _do(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the thread; once begun it is completed, even if this coroutine is cancelled."""
        job = self._thread.submit(partial(function, *args, **kwargs))
        with for_python():
            return await asyncio.shield(asyncio.wrap_future(job))

    # -- tasks under way ---------------------------------------------------------------------------------------

    def get_active_task_count(self) -> int:
        """Return how many of the tasks that were delegated here have not ended."""
        return self._starting + len(self._active)

    async def get_session_tasks(self, session_id: str | None = None) -> list[TaskResult]:
        """Return every task of a session, ended or not, in the order of their starts; read from the files.

        A closed executor can still do this.
        """
        session = session_id or self._terms.session_id
        do = asyncio.to_thread if self._is_closed else self._do
        with for_python():
            return await do(session_results, self._folder, session, max_bytes=self.max_result_bytes)

    async def cancel_all_tasks(self, grace_seconds: float | None = None) -> list[Cancelled]:
        """Cancel the tasks under way; returns once nothing of them is alive, or the survivors are known.

        A coroutine that waits for one of these tasks gets a result with the status `cancelled`.
        """
        self._refuse_if_closed()
        await self._do(lambda: None)  # Waits until starts under way are done.
        names = sorted(self._active)
        ends = [self._watcher.end_of(name) for name in names]
        with for_python():
            done = await asyncio.to_thread(cancel_workers, self._folder, names, grace_s=grace_seconds)
        ended = {one.agent_instance for one in done if one.cancelled}
        await asyncio.gather(*[end for name, end in zip(names, ends, strict=True) if name in ended])
        return done

    async def __aenter__(self) -> Self:
        self._refuse_if_closed()
        await self._do(keep_shims_ready, self._folder, 1)  # The first of its tasks starts at once.
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop watching; tasks under way are cancelled or left at work, as `on_cancel` says."""
        if self._is_closed:
            return
        await self._do(lambda: None)  # Waits until starts under way are done.
        self._is_closed = True
        active = sorted(self._active)
        await self._watcher.close()  # Before any of them can end, so that a waiting call is always cancelled.
        if active and self._on_cancel == "cancel":
            await self._do(cancel_workers, self._folder, active, wait=False)
        if self._answering is not None:
            self._answering.close()
        await self._do(keep_shims_ready, self._folder, 0)
        self._thread.shutdown(wait=False)


def _give_up(ends: Sequence[asyncio.Future[TaskResult]]) -> bool:
    """Cancel the futures that have no result; return whether there were any."""
    left = [end for end in ends if not end.done() or end.cancelled() or end.exception() is not None]
    for end in left:
        end.cancel()
    return bool(left)


def _withdraw(folder: TaskDir, job: Future[list[Delegated]]) -> None:
    """Cancel the workers that a job has started. It runs in the same thread, so after the job; the shims escalate."""
    if not job.cancelled() and job.exception() is None:
        names = [one.instance for one in job.result() if one.instance is not None]
        cancel_workers(folder, names, wait=False)
