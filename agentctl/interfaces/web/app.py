"""The application: which path leads where, behind the gate."""

from __future__ import annotations

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, AtTerminal, ExitCode, Next, UsageError
from agentctl.interfaces.web.board import Board
from agentctl.interfaces.web.compression import Compressed
from agentctl.interfaces.web.connections import Connections
from agentctl.interfaces.web.endpoint import PREFIX, Endpoint, read_body
from agentctl.interfaces.web.endpoint_app import Carrying, EndpointApp, bug, json_response, not_allowed
from agentctl.interfaces.web.gate import ANSWER, GREETING, SESSION, Access, Gate, Refuse, TooLarge, cookies_of
from agentctl.interfaces.web.json_bytes import json_bytes
from agentctl.interfaces.web.login import Login
from agentctl.interfaces.web.metrics import metrics_of
from agentctl.interfaces.web.openapi import document_of
from agentctl.interfaces.web.page_files import PREFIX as STATIC
from agentctl.interfaces.web.page_files import PageFiles
from agentctl.interfaces.web.page_sessions import PageSessions
from agentctl.interfaces.web.problems import problem, problem_response
from agentctl.interfaces.web.streams import NOW, Wanted, stream_response
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.notify.button_origins import button_origins
from agentctl.operations.talk.answering_link import answer_by_link

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import ServerHealth

_Answer = Callable[[Request], Awaitable[Response]]

#: The paths of the page, as its `places.js` has them.
_VIEWS = ("/", "/tree", "/search", "/tasks/{rest:path}")
#: Longer cursors come from nobody.
_LONGEST_CURSOR = 16_000
_LONGEST_VERSION = 64
#: Whoever asks for the health waits no longer.
_HEALTHY_S = 2


class Website:
    """What is behind the paths.

    Args:
        endpoints: Those below `PREFIX`.
        others: Those below none.
        record: Records a bug; returns where.
        is_secure: The server speaks TLS.
    """

    def __init__(
        self, root: Root, login: Login, endpoints: Sequence[Endpoint], others: Sequence[Endpoint],
        record: Callable[[BaseException], str], *, is_secure: bool,
    ) -> None:  # fmt: skip
        self._root, self._login, self._is_secure = root, login, is_secure
        self._endpoints, self._others, self._record = endpoints, others, record
        self._sessions = PageSessions(login)
        self._files = PageFiles()
        self.connections = Connections()
        self._board: Board | None = None
        #: What has kept it from starting.
        self.startup_error: BaseException | None = None

    def gated(self, access: Access, refuse: Refuse) -> Gate:
        """Return the application behind its gate."""
        app = Compressed(self._app(), never=(SESSION, ANSWER))
        return Gate(app, self._login, self._sessions, access, refuse, button_origins)

    def _app(self) -> Starlette:
        plain = {
            f"{PREFIX}/tasks/{{task}}": self._task, f"{PREFIX}/events": self._events,
            f"{PREFIX}/openapi.json": self._describe, "/healthz": self._health, "/metrics": self._metrics,
        }  # fmt: skip
        routes = [Route(path, self._at({"GET": answer})) for path, answer in plain.items()]
        routes.append(Route(SESSION, self._at({"POST": self._log_in, "DELETE": self._log_out})))
        routes.append(Route(f"{ANSWER}{{signed:path}}", self._at({"POST": self._answer})))
        routes.append(Route(f"{STATIC}{{name:path}}", self._at({"GET": self._file})))
        carrying = Carrying(self._record)
        grouped: defaultdict[str, list[Endpoint]] = defaultdict(list)
        for prefix, some in ((PREFIX, self._endpoints), ("", self._others)):
            for one in some:
                grouped[f"{prefix}{one.path}"].append(one)
        routes += [Route(path, EndpointApp(some, carrying)) for path, some in grouped.items()]
        nowhere = self._at({}, _nothing)
        for path in ("/api", SESSION, "/healthz", "/metrics", "/task"):
            routes += [Route(path, nowhere), Route(f"{path}/{{rest:path}}", nowhere)]
        routes.append(Route("//{rest:path}", nowhere))
        routes += [Route(path, self._at({"GET": self._page})) for path in _VIEWS]
        # Of any other path that a person has typed, the page says that it leads nowhere.
        routes.append(Route("/{rest:path}", self._at({"GET": self._page}, _nothing)))

        @contextlib.asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            try:
                self._board = Board(self._root)
            except BaseException as error:
                self.startup_error = error
                raise
            try:
                yield
            finally:
                self._board.close()

        app = Starlette(routes=routes, lifespan=lifespan)
        app.router.default = nowhere  # For a target that is not a path: `OPTIONS *`.
        return app

    def _at(self, answers: Mapping[str, _Answer], otherwise: _Answer | None = None) -> _Methods:
        return _Methods(answers, otherwise, self._record)

    @property
    def board(self) -> Board:
        """What is known of all tasks."""
        assert self._board is not None
        return self._board

    # -- what is read ----------------------------------------------------------------------------------------------

    async def _task(self, request: Request) -> Response:
        """Answer with a task and its workers."""
        name = request.path_params["task"]
        if not is_name(name):
            return problem(400, f"{name[:80]!r} is not the name of a task", code=ExitCode.USAGE)
        if request.query_params:
            return problem(400, "this takes no parameters", code=ExitCode.USAGE)
        glance = await self.board.fresh()
        while glance.is_partial and name not in glance.tasks:  # It may be among those that were not read yet.
            glance = await self.board.fresh()
        found = self.board.task(name)
        if found is None:
            return problem(404, f"there is no task {name!r}", Next("tasks"), code=ExitCode.NOT_FOUND)
        return json_response(found, request)

    async def _events(self, request: Request) -> Response:
        """Answer with the stream."""
        given = request.query_params
        unknown = sorted(set(given) - {"task", "since", "fleet", "version", "lastEventId", "last_event_id"})
        if unknown:
            return problem(400, f"unknown parameter {unknown[0][:80]!r}", code=ExitCode.USAGE)
        named = given.get("lastEventId") or given.get("last_event_id")
        since = request.headers.get("last-event-id") or named or given.get("since", NOW)
        if {"lastEventId", "last_event_id"} <= set(given):
            return problem(400, "lastEventId is given twice", code=ExitCode.USAGE)
        tasks = given.getlist("task")
        version = given.get("version", "")
        is_too_long = len(since) > _LONGEST_CURSOR or len(version) > _LONGEST_VERSION
        if is_too_long or not all(map(is_name, tasks)) or given.get("fleet", "") not in _FLAGS:
            wanted_words = "task must be a name, fleet true or false, since a cursor, and version that of a message"
            return problem(400, wanted_words, code=ExitCode.USAGE)
        if request.method == "HEAD":
            return Response(headers={"Cache-Control": "no-store"}, media_type="text/event-stream")
        wanted = Wanted(frozenset(tasks) if tasks else None, since, given.get("fleet") == "true", version or None)
        return stream_response(self.board, wanted)

    async def _describe(self, request: Request) -> Response:
        return json_response(self._description, request)

    @cached_property
    def _description(self) -> bytes:
        return json.dumps(document_of(self._endpoints, self._others)).encode()

    async def _health(self, _request: Request) -> Response:
        why: str | None = None
        try:
            with anyio.fail_after(_HEALTHY_S):
                await self.board.fresh()
        except TimeoutError:
            why = f"the tasks were not read within {_HEALTHY_S} s"
        except AgentctlError as error:
            why = str(error)
        found: ServerHealth = {"status": "ok" if why is None else "failing", "problem": why}
        return Response(json_bytes(found), 200 if why is None else 503, media_type="application/json")

    async def _metrics(self, _request: Request) -> Response:
        glance = await self.board.fresh()
        return PlainTextResponse(metrics_of(glance, self.connections), media_type="text/plain; version=0.0.4")

    async def _file(self, request: Request) -> Response:
        found = self._files.response(request.path_params["name"], request)
        return found or problem(404, "there is no such file", code=ExitCode.NOT_FOUND)

    async def _page(self, request: Request) -> Response:
        return self._files.index(request, request.scope.get(GREETING))

    # -- who is let in ---------------------------------------------------------------------------------------------

    async def _log_in(self, request: Request) -> Response:
        """Let a page prove that it knows a secret, after the server has: in two requests."""
        try:
            body = read_body(await request.body())
        except (UsageError, TooLarge):
            body = None
        given = body if isinstance(body, dict) else {}
        cookies = cookies_of(request.headers, self._login.cookie_name)
        name, nonce, shown = (given[key] if isinstance(given.get(key), str) else "" for key in ("as", "nonce", "proof"))
        unstored = {"Cache-Control": "no-store"}
        if name:
            begun = self._sessions.begin(name, nonce, request.headers.get("origin", ""), cookies)
            if begun is not None:
                return JSONResponse({"nonce": begun[0], "proof": begun[1]}, headers=unstored)
        entered = self._sessions.enter(nonce, shown, cookies) if not name else None
        if entered is None:
            return problem(
                401, "this opens nothing here",
                "a link works once, within 10 minutes", AtTerminal("agentctl serve --link prints another"),
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        answer = JSONResponse({"session": entered.session, "page": entered.page, "key": entered.key}, headers=unstored)
        # Without an age the browser keeps it in memory alone.
        answer.set_cookie(
            self._login.cookie_name, entered.cookie, httponly=True, samesite="strict", secure=self._is_secure
        )
        return answer

    async def _log_out(self, request: Request) -> Response:
        """End what this browser has here."""
        self._sessions.leave(cookies_of(request.headers, self._login.cookie_name))
        answer = JSONResponse({}, headers={"Cache-Control": "no-store"})
        answer.delete_cookie(self._login.cookie_name, httponly=True, samesite="strict", secure=self._is_secure)
        return answer

    async def _answer(self, request: Request) -> Response:
        """Give the answer of a signed link: whoever has it may give that one answer."""
        work = partial(answer_by_link, self._root, request.path_params["signed"], self._login.token, time.time())
        return json_response(await anyio.to_thread.run_sync(work, abandon_on_cancel=True), request)


_FLAGS = frozenset({"", "true", "false"})


class _Methods:
    """Answers at one path, by method; `otherwise` by any other one, if there is such an answer."""

    def __init__(
        self, answers: Mapping[str, _Answer], otherwise: _Answer | None, record: Callable[[BaseException], str]
    ) -> None:
        self._answers, self._otherwise, self._record = answers, otherwise, record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answers.get("GET" if scope["method"] == "HEAD" else scope["method"], self._otherwise)
        try:
            made = await answer(Request(scope, receive, send)) if answer is not None else not_allowed(self._answers)
        except ClientDisconnect:
            return
        except AgentctlError as error:
            made = problem_response(error)
        except Exception as error:  # noqa: BLE001 - the last place at which a bug can be reported clearly
            made = bug(error, self._record)
        await made(scope, receive, send)


async def _nothing(_request: Request) -> Response:
    return problem(404, "there is no such path", Next("paths"), code=ExitCode.NOT_FOUND)
