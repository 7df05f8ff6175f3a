"""Passes workers' questions to the program that delegated to them, and its answers back."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from agentctl.errors import NotFound, Refused
from agentctl.interfaces.python.questions import Question
from agentctl.interfaces.python.task import Task

#: Takes a question; returns the answer, or None to leave it to somebody else.
OnQuestion: TypeAlias = Callable[[Question], Awaitable[str | None] | str | None]


class Answering:
    """Passes each open question of a blocked worker to `on_question`.

    Args:
        do: Calls a function in the executor's thread.
        fail: Ends the wait for a worker with an error: whoever waits for its result gets an error of `on_question`.
    """

    def __init__(
        self,
        task: Task,
        on_question: OnQuestion,
        do: Callable[..., Awaitable[Any]],
        fail: Callable[[str, BaseException], None],
    ) -> None:
        self._task = task
        self._on_question = on_question
        self._do = do
        self._fail = fail
        #: Kept here because the loop itself holds its tasks only weakly.
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, instance: str) -> None:
        """Begin to pass on the questions of a worker that has just blocked."""
        task = asyncio.get_running_loop().create_task(self._answer(instance))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def close(self) -> None:
        """Pass on no more questions."""
        for task in self._under_way:
            task.cancel()

    async def _answer(self, instance: str) -> None:
        try:
            for question in await self._do(self._task.questions):
                if question.agent_instance == instance:
                    await self._put(question)
        except Exception as error:  # noqa: BLE001
            self._fail(instance, error)

    async def _put(self, question: Question) -> None:
        returned = self._on_question(question)
        answer = await returned if inspect.isawaitable(returned) else returned
        if answer is None:
            return
        # If somebody else was faster, or the worker has ended, there is nothing left to answer.
        with contextlib.suppress(Refused, NotFound):
            await self._do(self._task.respond, answer, question=question)
