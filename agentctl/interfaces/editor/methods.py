"""The agent of the protocol: one session is one worker of a task, and a prompt is work or a message for it.

Nothing is started before the first prompt. What the protocol calls the end of a turn is that the worker has answered:
it is kept, and idle, or it has ended. A client that goes away stops no work.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from acp.schema import (
    ClientCapabilities,
    CloseSessionResponse,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ResumeSessionResponse,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from agentctl import __version__
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.text.plaintext import plain, whole
from agentctl.errors import AgentctlError, NotFound, Refused, UsageError
from agentctl.interfaces.editor import dialogs
from agentctl.interfaces.editor.client_link import EditorLink
from agentctl.interfaces.editor.prompt_text import prompt_text
from agentctl.interfaces.editor.session import prompt_delivery, session_history
from agentctl.interfaces.editor.session import session_options as chosen
from agentctl.interfaces.editor.session.client_servers import ClientServers, servers_of
from agentctl.interfaces.editor.session.editor_session import EditorSession, Turn
from agentctl.interfaces.editor.session.held_workers import let_abandoned_end
from agentctl.interfaces.editor.session.prompt_keys import PromptKey
from agentctl.interfaces.editor.session.session_options import AGENT, Choices
from agentctl.interfaces.editor.session.worker_watch import thought
from agentctl.interfaces.editor.turn import Turning
from agentctl.interfaces.editor.turn_end import TurnFailed, error_for_client
from agentctl.lean import NamedTuple
from agentctl.operations.where.locating import find_root, find_task

T = TypeVar("T")

VERSION = 1
#: A waiting thread takes no processor time; the limit is so high that no session has to wait for a thread.
_MOST_THREADS = 1000
#: A client that opens sessions without end is refused.
_MOST_SESSIONS = 1000
#: What is put before it makes the key of a request of it, which may be a little longer.
_LONGEST_KEY = 9000
_CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
}


class EditorOptions(NamedTuple):
    """The options of `agentctl acp`."""

    choices: Choices
    task: str | None = None
    root: str | None = None
    keep: bool = True


class EditorAgent:
    """The methods that a client calls.

    Raises of all of them:
        AgentctlError: What the client is told as an error.
    """

    def __init__(self, serving: EditorOptions) -> None:
        self.serving = serving
        self.link = EditorLink(self, self._take_back)
        self.sessions: dict[str, EditorSession] = {}
        self._start = os.getcwd()
        #: What the client can do; None until it has opened the conversation.
        self._client: ClientCapabilities | None = None
        #: One thread for all that depends on the working folder, by which a command finds root and definitions. It is
        #: the folder of the whole process: what is done in `_threads` may neither ask for it nor use a relative path.
        self._folder = ThreadPoolExecutor(1)
        self._threads = ThreadPoolExecutor(_MOST_THREADS)
        #: The roots in which abandoned workers were looked for.
        self._seen_to: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()

    # -- the opening ---------------------------------------------------------------------------------------------

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002 - the library passes it by name
        client_capabilities: ClientCapabilities | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Open the conversation: whatever version the client offers, this agent speaks version 1."""
        self._client = client_capabilities or ClientCapabilities()
        return InitializeResponse.model_validate(
            {
                "protocolVersion": VERSION,
                "agentCapabilities": _CAPABILITIES,
                "agentInfo": {"name": "agentctl", "title": "agentctl", "version": __version__},
                "authMethods": [],
            }
        )

    # -- sessions ------------------------------------------------------------------------------------------------

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> NewSessionResponse:
        """Open a session; it leaves no trace before its first prompt."""
        self._check_open(cwd)
        choices = self.serving.choices

        def opened() -> tuple[str, dict[str, Any]]:
            root = self._root()
            if self.serving.task is not None:
                find_task(self.serving.task, root=self.serving.root)
            return prompt_delivery.new_name(root), _options(chosen.check_choices(choices, root), root)

        name, options = await self._in_folder(cwd, opened)
        await self._see_to_abandoned(cwd)
        self.sessions[name] = EditorSession(name, cwd, choices, servers=servers_of(mcp_servers))
        return NewSessionResponse.model_validate({"sessionId": name, **options})

    async def load_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> LoadSessionResponse:
        """Take up a session, and tell the client first all that was said and done in it."""
        session, options = await self._taken_up(cwd, session_id, is_told=True)
        session.notes = _notes_of_kept(servers_of(mcp_servers))
        return LoadSessionResponse.model_validate(options)

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any
    ) -> ResumeSessionResponse:
        """Take up a session whose history the client has."""
        session, options = await self._taken_up(cwd, session_id, is_told=False)
        session.notes = _notes_of_kept(servers_of(mcp_servers))
        return ResumeSessionResponse.model_validate(options)

    async def _taken_up(self, cwd: str, session_id: str, *, is_told: bool) -> tuple[EditorSession, dict[str, Any]]:
        self._check_open(cwd)
        fresh = self._resting(session_id)
        if fresh is not None and fresh.worker is None:  # It is open here, and nothing has been said in it.
            return fresh, await self._in_folder(cwd, lambda: _options(fresh.choices, self._root()))

        def found() -> tuple[session_history.Loaded, Choices, dict[str, Any]]:
            root = self._root()
            if root is None:
                raise NotFound(f"there is no session {plain(session_id)[:100]!r} here")
            loaded = session_history.load(root, session_id)
            choices = self.serving.choices._replace(agent=prompt_delivery.agent_of(loaded.worker))
            return loaded, choices, _options(choices, root)

        loaded, choices, options = await self._in_folder(cwd, found)
        updates = session_history.replay_session(loaded)
        while (update := await self._in_thread(lambda: next(updates, None))) is not None:
            if is_told:
                await self.link.update(session_id, update)
        known = self._resting(session_id)  # Once more: a prompt may have come meanwhile.
        if known is not None:
            known.let_go()
        session = EditorSession(session_id, cwd, choices, conversation=loaded.conversation)
        session.go_on_with(loaded.worker)
        self.sessions[session_id] = session
        return session, options

    def _resting(self, session_id: str) -> EditorSession | None:
        """Return a session if it is open here; raise `Refused` where a prompt of it is under way."""
        known = self.sessions.get(session_id)
        if known is not None and known.turn is not None:
            raise Refused(f"a prompt of {plain(session_id)} is under way", hint="cancel it first")
        return known

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the sessions of the root that the folder lies in, else of this process's."""
        here = self._start if cwd is None else cwd
        self._check_open(here)

        def found() -> dict[str, Any]:
            root = self._root()
            return session_history.list_sessions(root, cwd, cursor) if root is not None else {"sessions": []}

        return ListSessionsResponse.model_validate(await self._in_folder(here, found))

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Cancel what a session does, and forget it; its worker ends."""
        session = self._session(session_id)
        del self.sessions[session_id]
        session.is_closed, is_at_work = True, session.turn is not None
        if is_at_work:
            self._cancel_turn(session)
        await self._all_given()
        session.let_go()
        worker = session.worker
        if worker is not None:
            await self._in_thread(
                lambda: prompt_delivery.stop(worker) if is_at_work else prompt_delivery.leave_alone(iter([worker]))
            )
        return CloseSessionResponse()

    async def _see_to_abandoned(self, cwd: str) -> None:
        """Let workers end that a killed process of an editor has left idle in this root, once for each root."""
        root = await self._in_folder(cwd, self._root)
        if root is not None and str(root.path) not in self._seen_to:
            self._seen_to.add(str(root.path))
            self._soon(self._in_thread(lambda: let_abandoned_end(root)))

    # -- choices -------------------------------------------------------------------------------------------------

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Choose something for a session."""
        options = await self._choose(session_id, config_id, value)
        return SetSessionConfigOptionResponse.model_validate({"configOptions": options["configOptions"]})

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Choose the agent, as clients do that know no options."""
        options = await self._choose(session_id, AGENT, mode_id)
        await self.link.update(
            session_id, {"sessionUpdate": "config_option_update", "configOptions": options["configOptions"]}
        )
        return SetSessionModeResponse()

    async def _choose(self, session_id: str, name: str, value: object) -> dict[str, Any]:
        session = self._session(session_id)
        if session.worker is not None or session.turn is not None:
            if getattr(session.choices, name, None) == value:
                return await self._in_folder(session.cwd, lambda: _options(session.choices, self._root()))
            raise Refused(
                f"choose the {plain(name)} of a session before its first prompt",
                hint="open a new session for another",
            )

        def made() -> tuple[Choices, dict[str, Any]]:
            root = self._root()
            choices = chosen.with_choice(session.choices, name, value, root)
            return choices, _options(choices, root)

        session.choices, options = await self._in_folder(session.cwd, made)
        return options

    # -- prompts -------------------------------------------------------------------------------------------------

    async def prompt(
        self, prompt: list[Any], session_id: str, request: object = None, key: object = None, **_: Any
    ) -> PromptResponse:  # fmt: skip
        """Give a prompt to the session's agent, and answer it when its turn is over.

        Args:
            request: The id of the client's request, of which the link knows whether it was taken back.
            key: By it the client's prompt is known again, also in another process.
        """
        named = _key_named(key)
        session = self._session(session_id)
        if session.turn is not None:
            raise Refused(
                f"a prompt of {plain(session_id)} is under way",
                hint="wait for its answer, or cancel it with session/cancel",
            )
        text = prompt_text(prompt)
        if self.link.is_taken_back(request):
            return PromptResponse(stop_reason="cancelled")  # Nothing was started.
        turn = session.turn = Turn(request)

        def gives(work: Callable[[], prompt_delivery.GivenPrompt]) -> Awaitable[prompt_delivery.GivenPrompt]:
            return self._in_folder(session.cwd, lambda: _noted(session, work()))

        turning = Turning(session, turn, self.link, self._in_thread, gives, shows_forms=_shows_forms(self._client))
        try:
            with session.keys.once(request, text, named) as known_by:
                response = await turning.run(lambda: self._given(session, text, known_by), text)
        except TurnFailed:
            session.keys.forget()  # It was carried out, and the client is told how that went.
            raise
        finally:
            await turning.withdraw()
            session.turn = None
        return PromptResponse.model_validate(response)

    def _given(self, session: EditorSession, text: str, key: PromptKey) -> prompt_delivery.GivenPrompt:
        if session.worker is not None:
            return _given_on(session, session.worker, text, key)
        task, root, is_kept = self.serving.task, self.serving.root, self.serving.keep
        begin = prompt_delivery.Beginning(
            session.id, session.cwd, session.choices, session.servers, task, root, is_kept
        )
        return prompt_delivery.start_session(begin, text, key)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the prompt of a session; without one, do nothing."""
        session = self.sessions.get(session_id)
        if session is not None:
            self._cancel_turn(session)

    def _take_back(self, request: object) -> None:
        """Cancel the prompt that came with a request; without a turn of it, the link tells it once it begins."""
        for session in self.sessions.values():
            if session.turn is not None and session.turn.request == request:
                self._cancel_turn(session)

    def _cancel_turn(self, session: EditorSession) -> None:
        turn = session.turn
        if turn is None or turn.is_cancelled:
            return
        turn.is_cancelled = True
        turn.withdraw()
        worker = turn.worker
        if worker is not None:  # Otherwise the turn itself sees that it is cancelled, as soon as it has a worker.
            self._soon(self._request_end(session.id, turn, worker))

    async def _request_end(self, session_id: str, turn: Turn, worker: WorkerDir) -> None:
        try:
            await self._in_thread(lambda: prompt_delivery.cancel_run(worker))
        except AgentctlError as error:
            turn.is_cancelled = False  # A full disk, for example: the turn goes on, and can be cancelled again.
            await self.link.update(session_id, thought(f"The cancel has failed: {error_for_client(error)}"))

    # -- the end -------------------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Let go of all sessions: idle agents end now, those at work with their answers; open questions stay open."""
        await self._all_given()
        await self.link.close()
        await self._all_given()  # What a turn has begun to give meanwhile.
        workers = [one.worker for one in self.sessions.values() if one.worker is not None]
        await self._in_thread(lambda: prompt_delivery.leave_alone(iter(workers)))

    # -- in threads ----------------------------------------------------------------------------------------------

    async def _in_folder(self, cwd: str, work: Callable[[], T]) -> T:
        """Do something that depends on the working folder, in the one thread whose folder is changed for that."""

        def there() -> T:
            try:
                os.chdir(cwd)
            except OSError as error:
                raise UsageError(f"the folder {plain(cwd)[:500]} cannot be used: {error.strerror}") from error
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._folder, there)

    async def _all_given(self) -> None:
        """Return once each prompt that is being given has its run, which its session then knows."""
        await asyncio.get_running_loop().run_in_executor(self._folder, bool)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _soon(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- checks --------------------------------------------------------------------------------------------------

    def _root(self) -> Root | None:
        """Return the root of the folder at hand; None if there is none yet, and none was named."""
        try:
            return find_root(self.serving.root)
        except NotFound:
            if self.serving.root is not None:
                raise
            return None

    def _check_open(self, cwd: str) -> None:
        if self._client is None:
            raise Refused("the conversation is not open", hint="initialize comes first")
        if len(self.sessions) >= _MOST_SESSIONS:
            raise Refused(f"{_MOST_SESSIONS} sessions are open", hint="close some with session/close")
        if not os.path.isabs(cwd) or "\0" in cwd:
            raise UsageError(f"cwd must be an absolute path, not {plain(cwd)[:500]}")

    def _session(self, session_id: str) -> EditorSession:
        session = self.sessions.get(session_id)
        if session is None:
            raise NotFound(f"there is no open session {plain(session_id)[:100]!r}", hint="session/new, or session/load")
        return session


def _shows_forms(client: ClientCapabilities | None) -> bool:
    """Return whether a client shows the forms of its agent."""
    return client is not None and client.elicitation is not None and client.elicitation.form is not None


def _key_named(key: object) -> str | None:
    """Return the key that a client has named with a prompt.

    Raises:
        UsageError: It cannot be a key.
    """
    if key is None:
        return None
    if not isinstance(key, str) or "\0" in key or not 0 < len(key) <= _LONGEST_KEY:
        raise UsageError(f"_meta.agentctl.key must be a text of 1 to {_LONGEST_KEY} characters without NUL")
    return whole(key)


def _given_on(session: EditorSession, worker: WorkerDir, text: str, key: PromptKey) -> prompt_delivery.GivenPrompt:
    """Give a prompt to the agent of a session that has begun; it is an answer if a question waits for one.

    Only a prompt that has done nothing yet answers: a question that has come since it was sent first was not read by
    whoever wrote it.
    """
    asks = session.asks
    if asks is not None and not prompt_delivery.waits_for_answer(asks):
        asks = session.asks = None
    # Behind that look: an answer that another process gives now under the same key is found here, or by the question.
    known = prompt_delivery.given_before(worker, session.id, text, key)
    if known is not None:
        return known
    if asks is None:
        return prompt_delivery.prompt_again(worker, session.id, text, key)
    prompt_delivery.answer_question(asks, dialogs.written(asks, text), key)
    return prompt_delivery.GivenPrompt(worker, is_known=True)


def _noted(session: EditorSession, given: prompt_delivery.GivenPrompt) -> prompt_delivery.GivenPrompt:
    """Note the run that has a prompt now, in the thread that gave it: the client may be gone when it returns."""
    session.go_on_with(given.worker)
    return given


def _options(choices: Choices, root: Root | None) -> dict[str, Any]:
    return {"configOptions": chosen.config_options(choices, root), "modes": chosen.modes(choices, root)}


def _notes_of_kept(servers: ClientServers) -> tuple[str, ...]:
    """Return what the user of a session that is taken up should know about the servers of their client."""
    names = ", ".join([*servers.usable, *servers.left_out][:10])
    return (f"A session keeps the MCP servers with which it began ({names} are not used).",) if names else ()
