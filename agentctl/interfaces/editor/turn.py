"""One turn: a prompt is given, what happens is told, questions are shown, and the end becomes the response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from acp.exceptions import RequestError

from agentctl.adapters.breakable_thread import in_breakable_thread
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.interfaces.editor import dialogs
from agentctl.interfaces.editor.client_link import EditorLink
from agentctl.interfaces.editor.session import prompt_delivery
from agentctl.interfaces.editor.session.editor_session import EditorSession, Turn
from agentctl.interfaces.editor.session.prompt_delivery import GivenPrompt
from agentctl.interfaces.editor.session.session_history import final_text
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.interfaces.editor.session.worker_watch import Ears, Over, follow, thought
from agentctl.interfaces.editor.turn_end import (
    CANCELLED,
    END_TURN,
    error_for_client,
    failed_cancel,
    response_of,
    stop_of_end,
    stop_of_idle,
)
from agentctl.interfaces.editor.updates.client_bounds import pieces_of_text
from agentctl.interfaces.editor.updates.contents import as_said, as_written
from agentctl.interfaces.editor.updates.row_updates import COMPLETED, FAILED, Update, WorkerUpdates
from agentctl.operations.talk.messaging import unread
from agentctl.supervision.worker.endings import status_at_end

T = TypeVar("T")


#: Has a run given a prompt, in the thread in which that is done, and notes it in the session.
Gives = Callable[[Callable[[], GivenPrompt]], Awaitable[GivenPrompt]]


class InThread(Protocol):
    """Does something in a thread."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what it returns."""
        ...


class Turning:
    """The turn of one prompt."""

    def __init__(
        self, session: EditorSession, turn: Turn, link: EditorLink, in_thread: InThread, gives: Gives,
        *, shows_forms: bool,
    ) -> None:  # fmt: skip
        self._session, self._turn, self._link, self._in_thread = session, turn, link, in_thread
        self._gives, self._shows_forms = gives, shows_forms

    async def run(self, give: Callable[[], GivenPrompt], text: str) -> dict[str, Any]:
        """Give the prompt and see it through; return the response.

        Raises:
            TurnFailed: The agent has failed.
        """
        session, turn = self._session, self._turn
        given = await self._gives(give)  # First of all: a client that goes away now has sent it all the same.
        notes, session.notes = session.notes, ()
        while True:
            worker = turn.worker = given.worker
            updates = session.conversation.add_run(worker)
            updates.has_spoken = False
            if not given.is_known:
                updates.expect(text)
            await self._tell([thought(f"{as_written(note)}\n\n") for note in (*notes, *given.notes)])
            if turn.is_cancelled:
                await self._in_thread(partial(prompt_delivery.cancel_run, worker))
            over = await self._followed(worker)
            if over is not Over.ENDED or turn.is_cancelled or not await self._in_thread(partial(_left_unread, worker)):
                return await self._concluded(worker, updates, over)
            await self._tell(list(session.conversation.close_run(worker)))
            given, notes = await self._gives(partial(prompt_delivery.take_up_messages, worker)), ()

    async def _followed(self, worker: WorkerDir) -> Over:
        loop = asyncio.get_running_loop()

        def tell(updates: list[Update]) -> None:
            asyncio.run_coroutine_threadsafe(self._tell(updates), loop).result()

        def asked(questions: dict[str, EditorQuestion]) -> bool:
            return asyncio.run_coroutine_threadsafe(self._show(questions), loop).result()

        ears = Ears(tell, asked, lambda: self._turn.is_cancelled)
        return await in_breakable_thread(self._in_thread, partial(follow, self._session.conversation, worker, ears))

    async def _concluded(self, worker: WorkerDir, updates: WorkerUpdates, over: Over) -> dict[str, Any]:
        """Return the response to the prompt, after all that is left to tell."""
        turn = self._turn
        await self.withdraw()
        if over is Over.ASKS:
            self._session.asks = next(iter(turn.in_words.values()))
            return await self._responded(lambda: END_TURN)
        if over is Over.IDLE:
            return await self._responded(lambda: stop_of_idle(worker))
        await self._tell(list(self._session.conversation.close_run(worker)))
        if over is Over.SURVIVED:
            raise await self._in_thread(lambda: failed_cancel(worker))
        if turn.is_cancelled:  # Whatever else it ended by: that is what the client is to be told.
            return await self._responded(lambda: CANCELLED)
        text = "" if updates.has_spoken else await self._in_thread(lambda: final_text(worker))
        content = [{"type": "text", "text": piece} for piece in pieces_of_text(as_said(text)) if piece]
        await self._tell([{"sessionUpdate": "agent_message_chunk", "content": one} for one in content])
        return await self._responded(lambda: stop_of_end(worker))

    async def _responded(self, stop: Callable[[], str]) -> dict[str, Any]:
        runs_so_far = [*self._session.conversation.runs]
        return await self._in_thread(lambda: response_of(runs_so_far, stop()))

    async def _tell(self, updates: list[Update]) -> None:
        for update in updates:
            await self._link.update(self._session.id, update)

    # -- questions -----------------------------------------------------------------------------------------------

    async def _show(self, questions: dict[str, EditorQuestion]) -> bool:
        """Show new questions, and withdraw those that are no longer open; return whether the turn ends with one."""
        shown, in_words = self._turn.dialogs, self._turn.in_words
        self._turn.withdraw([name for name in shown if name not in questions])
        if self._turn.is_cancelled:
            return False
        for name in [name for name in in_words if name not in questions]:
            del in_words[name]  # Answered elsewhere.
        for name, question in questions.items() if not in_words else ():
            if name in shown:
                continue
            if dialogs.is_for_chat(question, shows_forms=self._shows_forms):
                in_words[name] = question
                await self._say(dialogs.dialog_words(question))
                return True
            shown[name] = asyncio.create_task(self._ask(name, question))
        return bool(in_words)

    async def withdraw(self) -> None:
        """Withdraw all questions that the client shows; return once it is told, so before the response."""
        self._turn.withdraw()
        await asyncio.gather(*self._turn.closing, return_exceptions=True)

    async def _ask(self, name: str, question: EditorQuestion) -> None:
        """Show a question, and pass the answer on.

        Without an answer it stays open, and the turn ends with it: else a client without a user would wait for ever.
        """
        try:
            if question.asked.is_permission or not self._shows_forms:
                await self._by_dialog(name, question)
            else:
                params = {"sessionId": self._session.id, "mode": "form", "message": dialogs.dialog_words(question)}
                schema = dialogs.dialog_form(question)
                reply = await self._link.ask("elicitation/create", {**params, "requestedSchema": schema})
                await self._answer(name, question, dialogs.filled(question, reply))
        except RequestError as error:
            await self._put_in_words(name, question, f"This client cannot show the question ({error}).")
        except ConnectionError:
            pass  # It is gone, and the question stays open.

    async def _by_dialog(self, name: str, question: EditorQuestion) -> None:
        call = question.call or f"question:{name}"
        choice = dialogs.choice_of(question, call)
        if choice is None:
            await self._put_in_words(name, question, "It has no options.")
            return
        if question.call is None:
            await self._tell([{"sessionUpdate": "tool_call", **choice.tool_call, "_meta": question.meta}])
        params = {"sessionId": self._session.id, "toolCall": choice.tool_call, "options": choice.options}
        try:
            reply = await self._link.ask("session/request_permission", params)
            await self._answer(name, question, dialogs.chosen_option(choice, reply))
        finally:
            if question.call is None:
                status = COMPLETED if await self._in_thread(lambda: prompt_delivery.is_answered(question)) else FAILED
                await self._tell([{"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}])

    async def _answer(self, name: str, question: EditorQuestion, said: str | None) -> None:
        if said is None:
            await self._put_in_words(name, question, "It was not answered.")
            return
        try:
            await self._in_thread(lambda: prompt_delivery.answer_question(question, said))
        except AgentctlError as error:
            await self._put_in_words(name, question, f"The answer does not count: {error_for_client(error)}")

    async def _put_in_words(self, name: str, question: EditorQuestion, why: str) -> None:
        """Leave a question that is still open to the next prompt."""
        if self._turn.is_cancelled or not await self._in_thread(lambda: prompt_delivery.waits_for_answer(question)):
            return
        way = f"Your next prompt is the answer. At a terminal:\n\n{dialogs.answer_advice(question)}"
        await self._say(f"{dialogs.dialog_words(question)}\n\n{as_written(why)}\n\n{way}")
        self._turn.in_words[name] = question

    async def _say(self, text: str) -> None:
        content = [{"type": "text", "text": piece} for piece in pieces_of_text(f"{text}\n")]
        await self._tell([{"sessionUpdate": "agent_message_chunk", "content": one} for one in content])


def _left_unread(worker: WorkerDir) -> bool:
    """Return whether a run has completed without reading what was sent to it last."""
    return status_at_end(worker) is Status.COMPLETED and bool(unread(worker))
